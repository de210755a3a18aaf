//! What helps where a rule of caching forbids to store.
//!
//! In: the rule. Out: a sentence, for `larder explain` and for views.

use larder_cache::NotStorable;

/// What the app or the config would have to say for such an answer to be stored, where that can be sensible.
pub(crate) const fn help(reason: NotStorable) -> Option<&'static str> {
    match reason {
        NotStorable::Method => Some("Ask with GET to see whether that is stored."),
        NotStorable::PartialContent => Some("Ask without Range: larder answers ranges from the whole."),
        NotStorable::RangeNotSatisfiable => Some("Ask for a range that lies within the content."),
        NotStorable::RequestNoStore => {
            Some("Leave no-store out of the request, or set request_directives = \"ignore\".")
        }
        NotStorable::MustUnderstand => {
            Some("Leave must-understand out, or answer with a status of RFC 9110.")
        }
        NotStorable::NoStore => Some(
            "Leave no-store out, or let CDN-Cache-Control say what holds here and Cache-Control what holds elsewhere.",
        ),
        NotStorable::Private => {
            Some("Say public or s-maxage instead, if it really is the same for everybody.")
        }
        NotStorable::Authorization => {
            Some("Say public, s-maxage or must-revalidate, if it is the same for all who may see it.")
        }
        NotStorable::SessionCookie => Some(
            "Let the app say max-age; or name the cookie in harmless_cookies, put it into the key, or say cookies = \
             \"ignore\" for these paths.",
        ),
        NotStorable::VaryAny => Some(
            "Name in Vary the request fields that matter, and none that a proxy writes, such as X-Forwarded-For.",
        ),
        NotStorable::SetCookie => Some(
            "Set the cookie elsewhere, or say max-age if all may have it; set_cookie = \"strip\" takes it out.",
        ),
        NotStorable::SetSessionCookie | NotStorable::SetPersonalCookie => Some(
            "Set the cookie elsewhere, or say public or s-maxage if the page is the same for all: it is stored without \
             the cookie then, as under set_cookie = \"strip\".",
        ),
        NotStorable::SetCookieBypass => Some("Set another set_cookie for these paths."),
        NotStorable::NoCache => Some("Add an ETag or Last-Modified, so that it can be validated."),
        NotStorable::NoLifetime => Some("Say max-age, add an ETag, or set ttl for these paths."),
        NotStorable::Interim | NotStorable::NotModified | NotStorable::PreconditionFailed => None,
    }
}
