//! Numbers that no other larder has.
//!
//! In: nothing. Out: 128 bits from the system, where it has some.

/// A number that no other record has.
pub(crate) fn draw() -> Option<u128> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::SecureRandom::fill(&aws_lc_rs::rand::SystemRandom::new(), &mut bytes).ok()?;
    Some(u128::from_le_bytes(bytes))
}
