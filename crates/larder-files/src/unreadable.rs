//! Files that cannot be read: the device has lost what lies in them.
//!
//! In: a file, and the error that reading it gave. Out: for as long as it is the same file it counts as absent, so that
//! requests are answered by the origin; after [`RETRY`] it is read once more. Each failure is counted, each file is told of
//! once. Marks are bounded: one that is forgotten costs one more failed read. Nearly always there are none, and then a
//! look-up costs one load.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use larder_tier::rank::RankedMutex;
use rustix::io::Errno;

use super::name::Name;
use super::sys::Status;

/// How long a file that could not be read is left alone.
const RETRY: Duration = Duration::from_secs(60);

/// Files that are marked at once.
const MARKS_MAX: usize = 4096;

/// Events that nobody took; older ones go.
const EVENTS_MAX: usize = 8;

#[derive(Debug)]
struct Mark {
    /// Which file; nothing where it could not even be opened.
    file: Option<Status>,
    until: Instant,
}

/// A file that could not be read, to be told of once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableFile {
    /// Where it lies beneath the store's directory.
    pub path: Vec<u8>,
    /// What the system said.
    pub why: String,
}

/// The marks.
#[derive(Debug, Default)]
pub(super) struct UnreadableFiles {
    count: AtomicUsize,
    failures: AtomicU64,
    marks: RankedMutex<HashMap<Name, Mark>>,
    events: RankedMutex<VecDeque<UnreadableFile>>,
}

impl UnreadableFiles {
    /// A file could not be read, or, without a status, not even opened.
    pub(super) fn note(&self, name: &Name, path: &[u8], file: Option<&Status>, error: &std::io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut marks = self.marks.lock();
        if marks.len() >= MARKS_MAX && !marks.contains_key(name) {
            marks.clear();
        }
        let mark = Mark { file: file.copied(), until: Instant::now() + RETRY };
        let before = marks.insert(name.clone(), mark);
        self.count.store(marks.len(), Ordering::Release);
        drop(marks);
        let is_known = before.is_some_and(|before| match (&before.file, file) {
            (Some(one), Some(other)) => one.has_content_of(other),
            (one, other) => one.is_none() && other.is_none(),
        });
        if !is_known {
            let mut events = self.events.lock();
            while events.len() >= EVENTS_MAX {
                events.pop_front();
            }
            events.push_back(UnreadableFile { path: path.to_vec(), why: error.to_string() });
        }
    }

    /// Whether this very file could not be read a while ago.
    pub(super) fn has(&self, name: &Name, file: &Status) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let is_it = |mark: &Mark| {
            mark.until > Instant::now() && mark.file.is_some_and(|marked| file.has_content_of(&marked))
        };
        self.marks.lock().get(name).is_some_and(is_it)
    }

    /// Reads that failed so far.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The oldest event that was not taken yet.
    pub(super) fn take_event(&self) -> Option<UnreadableFile> {
        self.events.lock().pop_front()
    }
}

/// Whether an error says that the device does not give what lies in a file. Others say that the file has changed, is gone or
/// is another user's, or that larder has no descriptor left: they say nothing of the file.
pub(super) fn is_of_the_device(error: &std::io::Error) -> bool {
    const CODES: [Errno; 9] = [
        Errno::IO,
        Errno::UCLEAN,
        Errno::BADMSG,
        Errno::NODEV,
        Errno::NXIO,
        Errno::REMOTEIO,
        Errno::STALE,
        Errno::TIMEDOUT,
        Errno::NODATA,
    ];
    Errno::from_io_error(error).is_some_and(|error| CODES.contains(&error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_is_marked_and_told_of_once_for_as_long_as_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::fs::write(&one, "one").unwrap();
        std::fs::write(&other, "other").unwrap();
        let status = |path| Status::of(std::fs::File::open(path).unwrap()).unwrap();
        let (one, other) = (status(&one), status(&other));
        let name = Name::found(b"h/a");
        let error = std::io::Error::from_raw_os_error(5);
        let unreadable = UnreadableFiles::default();
        assert!(!unreadable.has(&name, &one));
        for _ in 0..3 {
            unreadable.note(&name, b"h/a", Some(&one), &error);
        }
        assert!(unreadable.has(&name, &one) && !unreadable.has(&name, &other));
        assert!(!unreadable.has(&Name::found(b"h/b"), &one));
        assert_eq!(unreadable.failures(), 3);
        let told = unreadable.take_event().unwrap();
        assert!(told.path == b"h/a" && told.why.contains("os error 5"), "{told:?}");
        assert_eq!(unreadable.take_event(), None);
        for number in 0..2 * MARKS_MAX {
            unreadable.note(&Name::found(format!("h/{number}").as_bytes()), b"", None, &error);
        }
        assert!(unreadable.marks.lock().len() <= MARKS_MAX && unreadable.events.lock().len() <= EVENTS_MAX);
    }

    #[test]
    fn only_errors_of_the_device_make_a_file_unreadable() {
        use std::io::{Error, ErrorKind};
        for (error, is) in [
            (Errno::IO.into(), true),
            (Errno::UCLEAN.into(), true),
            (Errno::NOENT.into(), false),
            (Errno::ACCESS.into(), false),
            (Errno::MFILE.into(), false),
            (Error::from(ErrorKind::InvalidData), false),
            (Error::from(ErrorKind::UnexpectedEof), false),
        ] {
            assert_eq!(is_of_the_device(&error), is, "{error}");
        }
    }
}
