//! Names of members, purges and logs.
//!
//! In: the system's source of random bytes. Out: 128 bits of it.

use crate::error::RemoteError;

/// A name that nobody else draws.
pub(super) fn draw() -> Result<u128, RemoteError> {
    let mut bytes = [0; 16];
    let random = aws_lc_rs::rand::SystemRandom::new();
    aws_lc_rs::rand::SecureRandom::fill(&random, &mut bytes)
        .map_err(|_| RemoteError::Thread(std::io::Error::other("no random number")))?;
    Ok(u128::from_ne_bytes(bytes))
}
