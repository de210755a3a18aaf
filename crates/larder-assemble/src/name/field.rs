//! Names of fields as variables have them.
//!
//! In: `ACCEPT_LANGUAGE`, in any letter case. Out: `accept-language`.

use http::HeaderName;

/// The field that `ACCEPT_LANGUAGE` in `HTTP_ACCEPT_LANGUAGE` stands for, in any letter case.
pub(super) fn field(name: &[u8]) -> Option<HeaderName> {
    let name: Vec<u8> = name.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
    HeaderName::from_bytes(&name).ok()
}
