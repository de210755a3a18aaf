//! A purge as the running larder is asked for it, and what it says to that.

use std::time::Duration;

use bytes::Bytes;
use larder_cache::purge::{Mode, Selector};

/// A purge that somebody wants, in the words in which it was asked for: nothing of it is checked against the sites yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeQuestion {
    /// What.
    pub selectors: Vec<Selector>,
    /// What becomes of it.
    pub mode: Mode,
    /// A host of the only site whose responses it concerns; all sites where there is none.
    pub site: Option<String>,
    /// In whose words: `api`, `cli`, `fastly`, `cloudflare`.
    pub dialect: &'static str,
    /// How long it waits until every journal has it, more than 0 and at most 60 s. Default 30 s.
    pub wait: Option<Duration>,
}

/// The longest that a purge waits for the journals.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

/// A purge that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeReceipt {
    /// Its name.
    pub id: String,
    /// Responses that were taken out at once.
    pub removed: u64,
    /// All that is known of it, as JSON.
    pub json: Bytes,
}

/// Why a purge is not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPurged {
    /// What is wrong, by the number of the selector. Nothing was purged.
    Wrong(Vec<(usize, String)>),
    /// There is no such site. Nothing was purged.
    NoSite(String),
    /// As many purges are under way as may be. Nothing was purged.
    Busy,
    /// It is in force, but may not hold after a crash.
    NotHeld {
        /// What is known of it.
        receipt: PurgeReceipt,
        /// Why, in words.
        why: String,
    },
    /// It is in force here, and other larders of the fleet may use old responses still.
    Incomplete {
        /// What is known of it.
        receipt: PurgeReceipt,
        /// Who, in words.
        why: String,
    },
    /// larder's own fault.
    Broken(String),
}
