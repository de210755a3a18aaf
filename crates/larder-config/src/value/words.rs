//! Settings with a few words to choose from.

use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::{Setting, Shape};

macro_rules! words {
    (
        $(#[$about:meta])+
        pub enum $name:ident { $($(#[$doc:meta])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])+ $variant,)+ }

        impl $name {
            /// As it is written.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

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
    #[derive(Default)]
    pub enum CacheMode {
        /// The origin's fields and the rule's settings decide.
        #[default]
        Auto = "auto",
        /// Neither looked up nor stored: every request goes to the origin.
        Off = "off",
    }
}

words! {
    /// What cookies mean where the application did not give the lifetime.
    #[derive(Default)]
    pub enum Cookies {
        /// A request with a cookie that is neither harmless nor in the key neither fills nor uses such a response.
        #[default]
        Respect = "respect",
        /// Cookies mean nothing to the cache.
        Ignore = "ignore",
    }
}

words! {
    /// What becomes of a response that sets cookies.
    #[derive(Default)]
    pub enum SetCookie {
        /// Stored without cookies that may be somebody's where the origin says that it is for all, else not at all; other
        /// cookies with a lifetime that the origin gave.
        #[default]
        Guard = "guard",
        /// Stored like any other, cookies included.
        Store = "store",
        /// Stored like any other, and nobody is sent the cookies.
        Strip = "strip",
        /// Never stored.
        Bypass = "bypass",
    }
}

words! {
    /// How a HEAD goes to the origin where nothing is stored for its URL.
    #[derive(Default)]
    pub enum HeadMode {
        /// As GET, whose answer is stored.
        #[default]
        Get = "get",
        /// As it is.
        Pass = "pass",
    }
}

words! {
    /// Which directives in a request's Cache-Control are heard.
    #[derive(Default)]
    pub enum RequestDirectives {
        /// Those that want a fresher response cause one validation per second at most.
        #[default]
        Guarded = "guarded",
        /// All of them, each time, `max-stale` included.
        Honour = "honour",
        /// None of them.
        Ignore = "ignore",
    }
}

words! {
    /// What an unsafe request does to what is stored for the URLs that it invalidates.
    #[derive(Default)]
    pub enum Invalidate {
        /// It is not used again before a validation.
        #[default]
        Validate = "validate",
        /// It is removed.
        Remove = "remove",
        /// Nothing.
        Off = "off",
    }
}

words! {
    /// How templates are known.
    #[derive(Default)]
    pub enum AssembleMode {
        /// They say so themselves.
        #[default]
        Auto = "auto",
        /// By that, or by their type: they are in SSI.
        Ssi = "ssi",
        /// By that, or by their type: they are in ESI.
        Esi = "esi",
        /// There are none.
        Off = "off",
    }
}

words! {
    /// How ESI writes values that come from a request.
    #[derive(Default)]
    pub enum Escape {
        /// With what HTML gives a meaning to escaped.
        #[default]
        Html = "html",
        /// As they came.
        Nothing = "none",
    }
}

words! {
    /// What becomes of a page with a failed fragment for which its template names nothing instead.
    #[derive(Default)]
    pub enum OnError {
        /// It fails as well.
        #[default]
        Fail = "fail",
        /// Nothing stands there.
        Omit = "omit",
    }
}

words! {
    /// A rule of the origin, or of caching, that can be made not to hold.
    pub enum Ignored {
        /// `private` in a response.
        Private = "private",
        /// `no-store` in a response.
        NoStore = "no-store",
        /// The `*` in Vary.
        Vary = "vary",
        /// That a response to a request with Authorization is its client's own.
        Authorization = "authorization",
        /// The guard for Set-Cookie.
        SetCookie = "set-cookie",
    }
}

impl Ignored {
    /// What may come of it, for the warning.
    pub(crate) const fn risk(self) -> &'static str {
        match self {
            Self::Private => "what the origin made for one visitor is stored, and given to others",
            Self::NoStore => "what the origin wants kept nowhere is stored, and given to others",
            Self::Vary => "more than the request's fields decided what was sent: others get it all the same",
            Self::Authorization => {
                "what one client may see by its credentials is stored, and given to others"
            }
            Self::SetCookie => {
                "a cookie that starts a session may be given to others, who are then in it together"
            }
        }
    }
}

words! {
    /// What is shown of clients' addresses.
    #[derive(Default)]
    pub enum ClientAddresses {
        /// The network.
        #[default]
        Masked = "masked",
        /// The whole address.
        Full = "full",
        /// Nothing.
        Off = "off",
    }
}

words! {
    /// How a line of the access log looks.
    #[derive(Default)]
    pub enum LogFormat {
        /// One JSON object per line.
        #[default]
        Json = "json",
        /// As Apache and nginx write it.
        Combined = "combined",
    }
}

words! {
    /// Which server of an origin a request goes to.
    #[derive(Default)]
    pub enum Balance {
        /// One after the other, each as often as its weight says.
        #[default]
        RoundRobin = "round-robin",
        /// Of two that chance picks, the one with fewer requests in flight for its weight.
        LeastRequests = "least-requests",
        /// The one that a part of the request stands for.
        Hash = "hash",
    }
}

words! {
    /// How a store uses its disks.
    #[derive(Default)]
    pub enum Layout {
        /// One disk.
        #[default]
        Single = "single",
        /// Each response on every disk.
        Mirror = "mirror",
        /// The pieces of each response spread over all disks.
        Stripe = "stripe",
        /// Each response on one disk, by its URL.
        Hash = "hash",
    }
}

words! {
    /// Which protocol a server is spoken to in.
    #[derive(Default)]
    pub enum Protocol {
        /// HTTP/1.1.
        #[default]
        Http1 = "http/1.1",
        /// HTTP/2; in clear text by prior knowledge.
        Http2 = "h2",
        /// What the server chooses while TLS is set up (ALPN); HTTP/1.1 in clear text.
        Auto = "auto",
    }
}

words! {
    /// How the bodies of shared responses lie in Redis.
    #[derive(Default)]
    pub enum RecordCoding {
        /// As they are.
        #[default]
        None = "none",
        /// In LZ4, where that saves something.
        Lz4 = "lz4",
    }
}

words! {
    /// What a value in another program's memory is.
    #[derive(Default)]
    pub enum ValueFormat {
        /// The bytes of a body.
        #[default]
        Body = "body",
        /// A response message.
        Http = "http",
    }
}

words! {
    /// How keys find their server among several of memcached.
    #[derive(Default)]
    pub enum Ring {
        /// libmemcached with weighted ketama.
        #[default]
        Ketama = "ketama",
        /// libmemcached with consistent distribution and nothing else.
        Consistent = "consistent",
        /// nginx's `hash KEY consistent`.
        Nginx = "nginx",
    }
}

words! {
    /// The oldest version of TLS that is spoken with clients.
    #[derive(Default)]
    pub enum TlsVersion {
        /// RFC 5246.
        #[default]
        Tls12 = "1.2",
        /// RFC 8446.
        Tls13 = "1.3",
    }
}

words! {
    /// Whether a client has to show a certificate.
    #[derive(Default)]
    pub enum ClientAuth {
        /// A handshake without one fails.
        #[default]
        Require = "require",
        /// One without goes on.
        Optional = "optional",
    }
}

words! {
    /// How a host is proven to be larder's.
    pub enum AcmeChallenge {
        /// By a certificate in a handshake for a protocol of its own (RFC 8737).
        TlsAlpn01 = "tls-alpn-01",
        /// By an answer to a request in clear text (RFC 8555 8.3).
        Http01 = "http-01",
    }
}
