//! Where a listing of files goes on, without anybody remembering it.
//!
//! In and out: a directory, and for it and each directory above it how far it has been read, as the file system counts that.
//! So going on costs no more than it did to get there, however many files a directory has, and a listing that nobody goes on
//! with costs nothing. It comes back from outside: names in it are resolved beneath the store like all others.

use std::fmt;
use std::str::FromStr;

use larder_tier::cursor::NoCursor;

/// Directories in one another that are listed; no URL has more.
const DEPTH_MAX: usize = 40;

/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 4000;

/// Where a listing goes on. Has a form as text, which is to be handed back as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesCursor {
    /// The directory that is being read.
    path: Vec<u8>,
    /// How far the root has been read, and each directory on the way to that one.
    read: Vec<u64>,
}

impl Default for FilesCursor {
    /// The beginning.
    fn default() -> Self {
        Self { path: Vec::new(), read: vec![0] }
    }
}

impl FilesCursor {
    /// Stands before its text in a store's listing.
    pub const LETTER: char = 'f';

    /// The directory, and how far it has been read; `None` at the end.
    pub(super) fn place(&self) -> Option<(&[u8], u64)> {
        Some((&self.path, *self.read.last()?))
    }

    /// The directory has been read up to here.
    pub(super) fn set_read(&mut self, cookie: u64) {
        if let Some(read) = self.read.last_mut() {
            *read = cookie;
        }
    }

    /// What lies in the directory under a name.
    pub(super) fn beneath(&self, name: &[u8]) -> Vec<u8> {
        let separator: &[u8] = if self.path.is_empty() { b"" } else { b"/" };
        [&self.path, separator, name].concat()
    }

    /// Goes into a directory, unless that would be too deep.
    pub(super) fn enter(&mut self, path: Vec<u8>) {
        if self.read.len() < DEPTH_MAX && path.len() <= PATH_BYTES_MAX {
            self.path = path;
            self.read.push(0);
        }
    }

    /// Goes on in the directory above.
    pub(super) fn leave(&mut self) {
        self.read.pop();
        let above = self.path.iter().rposition(|byte| *byte == b'/');
        self.path.truncate(above.unwrap_or(0));
    }
}

impl fmt::Display for FilesCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for read in &self.read {
            write!(f, "{read:x}-")?;
        }
        self.path.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for FilesCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (read, path) = text.rsplit_once('-').ok_or(NoCursor)?;
        if path.len() > 2 * PATH_BYTES_MAX || !path.len().is_multiple_of(2) || !path.is_ascii() {
            return Err(NoCursor);
        }
        let byte = |at: usize| {
            let digits = path.get(at..at + 2).filter(|digits| !digits.starts_with('+'));
            u8::from_str_radix(digits?, 16).ok()
        };
        let path: Option<Vec<u8>> = (0..path.len()).step_by(2).map(byte).collect();
        let read: Result<Vec<u64>, _> =
            read.split('-').map(|cookie| u64::from_str_radix(cookie, 16)).collect();
        let (path, read) = (path.ok_or(NoCursor)?, read.map_err(|_| NoCursor)?);
        let depth = if path.is_empty() { 0 } else { path.split(|byte| *byte == b'/').count() };
        match depth + 1 == read.len() && read.len() <= DEPTH_MAX {
            true => Ok(Self { path, read }),
            false => Err(NoCursor),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_is_read_back(names in proptest::collection::vec("[^/]{1,20}", 0..6), cookies: [u64; 7]) {
            let mut cursor = FilesCursor::default();
            for (name, cookie) in names.iter().zip(cookies) {
                cursor.set_read(cookie);
                cursor.enter(cursor.beneath(name.as_bytes()));
            }
            prop_assert_eq!(cursor.to_string().parse::<FilesCursor>(), Ok(cursor.clone()));
            for _ in &names {
                cursor.leave();
            }
            prop_assert_eq!(cursor.place().unwrap().0, b"");
            cursor.leave();
            prop_assert!(cursor.place().is_none());
        }

        #[test]
        fn any_text_is_a_cursor_or_none(text: String) {
            let _ = text.parse::<FilesCursor>();
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "-", "0", "0-61", "0-0-", "0-0-6", "0-0-+1", "x-", "0-0-é", "-61"] {
            assert!(text.parse::<FilesCursor>().is_err(), "{text}");
        }
    }
}
