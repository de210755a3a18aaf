//! Calls of the protocol, repeated where the authority did not accept their nonce (RFC 8555 6.5).
//!
//! The library tries each request three times. An authority behind several machines, or one that rejects nonces to test its clients, may need
//! more. A request with a rejected nonce was not processed, so that a repetition is safe.

use instant_acme::Error as ProtocolError;

use crate::error::problem_type;

/// Calls beyond the first, of three requests each.
pub(crate) const CALLS_MORE: u32 = 5;

pub(crate) fn is_bad_nonce(error: &ProtocolError) -> bool {
    problem_type(error) == Some("badNonce")
}

/// The result of a call, an expression that makes a future and may be evaluated again.
macro_rules! despite_nonces {
    ($call:expr) => {{
        let mut more = $crate::nonces::CALLS_MORE;
        loop {
            match $call.await {
                Err(error) if more > 0 && $crate::nonces::is_bad_nonce(&error) => more -= 1,
                result => break result,
            }
        }
    }};
}
pub(crate) use despite_nonces;
