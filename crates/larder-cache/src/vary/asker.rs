//! Fields of requests that say who asks: by them more of a response may differ than its content.
//!
//! In: what a stored response was selected by, and a request. Out: whether the two differ in such a field. The validators
//! of the response are not offered for that request then. An entity tag is that of the content, and a 304 need not
//! repeat what else the origin would say (RFC 9110 15.4.5). For example, an API that allows several sites has one tag
//! for all of them, and an Access-Control-Allow-Origin for each. The 304 would hand over the fields that were made
//! for another.

use http::{HeaderMap, header};

use super::{Selecting, first_value, write_value};
use crate::policy::is_credentials;

/// A page elsewhere on whose behalf a browser asks, its questions of CORS, and a person's cookies. Credentials as well.
const ASKERS: [http::HeaderName; 4] = [
    header::ORIGIN,
    header::ACCESS_CONTROL_REQUEST_HEADERS,
    header::ACCESS_CONTROL_REQUEST_METHOD,
    header::COOKIE,
];

impl Selecting {
    /// Whether the response was made for another asker than that of `request`, as far as Vary names what tells them
    /// apart.
    pub fn is_for_another_asker(&self, request: &HeaderMap) -> bool {
        let mut rest = &*self.key.0;
        self.names.names().iter().any(|name| {
            let (own, behind) = first_value(rest);
            rest = behind;
            if !ASKERS.contains(name) && !is_credentials(name) {
                return false;
            }
            let mut value = Vec::new();
            write_value(request, name, |part| value.extend_from_slice(part));
            first_value(&value).0 != own
        })
    }
}
