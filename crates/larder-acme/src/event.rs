//! What the thread reports, for the operator's messages.
//!
//! In: what happened. Out: one [`Event`] each, on the thread that orders, in order. The function that takes them
//! must not wait: orders wait meanwhile.
//! Their text may quote the authority, on one line and of bounded length.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use larder_http::time::WallTime;

use crate::error::Failure;
use crate::schedule::Next;
use crate::storage::Aside;

/// Where events go.
pub type Report = Arc<dyn Fn(Event) + Send + Sync>;

/// How far an order is. After each step a crash leaves what was served before, or the new certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The key for the new certificate is stored.
    KeyStored,
    /// The account is known to the authority.
    AccountReady,
    /// The order is there.
    Ordered,
    /// The proof can be seen, and the authority is asked to look.
    ProofShown,
    /// The authority has accepted the proof.
    Proven,
    /// The order is noted, so that a restart goes on with it.
    OrderNoted,
    /// The authority has the request for the certificate.
    Finalized,
    /// The certificate is here.
    Downloaded,
    /// The certificate is stored, and counts from now on.
    ChainStored,
    /// Its key is in its place.
    Stored,
}

impl Step {
    /// All, in their order.
    pub const ALL: [Self; 10] = [
        Self::KeyStored,
        Self::AccountReady,
        Self::Ordered,
        Self::ProofShown,
        Self::Proven,
        Self::OrderNoted,
        Self::Finalized,
        Self::Downloaded,
        Self::ChainStored,
        Self::Stored,
    ];
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// An order has made a step. For the curious.
    Progress {
        /// Whose certificate.
        name: String,
        /// Which step.
        step: Step,
    },
    /// There is a new certificate.
    Issued {
        /// For which name.
        name: String,
        /// Until when it is valid.
        not_after: WallTime,
        /// The authority knows that it replaces the last one (RFC 9773 5).
        replaces: bool,
    },
    /// An attempt has failed. What was served before still is.
    Failed {
        /// For which name.
        name: String,
        /// Why.
        failure: Failure,
        /// How many in a row.
        failures: u32,
        /// How long nothing is tried.
        wait: Duration,
    },
    /// The authority was asked when it wants a renewal.
    Suggested {
        /// For which name.
        name: String,
        /// When the certificate is renewed by what it said, and why then.
        next: Next,
    },
    /// The authority could not be asked when it wants a renewal. It is asked again.
    NotSuggested {
        /// For which name.
        name: String,
        /// Why.
        failure: Failure,
    },
    /// A file is damaged.
    Damaged {
        /// Which one.
        path: PathBuf,
        /// Where it is now; `None` where it was left alone.
        moved_to: Option<PathBuf>,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read or written.
    Storage {
        /// Which one, and why.
        failure: Failure,
    },
    /// There is a new account.
    AccountCreated {
        /// Its URL at the authority.
        url: String,
    },
    /// The authority does not know the account any more.
    AccountGone {
        /// Its URL.
        url: String,
    },
    /// Another process orders. This one takes what it finds.
    Follows,
    /// This process orders from now on.
    Leads,
}

impl Event {
    /// Whether an operator has to know it.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::Failed { .. } | Self::Damaged { .. } | Self::Storage { .. } | Self::AccountGone { .. }
        )
    }

    /// Whether it is of interest only to those who look for a fault.
    pub fn is_detail(&self) -> bool {
        matches!(self, Self::Progress { .. } | Self::Suggested { .. } | Self::NotSuggested { .. })
    }
}

impl From<Aside> for Event {
    fn from(aside: Aside) -> Self {
        Self::Damaged { path: aside.path, moved_to: aside.to, reason: aside.reason }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Progress { name, step } => write!(f, "{name}: {step:?}"),
            Self::Issued { name, .. } => write!(f, "{name}: a new certificate is in use"),
            Self::Failed { name, failure, wait, .. } => {
                write!(
                    f,
                    "{name}: no new certificate: {}; next attempt in {} s",
                    failure.text,
                    wait.as_secs()
                )
            }
            Self::Suggested { name, next } => {
                write!(f, "{name}: next renewal at {} s since 1970: {}", next.at.secs(), next.why.words())
            }
            Self::NotSuggested { name, failure } => {
                write!(f, "{name}: no window for a renewal: {}", failure.text)
            }
            Self::Damaged { path, moved_to: Some(to), reason } => {
                write!(f, "{} is damaged and now {}: {reason}", path.display(), to.display())
            }
            Self::Damaged { path, moved_to: None, reason } => {
                write!(f, "{} is damaged: {reason}", path.display())
            }
            Self::Storage { failure } => f.write_str(&failure.text),
            Self::AccountCreated { url } => write!(f, "the authority has a new account: {url}"),
            Self::AccountGone { url } => write!(f, "the authority does not know the account {url}"),
            Self::Follows => f.write_str("another process orders certificates in the same directory"),
            Self::Leads => f.write_str("this process orders certificates"),
        }
    }
}
