//! Templates in ESI: see [`crate::page`].

use larder_http::template::Language;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    crate::page::check(Language::Esi, input);
}
