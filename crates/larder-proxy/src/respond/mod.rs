//! From what is there to what the client gets.
//!
//! In: a stored or arriving response, a static file, or a failure; and what the request asks of it (conditions, a
//! range, HEAD). Out: a response for the listener. Conditions and ranges are answered here for everything that larder
//! has the right to answer (RFC 9110 13.2.2 and 14), by the pure rules of `larder-cache`.

mod error;
mod multipart;
mod represent;

pub(crate) use error::failure;
pub(crate) use represent::{Represented, file, has_what_is_asked, represent, sized, unsent};
