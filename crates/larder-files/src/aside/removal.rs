//! Removing what lies in `.larder/aside`, a slice at a time.
//!
//! In: directories that this run or an earlier one has put there. Out: their files are gone, [`SLICE`] entries for each job of the
//! writing thread. Directories below each other are entered down to [`DEPTH_MAX`]. What lies deeper is moved up first, and is then one
//! more directory to be removed. So each slice ends, each but the last removes something, and few descriptors are open, whatever people
//! have made there. What cannot be removed is passed over, and the rest goes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Instant;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::waiting::{Aside, PassedOver, concerns_all};
use crate::calls;
use crate::directory::Directory;
use crate::name::Name;
use crate::queue::FileJob;
use crate::resolver::{DIRECTORY, as_path};
use crate::sys::{Status, is_absent};
use crate::tree::{ASIDE, Tree};

/// Entries that are removed at once.
const SLICE: usize = 256;
/// Directories below each other that are entered. No name of larder's own lies deeper.
const DEPTH_MAX: usize = 40;

/// Hears what is gone: the directories above it, its name, and what it was.
type EachGone<'a> = dyn FnMut(&[&[u8]], &[u8], &Status) + 'a;

impl Directory {
    /// Sees to it that what waits is removed.
    pub(super) fn remove_asides(self: &Arc<Self>) {
        if self.asides.begin() {
            let weak = Arc::downgrade(self);
            // A closed queue leaves it to the next start.
            let _ = self.queue.push_end(FileJob::Run(Box::new(move || go_on(&weak))), || true);
        }
    }

    /// Tries again what could not be removed, where that has rested.
    pub(crate) fn remove_asides_again(self: &Arc<Self>, now: Instant) {
        self.asides.wake(now);
        self.remove_asides();
    }

    fn remove_some(&self, mut aside: Aside) {
        let mut files = 0;
        let Aside { name, path, passed_over, .. } = &mut aside;
        let removed = self.tree.remove_slice(name, passed_over, &mut |below, last, status| {
            files += u64::from(!status.is_directory());
            if let Some(path) = path {
                self.forget_below(path, below, last, status);
            }
        });
        aside.removed.iter().for_each(|removed| removed(files));
        match removed {
            Ok(Sliced::All) => {
                if let Some(path) = &aside.path {
                    self.forget_directory(path);
                }
            }
            Ok(Sliced::Some) => self.asides.add(aside),
            Ok(Sliced::MovedUp(name, below)) => {
                let deeper = aside.deeper(name, &below);
                self.asides.add(aside);
                self.asides.add(deeper);
            }
            Err(error) => {
                if concerns_all(&error) {
                    self.base.health.fails("cannot remove a directory that was purged", &error);
                }
                self.asides.rest(aside, &error);
            }
        }
    }

    /// What of it was known under its name goes, unless something else has that by now.
    fn forget_below(&self, path: &[u8], below: &[&[u8]], last: &[u8], status: &Status) {
        let path = [&[path], below, &[last]].concat().join(&b'/');
        if status.is_directory() {
            self.forget_directory(&path);
        } else {
            let name = Name::found(&path);
            self.index.forget_file(&name, status.inode);
            self.tree.forget_beside(&name, status);
        }
    }

    fn forget_directory(&self, path: &[u8]) {
        // On the thread that makes directories: none comes in between.
        if !Status::at(self.tree.root(), path).is_ok_and(|status| status.is_directory()) {
            self.index.forget_directory(path);
        }
    }
}

/// Removes a slice, and sees to it that the next one follows.
fn go_on(weak: &Weak<Directory>) {
    let Some(shared) = weak.upgrade() else { return };
    if let Some(aside) = shared.asides.next() {
        shared.remove_some(aside);
    }
    shared.asides.end();
    shared.remove_asides();
}

/// What became of a slice.
enum Sliced {
    /// Nothing is left.
    All,
    Some,
    /// A directory got this name in [`ASIDE`]; it was at this path below.
    MovedUp(String, Vec<u8>),
}

/// A directory that was entered.
struct Entered {
    name: Vec<u8>,
    directory: OwnedFd,
}

