//! Settings with a few words to choose from.

use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::{Setting, Shape};

macro_rules! words {
    (
        $(#[doc = $about:expr])+
        pub enum $name:ident { $($(#[doc = $doc:expr])+ $(#[$default:ident])? $variant:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])+ $(#[$default])? $variant,)+ }

        impl Setting for $name {
            fn shape() -> Shape {
                Shape::Words(&[$($word),+])
            }

            fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
                let mut hint = None;
                if let Value::Text(text) = &node.value {
                    match text.as_str() {
                        $($word => return Some(Self::$variant),)+
                        other => {
                            let near = nearest(other, [$($word),+]);
                            hint = near.map(|word| format!("did you mean \"{word}\"?"));
                        }
                    }
                }
                reading.refuse_value(node, at, Self::shape().expected(), hint);
                None
            }
        }
    };
}

words! {
    /// Whether the cache has a part in an exchange.
    pub enum CacheMode {
        /// The origin's fields and the rule's settings decide.
        #[default]
        Auto = "auto",
        /// Neither looked up nor stored: every request goes to the origin.
        Off = "off",
    }
}

words! {
    /// What cookies mean where `ttl` or `override_ttl` decides.
    pub enum Cookies {
        /// A request with a session cookie that is not in the key neither fills nor uses such a response.
        #[default]
        Respect = "respect",
        /// Cookies mean nothing to the cache.
        Ignore = "ignore",
    }
}

words! {
    /// How a line of the access log looks.
    pub enum LogFormat {
        /// One JSON object per line.
        #[default]
        Json = "json",
        /// As Apache and nginx write it.
        Combined = "combined",
    }
}
