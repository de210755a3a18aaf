//! Names of files and what lies beside them, read and written again; for fuzz targets alone.
//!
//! In: any bytes. Out: what names and meta make of them. What has to hold is said by the targets. Behind the feature `fuzzing`, off
//! by default and on in fuzz/ only, so that no release has it; hidden from the docs, and no promise to anybody.

use rustix::fs::FileType;

use super::meta::{Meta, read};
use super::name::{Name, TargetUri, Unnameable};
use super::sys::Status;
use larder_tier::format::log::{read_log, write_note};

/// The meta of a file of 10 bytes with inode 99, modified 5 ns after second 1 700 000 000, if `lines` are one, and its lines
/// for `uri`.
pub fn meta(lines: &[u8], uri: &TargetUri<'_>) -> Option<(Meta, Vec<u8>)> {
    let file = Status {
        device: (0, 1),
        inode: 99,
        size: 10,
        modified: (1_700_000_000, 5),
        changed: (0, 0),
        allocated: 4096,
        links: 1,
        kind: FileType::RegularFile,
    };
    let (_, meta) = read(lines, &file)?;
    let again = meta.write(uri, &file);
    Some((meta, again))
}

/// What was read of a directory's journal.
#[derive(Debug, PartialEq, Eq)]
pub struct FileJournal {
    /// All of it, written again.
    pub again: Vec<u8>,
    /// How many notes it has.
    pub notes: usize,
    /// Whether nothing was missing before its end.
    pub is_whole: bool,
}

/// The journal of a directory, if its head is one.
pub fn file_journal(bytes: &[u8]) -> Option<FileJournal> {
    let log = read_log(bytes)?;
    let mut again = log.head.write();
    log.notes.iter().for_each(|note| write_note(note, &mut again));
    Some(FileJournal { again, notes: log.notes.len(), is_whole: log.is_whole })
}

/// The parts of a URI that a name stands for.
type Named = (String, String, Option<String>);

/// The name of the file that stands for `uri`, and what is read of it.
///
/// # Errors
/// No file can stand for it.
pub fn name(uri: &TargetUri<'_>) -> Result<(Vec<u8>, Option<Named>), Unnameable> {
    Name::of(uri).map(|name| (name.bytes().to_vec(), name.uri()))
}

/// What is read of the name of a file that was found.
pub fn name_found(path: &[u8]) -> Option<Named> {
    Name::found(path).uri()
}