/// What is done next in a directory.
enum Next {
    /// This one in it comes first.
    Enter(Entered),
    MovedUp(String, Vec<u8>),
    /// Enough for one slice.
    Pause,
    /// Nothing is left in it that can go.
    Leave,
}

impl Tree {
    /// Removes a part of what was put aside. `each` hears what is gone.
    ///
    /// # Errors
    /// Something stays.
    fn remove_slice(
        &self,
        name: &str,
        passed_over: &mut PassedOver,
        each: &mut EachGone<'_>,
    ) -> io::Result<Sliced> {
        let aside = self.resolver().open(self.root(), ASIDE.as_bytes(), DIRECTORY)?;
        let top = match calls::openat(&aside, name, DIRECTORY, Mode::empty()) {
            Ok(directory) => Entered { name: name.into(), directory },
            Err(Errno::NOENT) => return Ok(Sliced::All),
            // No directory: nothing of larder's, and in its own folder.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                calls::unlinkat(&aside, name, AtFlags::empty())?;
                return Ok(Sliced::All);
            }
            Err(error) => return Err(error.into()),
        };
        let (mut at, mut left) = (vec![top], SLICE);
        while let Some((here, above)) = at.split_last() {
            match self.remove_in(&aside, (above, here), passed_over, &mut left, each)? {
                Next::Enter(entered) => at.push(entered),
                Next::Pause => return Ok(Sliced::Some),
                Next::MovedUp(name, below) => return Ok(Sliced::MovedUp(name, below)),
                Next::Leave => {
                    let status = Status::of(&here.directory)?;
                    let parent = above.last().map_or(&aside, |above| &above.directory);
                    match calls::unlinkat(parent, as_path(&here.name), AtFlags::REMOVEDIR) {
                        Ok(()) if !above.is_empty() => each(&names(above), &here.name, &status),
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(error) => passed_over.add(&status, error.into())?,
                    }
                    left = left.saturating_sub(1);
                    at.pop();
                }
            }
        }
        passed_over.why.take().map_or(Ok(Sliced::All), Err)
    }

    /// Removes what can go of one directory, up to the next that is in it.
    fn remove_in(
        &self,
        aside: &OwnedFd,
        (above, here): (&[Entered], &Entered),
        passed_over: &mut PassedOver,
        left: &mut usize,
        each: &mut EachGone<'_>,
    ) -> io::Result<Next> {
        let below = names_with(above, here);
        for entry in calls::read_dir(&here.directory)? {
            let entry = entry?;
            let component = entry.file_name().to_bytes();
            if matches!(component, b"." | b"..") {
                continue;
            }
            let status = match Status::at(&here.directory, component) {
                Ok(status) if passed_over.has(&status) => continue,
                Ok(status) => status,
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(error),
            };
            let Some(fewer) = left.checked_sub(1) else { return Ok(Next::Pause) };
            let done = if !status.is_directory() {
                let removed = calls::unlinkat(&here.directory, as_path(component), AtFlags::empty());
                removed.map(|()| each(&below, component, &status)).map_err(io::Error::from)
            } else if above.len() < DEPTH_MAX {
                match calls::openat(&here.directory, as_path(component), DIRECTORY, Mode::empty()) {
                    Ok(directory) => return Ok(Next::Enter(Entered { name: component.to_vec(), directory })),
                    Err(error) => Err(error.into()),
                }
            } else {
                match self.rename_into(aside, &here.directory, component) {
                    Ok(name) => {
                        let below = [&below[..], &[component]].concat().join(&b'/');
                        return Ok(Next::MovedUp(name, below));
                    }
                    Err(error) => Err(error),
                }
            };
            match done {
                Err(error) if !is_absent(&error) => passed_over.add(&status, error)?,
                Ok(()) | Err(_) => {}
            }
            *left = fewer;
        }
        Ok(Next::Leave)
    }
}

/// The directories below the one that was put aside.
fn names(entered: &[Entered]) -> Vec<&[u8]> {
    entered.iter().skip(1).map(|entered| &*entered.name).collect()
}

fn names_with<'a>(above: &'a [Entered], here: &'a Entered) -> Vec<&'a [u8]> {
    above.iter().chain([here]).skip(1).map(|entered| &*entered.name).collect()
}
