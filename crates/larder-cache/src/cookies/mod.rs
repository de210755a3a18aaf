//! Whose a cookie is: of somebody, or of no consequence.
//!
//! In: names, and what a response sets. Out: which cookies of a request say that its page may be one person's
//! ([`CachePolicy::personal_cookie`](crate::CachePolicy::personal_cookie) puts the two lists together), and which cookies of
//! a response are somebody's ([`own`](mod@own)), so that they are never stored.
//! The names that many sites have in common are [`larder_http::fields::cookie_names`].

mod harmless;
pub mod own;
mod session;

pub use harmless::HarmlessNames;
pub use own::{Caution, OwnSign, Relieved, cookies_of, own_sign};
pub use session::SessionNames;

/// A name with at most one `*`, which stands for any text.
fn split_at_star(pattern: &str) -> (&str, Option<&str>) {
    match pattern.split_once('*') {
        Some((before, after)) => (before, Some(after)),
        None => (pattern, None),
    }
}

/// Whether `name` begins and ends so, without overlap.
fn is_between(name: &[u8], before: &[u8], after: &[u8]) -> bool {
    name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
}

#[cfg(test)]
mod tests;
