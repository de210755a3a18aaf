//! A word for the next start, left elsewhere: what was invalidated in a directory could not be written down there.
//!
//! In: a directory on a file system that takes no more writes. Out: a small file of this user's in places that outlive the process
//! and lie elsewhere, by the name of that directory; and at the next start, whether there is one. Then nothing is believed
//! that larder stored in the directory before. It goes as soon as the directory's own journal is right again.
//!
//! The places are open to all users of the machine, so a file counts only if it is this user's own, and none is followed or
//! written over that is there already. Where none of them can be used, or all are emptied before the next start, nothing
//! is left to warn it: the guide says so.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::calls;
use super::name::digest;
use super::sys::Identity;

/// Where it may lie. What a service manager gives comes first: a service may see nothing of the others.
const GIVEN: [&str; 2] = ["STATE_DIRECTORY", "RUNTIME_DIRECTORY"];
const KNOWN: [&str; 2] = ["/var/tmp", "/dev/shm"];

/// The word about one directory.
#[derive(Debug)]
pub(super) struct Witness {
    paths: Vec<PathBuf>,
    text: String,
    is_left: AtomicBool,
}

impl Witness {
    pub(super) fn of(path: &Path, identity: Identity) -> Self {
        let given = GIVEN.iter().filter_map(std::env::var_os);
        // A service may be given several, with colons between.
        let given = given.flat_map(|all| std::env::split_paths(&all).collect::<Vec<_>>());
        Self::in_places(given.chain(KNOWN.map(PathBuf::from)), path, identity)
    }

    fn in_places(places: impl Iterator<Item = PathBuf>, path: &Path, identity: Identity) -> Self {
        let path = calls::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut which = path.as_os_str().as_bytes().to_vec();
        which.extend_from_slice(&identity.lasting());
        let name = format!("larder-{}", digest(&which));
        let text = format!(
            "larder could not write down what was invalidated in {}: nothing that it stored there before is used.\n",
            path.display()
        );
        Self { paths: places.map(|place| place.join(&name)).collect(), text, is_left: AtomicBool::new(false) }
    }

    /// Leaves the word in every place that takes it; says whether there is one.
    pub(super) fn leave(&self) -> bool {
        if self.is_left.load(Ordering::Acquire) {
            return true;
        }
        for path in &self.paths {
            // One that is there already says the same.
            let made = calls::create_new(path);
            let _ = made.and_then(|file| calls::write_all(&file, self.text.as_bytes()));
        }
        self.is_there()
    }

    /// Whether an earlier process, or this one, has left it.
    pub(super) fn is_there(&self) -> bool {
        let user = rustix::process::geteuid().as_raw();
        let is_ours = |path: &PathBuf| {
            let found = calls::symlink_metadata(path);
            found.is_ok_and(|found| found.is_file() && found.uid() == user)
        };
        let is_there = self.paths.iter().any(is_ours);
        self.is_left.store(is_there, Ordering::Release);
        is_there
    }

    /// The directory's journal is right again.
    pub(super) fn take_back(&self) {
        if self.is_left.swap(false, Ordering::AcqRel) {
            self.paths.iter().for_each(|path| drop(calls::remove_file(path)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn it_is_found_by_the_next_process_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let identity = |path: &Path| Identity::at(path).unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&other).unwrap();
        let places = || [folder.path().join("missing"), folder.path().to_owned()].into_iter();
        let of = |path: &Path| Witness::in_places(places(), path, identity(path));
        assert!(!of(&one).is_there());
        assert!(of(&one).leave() && of(&one).leave());
        assert!(of(&one).is_there() && !of(&other).is_there());
        let next = of(&one);
        assert!(next.is_there());
        next.take_back();
        assert!(!of(&one).is_there());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let nowhere = Witness::in_places(std::iter::empty(), &one, identity(&one));
        assert!(!nowhere.leave() && !nowhere.is_there());
    }
}
