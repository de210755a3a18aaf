//! Which cookie or field decided, by name: of the request, or of what the origin sets.

use http::HeaderMap;
use larder_cache::cookies::own::first_own;
use larder_cache::{CachePolicy, NotStorable};
use larder_http::message::RequestHead;

use super::visible;

/// What of a request makes its page one person's, where the application gives no lifetime.
pub(super) fn deciding(request: &RequestHead, policy: &CachePolicy) -> Option<String> {
    if let Some(field) = policy.credentials(&request.fields) {
        return Some(format!("The field is {field}."));
    }
    let name = policy.personal_cookie(&request.fields)?;
    Some(format!("The cookie is \"{}\".", visible(name)))
}

/// What a reason that speaks of cookies or credentials was found by.
pub(super) fn named(
    reason: NotStorable,
    request: &RequestHead,
    answer: &HeaderMap,
    policy: &CachePolicy,
) -> Option<String> {
    match reason {
        NotStorable::Authorization | NotStorable::SessionCookie => deciding(request, policy),
        NotStorable::SetSessionCookie | NotStorable::SetPersonalCookie => {
            let (name, sign) = first_own(answer, policy)?;
            Some(format!("The cookie is \"{}\": {}.", visible(name), sign.words()))
        }
        _ => None,
    }
}

/// A sentence, and what it was found by.
pub(super) fn because(sentence: &str, found: Option<String>) -> String {
    match found {
        Some(found) => format!("{sentence} {found}"),
        None => sentence.to_owned(),
    }
}
