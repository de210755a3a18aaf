//! The text of a config that is in force, for those who look at the running larder.
//!
//! In: a checked document with its text. Out: the text with `***` in place of every secret, the lines of sites and rules, and how the
//! file on disk differs by now. Secrets are cut out while the config is read: the text that is kept has none, so nothing can show one.
//! They are kept beside it: the file as it is by then may have an old secret in a comment, and a warning may quote one.
//! `mask` says what a secret is, `sound` which names are those of secrets, `query` what of a query is one, `forms` how secrets may stand
//! elsewhere; `places` finds lines, `difference` compares.
//! Deliberately absent: the text of a file that is no good config. Secrets in it are not known by their places.

pub(crate) mod difference;
mod forms;
pub(crate) mod hidden;
mod mask;
mod places;
pub(crate) mod query;
pub(crate) mod sound;

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::document::Table;
use crate::document::source::Source;
use crate::flags::Flags;
use crate::sections::config::Config;
use forms::Forms;
use hidden::Hidden;
pub use places::{RulePlace, SitePlace};

/// The text of a config without its secrets, and what stands where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigText {
    /// The file as it was named; `None` where larder runs without one.
    pub file: Option<String>,
    /// Its text, `***` in place of secrets; empty without a file. It has the lines of the file.
    pub text: String,
    /// The sites, in the order of the file.
    pub sites: Vec<SitePlace>,
    /// The rules, in the order of the file.
    pub rules: Vec<RulePlace>,
    /// Where it was read, and what the command line said over it.
    read_from: Option<(PathBuf, Flags)>,
    /// Its secrets, which may stand as plain words in another text.
    secrets: Forms,
    /// Of the text with its secrets, by a key of this process.
    digest: u64,
}

impl ConfigText {
    /// What is kept of `text`, of which `document` and `config` were made.
    pub(crate) fn of(
        (file, text): (&str, &str),
        (document, config): (&Table, &Config),
        hidden: Vec<Hidden>,
    ) -> Self {
        let (shown, secrets) = mask::masked(text, document, hidden);
        let (sites, rules) = places::of(&Source::new(file, text), document, config);
        Self {
            file: Some(file.to_owned()),
            text: shown,
            sites,
            rules,
            read_from: None,
            secrets,
            digest: digest(text),
        }
    }

    /// The same, where it can be read again.
    pub(crate) fn read_from(self, path: PathBuf, flags: Flags) -> Self {
        Self { read_from: Some((path, flags)), ..self }
    }

    /// Another text about this config, without the secrets in it.
    pub fn without_secrets(&self, text: &str) -> String {
        self.secrets.cut_out(text)
    }
}

/// Tells texts apart without their being kept: a secret in one cannot be guessed from it outside this process.
fn digest(text: &str) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(text)
}
