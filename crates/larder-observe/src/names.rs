//! Small numbers for names that come from the configuration, so that counting by site, store or origin is an index.
//!
//! Numbers are given out when a configuration is loaded and stay for the life of the process, since counters may not
//! go back. A bound keeps endless reloads from growing them, and names beyond it share the first number, `other`.

use parking_lot::RwLock;
use std::sync::Arc;

/// The most stores that are told apart, over all configurations of one process.
pub(crate) const CACHES_MAX: usize = 64;

/// The name of number 0, which everything beyond the bound shares.
pub(crate) const OTHER: &str = "other";

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub(crate) u16);

        impl $name {
            /// In the order in which names came.
            pub fn index(self) -> usize {
                usize::from(self.0)
            }
        }
    };
}

id!(
    /// A site in the metrics. The default is `other`.
    RouteId
);
id!(
    /// A store in the metrics. The default is `other`.
    CacheId
);
id!(
    /// A rule in the metrics, with one of the stores that its responses are in. The default is `other`.
    RuleId
);
id!(
    /// An origin in the metrics. The default is `other`.
    OriginId
);

/// The names given out so far; the lock guards registration and reading, never counting.
#[derive(Debug)]
pub(crate) struct Names {
    names: RwLock<Vec<Arc<str>>>,
    max: usize,
}

impl Names {
    pub(crate) fn new(max: usize) -> Self {
        Self { names: RwLock::new(vec![OTHER.into()]), max }
    }

    /// The number of `name`, new or known.
    pub(crate) fn register(&self, name: &str) -> u16 {
        let mut names = self.names.write();
        let index = names.iter().position(|known| **known == *name);
        let index = index.or_else(|| {
            (names.len() < self.max).then(|| {
                names.push(name.into());
                names.len() - 1
            })
        });
        index.and_then(|index| u16::try_from(index).ok()).unwrap_or(0)
    }

    /// The name of a number.
    pub(crate) fn find(&self, index: usize) -> Option<Arc<str>> {
        self.names.read().get(index).cloned()
    }

    /// All names, each at its number.
    pub(crate) fn all(&self) -> Vec<Arc<str>> {
        self.names.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_the_surplus_is_other() {
        let names = Names::new(3);
        for (name, number) in [("a", 1), ("b", 2), ("a", 1), ("c", 0), ("other", 0), ("b", 2)] {
            assert_eq!(names.register(name), number, "{name}");
        }
        assert_eq!(names.all().len(), 3);
    }
}
