//! The tier that a look-up has to think of although memory may have an answer, because others write to it as well.
//!
//! In: the tiers of a store. Out: which of them that is, and when it is asked: before memory, as plain files are, or for what
//! memory has no fresh answer to, as values in another program's memory are. A store has one such tier at most.

use std::sync::Arc;

use crate::tier::StoreTier;

/// See the head of the file.
#[derive(Debug)]
pub(crate) enum Outside {
    /// There is none.
    Nothing,
    /// It is asked before memory.
    First(Arc<StoreTier>),
    /// It is asked anew for what memory has no fresh answer to.
    Anew(Arc<StoreTier>),
}

impl Outside {
    /// The first of these that is such a tier.
    pub(crate) fn of(tiers: &[Arc<StoreTier>]) -> Self {
        let is_outside = |tier: &&Arc<StoreTier>| tier.is_before_memory() || tier.is_asked_anew();
        match tiers.iter().find(is_outside) {
            None => Self::Nothing,
            Some(tier) if tier.is_before_memory() => Self::First(Arc::clone(tier)),
            Some(tier) => Self::Anew(Arc::clone(tier)),
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<&Arc<StoreTier>> {
        match self {
            Self::First(tier) => Some(tier),
            Self::Nothing | Self::Anew(_) => None,
        }
    }

    #[inline]
    pub(crate) fn anew(&self) -> Option<&Arc<StoreTier>> {
        match self {
            Self::Anew(tier) => Some(tier),
            Self::Nothing | Self::First(_) => None,
        }
    }
}
