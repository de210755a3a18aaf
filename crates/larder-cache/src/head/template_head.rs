//! What a stored template is besides a response: its language, and the fields that its pages start from.
//!
//! In: the fields of a template. Out: the same without those that say something of the template's own bytes or lifetime,
//! prepared once, since every page that is made of it starts from them. What a page says in their place is
//! [`crate::page`]'s.
//! Deliberately absent: the decision which response is one ([`crate::template`]).

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use larder_http::message::PreparedFields;
use larder_http::template::Language;

use super::weight::prepared_bytes;

/// What makes a stored response a template.
#[derive(Clone, Debug)]
pub struct TemplateHead {
    /// The language, for as long as it is stored.
    pub language: Language,
    /// The fields that a page made of it starts from.
    pub page: Arc<PreparedFields>,
}

impl TemplateHead {
    /// Of a template with these stored fields.
    pub fn new(language: Language, fields: &HeaderMap) -> Self {
        Self { language, page: Arc::new(PreparedFields::new(page_fields(fields, &[]))) }
    }

    /// Bytes in memory, the struct itself included. The values are counted with the stored fields, whose bytes they share.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + prepared_bytes(&self.page)
    }
}

/// The fields of a template that a page made of it starts from, also where the template is not stored. Gone are its validators,
/// lengths, digests and codings, and all that says how long it lives. What is said about that to some caches alone goes too:
/// such a cache would keep a page that was put together for one visitor. It stands in the private fields of surrogates, in
/// those with a name that ends in `-Cache-Control` (RFC 9213 2), and in `targets`, which the page's rule names.
pub fn page_fields(fields: &HeaderMap, targets: &[HeaderName]) -> HeaderMap {
    let mut page = HeaderMap::with_capacity(fields.keys_len());
    let is_the_pages = |name: &HeaderName| !is_the_templates(name.as_str()) && !targets.contains(name);
    for (name, value) in fields.iter().filter(|(name, _)| is_the_pages(name)) {
        page.append(name, value.clone());
    }
    page
}

/// Content-Digest and Repr-Digest are of RFC 9530, Digest of RFC 3230, Content-MD5 of RFC 2616; Edge-Control is Akamai's.
const OF_THE_TEMPLATE: [&str; 16] = [
    "accept-ranges",
    "age",
    "cache-control",
    "content-digest",
    "content-encoding",
    "content-length",
    "content-md5",
    "digest",
    "edge-control",
    "etag",
    "expires",
    "last-modified",
    "repr-digest",
    "surrogate-control",
    "x-accel-expires",
    "x-reverse-proxy-ttl",
];

/// Whether a field says something of the template that its pages do not say.
fn is_the_templates(name: &str) -> bool {
    OF_THE_TEMPLATE.contains(&name) || name.ends_with("-cache-control")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DATE, fields, stored};
    use crate::policy::CachePolicy;

    #[test]
    fn a_page_starts_from_the_fields_that_are_not_the_templates_alone() {
        let said = [
            ("content-type", "text/html"),
            ("etag", "\"a\""),
            ("last-modified", DATE),
            ("accept-ranges", "bytes"),
            ("content-length", "9"),
            ("content-encoding", "gzip"),
            ("content-md5", "x"),
            ("digest", "x"),
            ("content-digest", "x"),
            ("repr-digest", "x"),
            ("expires", DATE),
            ("age", "3"),
            ("cache-control", "max-age=60"),
            ("cdn-cache-control", "max-age=60"),
            ("other-cache-control", "max-age=60"),
            ("edge-control", "cache-maxage=60"),
            ("surrogate-control", "content=\"ESI/1.0\""),
            ("x-accel-expires", "60"),
            ("x-reverse-proxy-ttl", "60"),
            ("vary", "x-a"),
            ("date", DATE),
            ("set-cookie", "a=b"),
            ("set-cookie", "c=d"),
            ("content-language", "de"),
        ];
        let kept = [0, 19, 20, 21, 22, 23].map(|place| said[place]);
        assert_eq!(page_fields(&fields(&said), &[]), fields(&kept));
        // One of the names that a rule may have in `targets`.
        let targets = [HeaderName::from_static("shop-control")];
        let said = [said[0], ("shop-control", "max-age=60"), said[19], said[20]];
        assert_eq!(page_fields(&fields(&said), &targets), fields(&[said[0], said[2], said[3]]));
    }

    #[test]
    fn a_stored_template_has_the_fields_of_its_pages_in_both_forms() {
        let said = [
            ("surrogate-control", "max-age=60, content=\"SSI/1.0\""),
            ("etag", "\"a\""),
            ("date", DATE),
            ("x-a", "1"),
        ];
        let head = stored(&[], &said, &CachePolicy::default());
        let template = head.template.as_deref();
        assert_eq!(template.map(|template| template.language), Some(Language::Ssi));
        let page = template.map(|template| (template.page.map.clone(), template.page.http1.to_vec()));
        let lines = format!("date: {DATE}\r\nx-a: 1\r\n").into_bytes();
        assert_eq!(page, Some((fields(&said[2..]), lines)));
        assert!(head.fields.map.contains_key("etag"), "it validates the template");
    }

    #[test]
    fn a_head_weighs_what_makes_it_a_template() {
        let said = [("surrogate-control", "max-age=60, content=\"ESI/1.0\""), ("x-a", "1")];
        let head = stored(&[], &said, &CachePolicy::default());
        let weight = head.template.as_ref().map_or(0, |template| template.memory_bytes());
        let none = head.clone().with_language(None);
        assert!(weight > 0 && none.template.is_none());
        assert_eq!(head.memory_bytes(), none.memory_bytes() + weight);
        let again = none.with_language(Some(Language::Ssi));
        assert_eq!(again.language(), Some(Language::Ssi));
    }
}
