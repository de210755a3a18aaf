//! The request for a purge, as far as dialects read it.

use http::{HeaderMap, HeaderValue};

/// A request that may ask for a purge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PurgeRequest<'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// Path and query as they were sent. Where plugins send expressions as the path, they hold what no URI may hold.
    pub(crate) target: &'a str,
    /// The fields before larder takes any of them out.
    pub(crate) fields: &'a HeaderMap,
    /// The path below which the site answers GET as a purge.
    pub(crate) location: Option<&'a str>,
}

impl<'a> PurgeRequest<'a> {
    /// Whether it has a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// The first value of a field.
    pub(super) fn value(&self, name: &str) -> Option<&'a HeaderValue> {
        self.fields.get(name)
    }

    /// All values of a field.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &'a HeaderValue> + use<'a> {
        self.fields.get_all(name).into_iter()
    }

    /// The target without its query.
    pub(super) fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }
}
