//! What lies beside a body, in a box of its own, since few bodies have any of it.

use std::sync::{Arc, OnceLock};

use larder_assemble::Program;
use larder_tier::Reservation;

/// The box that all of this lies in.
pub(super) const BOX_BYTES: u64 = size_of::<Beside>() as u64;

/// What was made of a body.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) program: OnceLock<(Arc<Program>, Reservation)>,
    pub(super) digest: OnceLock<([u8; 32], Reservation)>,
}
