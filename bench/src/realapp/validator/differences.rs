//! Known differences between larder's pages and mod_include's: where they are, and why.
//!
//! In: differences.toml. Out: mod_include's page with the text that larder has in its place. Each entry names its reason, and counts
//! how many pages needed it, so that one that is out of date is found.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::super::fetch::{Answer, MadeAnew};

/// What both make anew for each request.
pub(super) const MADE_ANEW: &MadeAnew = &[];
const EVERY_PAGE: &str = "*";

/// The whole list.
pub(super) struct Differences {
    entries: Vec<Difference>,
}

struct Difference {
    /// A target without its query, or `*`.
    page: String,
    apache: String,
    larder: String,
    reason: String,
    used: usize,
}

impl Differences {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Self::of(&text).with_context(|| file.display().to_string())
    }

    fn of(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse()?;
        let list = table.get("difference").and_then(toml::Value::as_array).context("no list `difference`")?;
        let entries = list.iter().map(|entry| {
            let text = |key: &str| -> Result<String> {
                let value = entry.get(key).and_then(toml::Value::as_str);
                Ok(value.with_context(|| format!("an entry has no `{key}`"))?.to_owned())
            };
            let difference = Difference {
                page: text("page")?,
                apache: text("apache")?,
                larder: text("larder")?,
                reason: text("reason")?,
                used: 0,
            };
            ensure!(!difference.apache.is_empty() && !difference.reason.is_empty(), "an entry is empty");
            Ok(difference)
        });
        Ok(Self { entries: entries.collect::<Result<_>>()? })
    }

    /// What larder should answer where mod_include answers `own`.
    pub(super) fn applied(&mut self, target: &str, own: &Answer) -> Answer {
        let path = target.split('?').next().unwrap_or(target);
        let mut expected = own.clone();
        for entry in &mut self.entries {
            if entry.page != EVERY_PAGE && entry.page != path {
                continue;
            }
            let replaced = replaced(&expected.body, entry.apache.as_bytes(), entry.larder.as_bytes());
            if replaced != expected.body {
                entry.used += 1;
                expected.body = replaced;
            }
        }
        expected
    }

    pub(super) fn print(&self) {
        for entry in &self.entries {
            println!("known difference, {} times, {}: {}", entry.used, entry.page, entry.reason);
        }
    }

    /// Fails where an entry was not needed.
    pub(super) fn are_all_needed(&self) -> Result<()> {
        for entry in &self.entries {
            ensure!(
                entry.used > 0,
                "differences.toml: no page needs the entry of {}: {}",
                entry.page,
                entry.reason
            );
        }
        Ok(())
    }
}

fn replaced(body: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.windows(old.len()).position(|window| window == old) {
        all.extend_from_slice(&rest[..at]);
        all.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    all.extend_from_slice(rest);
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIST: &str =
        "[[difference]]\npage = \"/a\"\napache = \"x\"\nlarder = \"yy\"\nreason = \"because\"\n";

    #[test]
    fn an_entry_counts_for_its_page_alone_and_has_to_be_needed() {
        let mut differences = Differences::of(LIST).unwrap();
        let own = Answer { body: b"1x2x".to_vec(), ..Answer::default() };
        assert_eq!(differences.applied("/b", &own).body, b"1x2x");
        assert!(differences.are_all_needed().is_err());
        assert_eq!(differences.applied("/a?debug", &own).body, b"1yy2yy");
        differences.are_all_needed().unwrap();
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        assert!(Differences::of(&LIST.replace("because", "")).is_err());
        assert!(Differences::of("difference = []").is_ok());
        assert!(Differences::of("").is_err());
    }

    #[test]
    fn the_list_of_this_checkout_can_be_read() {
        Differences::read(&crate::checkout().join("tests/realapp/validator/differences.toml")).unwrap();
    }
}
