//! The labels of this crate's counters, and the words that each may have.

use larder_assemble::{Fault, IncludeFailure};
use larder_http::fields::cache_status::Forward;
use larder_http::template::Language;
use larder_observe::{Label, Vocabulary};

use crate::before::Before;
use crate::invalidation::InvalidationKind;
use crate::not_stored::NotStored;

impl Label for InvalidationKind {
    const NAME: &'static str = "kind";
    const TOKENS: &'static [&'static str] = &["unsafe-method", "purge"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// Why something is fetched that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefreshKind {
    /// It is stale and was used all the same.
    Behind,
    /// It is in use and its lifetime ends soon.
    Ahead,
    /// The last attempt failed, and it stands in meanwhile.
    Down,
    /// A disk did not keep up with a body when it was sent, twice.
    Gaps,
}

impl Label for RefreshKind {
    const NAME: &'static str = "kind";
    const TOKENS: &'static [&'static str] = &["behind", "ahead", "down", "gaps"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// The words that counters are told apart by.
pub fn vocabulary() -> Vocabulary {
    Vocabulary::of::<ForwardLabel, NotStored, InvalidationKind, RefreshKind>()
        .with_before::<Before>()
        .with_assembly::<FailureLabel, LanguageLabel, FaultLabel>(LIMITS)
}

/// A forward reason as a label.
pub(crate) struct ForwardLabel(pub(crate) Forward);

impl Label for ForwardLabel {
    const NAME: &'static str = "status";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; Forward::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = Forward::ALL[index].token();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        self.0 as usize
    }
}

/// Why an include of a page failed, as a label.
pub(crate) struct FailureLabel(pub(crate) IncludeFailure);

impl Label for FailureLabel {
    const NAME: &'static str = "reason";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; IncludeFailure::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = IncludeFailure::ALL[index].as_str();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        self.0 as usize
    }
}

/// The failures that are limits of a page, and nobody's answer.
const LIMITS: &[&str] = &[
    IncludeFailure::PageTimeout.as_str(),
    IncludeFailure::TooLarge.as_str(),
    IncludeFailure::Loop.as_str(),
    IncludeFailure::Depth.as_str(),
    IncludeFailure::Count.as_str(),
    IncludeFailure::Budget.as_str(),
];

/// The language of a template as a label.
pub(crate) struct LanguageLabel(pub(crate) Language);

impl Label for LanguageLabel {
    const NAME: &'static str = "language";
    const TOKENS: &'static [&'static str] = &[Language::Ssi.as_str(), Language::Esi.as_str()];

    fn index(&self) -> usize {
        self.0 as usize
    }
}

/// What is wrong with a template, as a label.
pub(crate) struct FaultLabel(pub(crate) Fault);

impl Label for FaultLabel {
    const NAME: &'static str = "problem";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; Fault::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = Fault::ALL[index].as_str();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_assembly_is_counted_under_itself() {
        for reason in IncludeFailure::ALL {
            assert_eq!(FailureLabel(reason).token(), reason.as_str());
        }
        for fault in Fault::ALL {
            assert_eq!(FaultLabel(fault).token(), fault.as_str());
        }
        for language in [Language::Ssi, Language::Esi] {
            assert_eq!(LanguageLabel(language).token(), language.as_str());
        }
        assert!(LIMITS.iter().all(|limit| FailureLabel::TOKENS.contains(limit)));
    }
}
