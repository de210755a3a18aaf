//! How the file on disk differs from the config in force.
//!
//! In: what is kept of the config, and the file as it is now. Out: nothing where the texts are the same; else why, and changed lines with
//! some around them. Both texts are without secrets when they are compared, so a change of a secret alone is told by a word.
//! The time that a comparison takes and the number of its lines are bounded. Past the time, lines count as replaced that might be the same.

use std::path::Path;
use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, TextDiff};

use super::{ConfigText, digest};
use crate::load::{parse_with, read};

/// The most lines of a difference.
pub const DIFF_LINES_MAX: usize = 2000;
/// Lines around each change.
const AROUND: usize = 3;
/// How long lines are compared at most.
const TIME_MAX: Duration = Duration::from_millis(200);

/// How a file differs from the config that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It has other lines.
    Changed {
        /// The lines, in their order; at most [`DIFF_LINES_MAX`].
        lines: Vec<DiffLine>,
        /// How many more there are.
        left_out: usize,
    },
    /// It has other secrets, or other ends of lines, and nothing else.
    Unseen,
    /// There is no such file.
    Absent,
    /// It cannot be read, is no regular file, or is no good config.
    Unreadable,
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Where the line is.
    pub kind: DiffKind,
    /// Its number in the config that runs where it is removed, else in the file as it is now; from 1.
    pub line: usize,
    /// Its text, without secrets and without its end.
    pub text: String,
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffKind {
    /// In the config that runs alone.
    Removed,
    /// In the file alone.
    Added,
    /// In both.
    Same,
}

impl ConfigText {
    /// How the file differs by now from what runs; `None` where it does not, or where larder runs without a file. Reads the file, and
    /// checks it as a reload would.
    pub fn difference(&self) -> Option<Difference> {
        let (path, flags) = self.read_from.as_ref()?;
        let name = path.display().to_string();
        // A pipe or a device may have nothing to read for as long as it likes.
        if matches!(path.metadata(), Ok(found) if !found.is_file()) {
            return Some(Difference::Unreadable);
        }
        let text = match read(path, &name) {
            Ok(text) => text,
            Err(_) if matches!(path.try_exists(), Ok(false)) => return Some(Difference::Absent),
            Err(_) => return Some(Difference::Unreadable),
        };
        if digest(text.strip_prefix('\u{feff}').unwrap_or(&text)) == self.digest {
            return None;
        }
        let base_dir = path.parent().unwrap_or(Path::new(""));
        match parse_with(&text, &name, base_dir, flags) {
            Ok(checked) => Some(self.difference_to(&checked.text)),
            Err(_) => Some(Difference::Unreadable),
        }
    }

    /// How another text, which is not the same, differs from this one.
    pub(crate) fn difference_to(&self, now: &Self) -> Difference {
        let mut config = TextDiff::configure();
        config.algorithm(Algorithm::Myers).newline_terminated(false);
        config.deadline(Instant::now() + TIME_MAX);
        // A secret of the one may be a plain word of the other, such as the last token in a comment.
        let (before, after) = (now.secrets.cut_out(&self.text), self.secrets.cut_out(&now.text));
        let before: Vec<_> = before.lines().collect();
        let after: Vec<_> = after.lines().collect();
        let diff = config.diff_slices(&before, &after);
        let (mut lines, mut left_out) = (Vec::new(), 0usize);
        for change in diff.grouped_ops(AROUND).iter().flatten().flat_map(|op| diff.iter_changes(op)) {
            let (kind, index) = match change.tag() {
                ChangeTag::Delete => (DiffKind::Removed, change.old_index()),
                ChangeTag::Insert => (DiffKind::Added, change.new_index()),
                ChangeTag::Equal => (DiffKind::Same, change.new_index()),
            };
            if lines.len() < DIFF_LINES_MAX {
                let line = index.map_or(0, |index| index + 1);
                lines.push(DiffLine { kind, line, text: change.value().to_owned() });
            } else {
                left_out += 1;
            }
        }
        if lines.is_empty() { Difference::Unseen } else { Difference::Changed { lines, left_out } }
    }
}
