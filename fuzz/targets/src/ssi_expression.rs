//! Conditions of SSI: see [`crate::condition`].

use larder_http::template::Language;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    crate::condition::check(Language::Ssi, input);
}
