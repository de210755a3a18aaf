//! The request for a purge, as far as dialects read it.

use http::{HeaderMap, HeaderName, HeaderValue};

/// What xkey's users send to Varnish, and several dialects beside.
pub(super) const XKEY_PURGE: HeaderName = HeaderName::from_static("xkey-purge");
/// The same for a soft purge.
pub(super) const XKEY_SOFT_PURGE: HeaderName = HeaderName::from_static("xkey-softpurge");
/// Tags, from FOSHttpCache and from Drupal.
pub(super) const X_CACHE_TAGS: HeaderName = HeaderName::from_static("x-cache-tags");

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
    pub(super) fn has(&self, name: &HeaderName) -> bool {
        self.fields.contains_key(name)
    }

    /// The first value of a field.
    pub(super) fn value(&self, name: &HeaderName) -> Option<&'a HeaderValue> {
        self.fields.get(name)
    }

    /// All values of a field.
    pub(super) fn values(&self, name: &HeaderName) -> impl Iterator<Item = &'a HeaderValue> + use<'a> {
        self.fields.get_all(name).into_iter()
    }

    /// The target without its query.
    pub(super) fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }
}
