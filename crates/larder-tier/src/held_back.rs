//! Why something is not as it might be: a fixed word, and a sentence for people.

use std::borrow::Cow;

/// Why a response is in memory alone although there is more behind it, or why a record is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The fixed word.
    pub token: &'static str,
    /// A sentence for people.
    pub sentence: Cow<'static, str>,
}

impl HeldBack {
    /// It waits to be written.
    pub const QUEUED: Self = Self { token: "queued", sentence: Cow::Borrowed("It waits to be written.") };
}
