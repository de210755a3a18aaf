//! What can be wrong with the admin's settings. All of it is the configuration's fault.

/// A setting that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// An empty token would be no protection.
    #[error("the admin token is empty")]
    TokenEmpty,
    /// A token travels in a field, so it has to be made of visible ASCII characters.
    #[error("the admin token has a character that cannot stand in a field")]
    TokenCharacter,
}
