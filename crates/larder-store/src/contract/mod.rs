//! What every store must do, whatever stands behind its memory, and the same for long random runs against a plain map.
//!
//! One list of behaviours ([`behaviours`], [`endings`]) runs on memory alone and on disks in each layout; a behaviour that only disks
//! can have asks for them. [`model`] knows nothing of layouts either. All of it goes through the store's public face, as
//! the proxy does; it is among the unit tests only so that one program less is linked.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used)]

mod behaviours;
mod endings;
mod fixture;
mod lives;
mod model;
