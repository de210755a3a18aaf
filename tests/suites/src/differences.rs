//! A list of differences, and why each is there: what a suite has found beside what is committed.
//!
//! In: the file, and what a run has shown. Out: a verdict. Each difference has to be in the file as it is, with a reason; what is in the
//! file and did not show has to leave it. Writing the file keeps the reasons, and leaves those of new differences to be filled in.
//! Deliberately absent: what a difference is. Each suite says that in lines of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

const FILE: &str = "differences.list";
const BECAUSE: &str = "because ";

/// Lines of difference, by title. No line is empty, or begins as a title, a reason or a comment does.
pub(crate) type Differences = BTreeMap<String, Vec<String>>;

/// Lines of difference and a reason, by file and title.
type Listed = BTreeMap<String, (Vec<String>, String)>;

/// A suite and its list.
pub(crate) struct List<'a> {
    /// The suite's name, which is that of its make target too.
    pub(crate) suite: &'static str,
    /// Comments at the beginning of the file.
    pub(crate) head: &'static str,
    /// Where the file lies.
    pub(crate) folder: &'a Path,
}

impl List<'_> {
    /// Compares with the file, or writes it. `compared` is how much was compared, for the closing line: `40 pages`.
    ///
    /// # Errors
    /// The file is not what the run has shown.
    pub(crate) fn judge(&self, found: &Differences, compared: &str, write: bool) -> Result<()> {
        let (suite, file) = (self.suite, self.folder.join(FILE));
        let listed = parse(&fs::read_to_string(&file).unwrap_or_default()).context(FILE)?;
        if write {
            fs::write(&file, self.head.to_owned() + &written(found, &listed)).context(FILE)?;
            println!("{suite}: {} written", file.display());
            return Ok(());
        }
        let wrong = breaches(found, &listed);
        for line in &wrong {
            println!("{suite}: {line}");
        }
        ensure!(wrong.is_empty(), "{} breaches; `make {suite} WRITE=1` writes the list anew", wrong.len());
        println!("{suite}: {compared}, {} of them with a difference that has its reason", found.len());
        Ok(())
    }
}

fn breaches(found: &Differences, listed: &Listed) -> Vec<String> {
    let mut wrong = Vec::new();
    for (title, lines) in found {
        match listed.get(title) {
            None => wrong.push(format!("{title}: not in the list: {}", lines.join(" "))),
            Some((expected, _)) if expected != lines => {
                wrong.push(format!("{title}: {}; in the list: {}", lines.join(" "), expected.join(" ")));
            }
            Some((_, reason)) if reason.is_empty() => wrong.push(format!("{title}: without a reason")),
            Some(_) => {}
        }
    }
    let gone = listed.keys().filter(|title| !found.contains_key(*title));
    wrong.extend(gone.map(|title| format!("{title}: in the list, and no difference any more")));
    wrong
}

fn parse(text: &str) -> Result<Listed> {
    let mut listed = Listed::new();
    let mut last = None;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(title) = line.strip_prefix("= ") {
            ensure!(listed.insert(title.to_owned(), Default::default()).is_none(), "{title:?} twice");
            last = Some(title.to_owned());
            continue;
        }
        let entry = last.as_ref().and_then(|title| listed.get_mut(title));
        let (lines, reason) = entry.with_context(|| format!("{line:?} before a title"))?;
        match line.strip_prefix(BECAUSE.trim_end()) {
            Some(why) => why.trim_start().clone_into(reason),
            None => lines.push(line.to_owned()),
        }
    }
    Ok(listed)
}

fn written(found: &Differences, listed: &Listed) -> String {
    let mut text = String::new();
    for (title, lines) in found {
        let reason = listed.get(title).map(|(_, reason)| reason.as_str()).unwrap_or_default();
        let _ =
            write!(text, "\n= {title}\n{}\n{}\n", lines.join("\n"), format!("{BECAUSE}{reason}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(title: &str, lines: &[&str]) -> Differences {
        Differences::from([(title.to_owned(), lines.iter().map(|&line| line.to_owned()).collect())])
    }

    #[test]
    fn a_difference_has_to_be_listed_as_it_is_and_with_a_reason() {
        let run = found("a: b", &["varnish 403, larder 405"]);
        let check = |list: &str, expected: &str| {
            let wrong = breaches(&run, &parse(list).unwrap());
            assert!(
                wrong.join("; ").contains(expected) && wrong.is_empty() == expected.is_empty(),
                "{wrong:?}"
            );
        };
        check("= a: b\nvarnish 403, larder 405\n", "without a reason");
        check("= a: b\nvarnish 403, larder 405\nbecause this\n", "");
        check("= a: b\nvarnish 403, larder 404\nbecause this\n", "in the list");
        check("", "not in the list");
        check(
            "= a: b\nvarnish 403, larder 405\nbecause this\n\n= c: d\nx\nbecause y\n",
            "no difference any more",
        );
        assert!(parse("because this").is_err() && parse("= a\n= a\n").is_err());
    }

    #[test]
    fn what_is_written_keeps_reasons_and_is_read_again() {
        let mut run = found("a: b", &["varnish gone, larder kept:", "  www.example.org/"]);
        let listed = parse("= a: b\nelse\nbecause this\n= c: d\nx\nbecause y\n").unwrap();
        run.extend(found("e: f", &["varnish 200, larder 404"]));
        let again = parse(&written(&run, &listed)).unwrap();
        assert_eq!(again.keys().collect::<Vec<_>>(), ["a: b", "e: f"]);
        assert_eq!(again["a: b"], (run["a: b"].clone(), "this".to_owned()));
        assert_eq!(again["e: f"].1, "");
    }
}
