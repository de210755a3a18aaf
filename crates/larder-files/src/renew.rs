//! New fields and times for a file that stays what it is: what a 304 brings.
//!
//! In: the file that was validated, and its new meta. Out: the same file with the new meta. Its inode, content and
//! modification time are as before, because another web server makes its ETag from them. Or nothing, where it is
//! gone, or a person has changed it meanwhile: their file is not what the origin has confirmed. A renewal that comes
//! to nothing leaves the file with what was known of it, so it is validated once more.

use super::directory::Directory;
use super::error::Refused;
use super::filling::{Done, OwnedUri};
use super::hit::FileStamp;
use super::in_use::InUse;
use super::index::IndexedFile;
use super::meta::{self, JudgedMeta, META_BYTES_MAX, Meta, lines_bytes_max};
use super::name::{Name, TargetUri};
use super::place::PlaceError;
use super::renewal::Renewal;
use super::room::{META_BYTES, beside_bytes};
use super::sys::{self, Status, is_absent, is_of_one_place};
use super::tree::{FoundFile, Tree, meta_path};

impl InUse {
    /// Gives the file of `uri` that `stamp` is of new meta. Never waits; `done` is told later. `is_valid` is asked under the
    /// queue's lock, as for [`FileFill::commit`](super::FileFill::commit).
    pub(super) fn renew(
        &self,
        uri: &TargetUri<'_>,
        stamp: FileStamp,
        meta: Meta,
        is_valid: impl FnOnce() -> bool,
        done: Done,
    ) {
        let name = match Name::of(uri) {
            Ok(name) => name,
            Err(why) => return done(Err(Refused::Unnameable(why))),
        };
        if self.shared.base.health.is_failing() {
            return done(Err(Refused::Failing));
        }
        let renewal = Box::new(Renewal { name, uri: OwnedUri::of(uri), stamp, meta });
        if let Err((done, why)) = self.shared.queue.push_renewal(renewal, is_valid, done) {
            done(Err(why));
        }
    }
}

impl Tree {
    /// Writes new meta for a file that has its name; its content is not touched. Readers and a crash find the old or the new,
    /// and both speak of the file as it is now: one that is changed in this moment is a person's. Says what it takes in a
    /// file of its own, in bytes.
    fn renew(
        &self,
        found: &FoundFile,
        name: &Name,
        uri: &TargetUri<'_>,
        meta: &Meta,
    ) -> Result<u64, PlaceError> {
        let lines = meta.write(uri, &found.status);
        if lines.len() > META_BYTES_MAX {
            return Err(PlaceError::NoRoom);
        }
        let mark = meta::beside(&meta_path(name, &found.status));
        let was_beside = sys::attribute(&found.file)?.is_none_or(|lines| lines == mark);
        if self.has_attributes() && sys::set_attribute(&found.file, &lines)? {
            if was_beside {
                self.forget_beside(name, &found.status);
            }
            return Ok(0);
        }
        // No room was reserved for a file of its own where there is none yet.
        if !was_beside {
            return Err(PlaceError::NoRoom);
        }
        self.write_beside(name, &found.status, &lines)?;
        Ok(beside_bytes(lines.len()))
    }
}

impl Directory {
    /// On the writing thread.
    pub(super) fn renew(&self, renewal: &Renewal) -> Result<(), Refused> {
        let Renewal { name, uri, stamp, meta } = renewal;
        let uri = uri.borrow();
        let found =
            self.tree.find(name).map_err(|error| match is_absent(&error) || is_of_one_place(&error) {
                true => Refused::Changed,
                false => self.failed("cannot open a file", &error),
            })?;
        let judged = || self.tree.judge(&found.file, &found.status, name, Some(&uri));
        if !stamp.is_of(&found.status) || !matches!(judged(), Ok(JudgedMeta::Stored(_))) {
            return Err(Refused::Changed);
        }
        // As much as both take while one takes the place of the other.
        let large = beside_bytes(lines_bytes_max(&meta.fields, &uri)) - META_BYTES;
        let spare = self.make_room(large, 0).ok_or(Refused::NoRoom)?;
        self.write_before_placing(name, meta)?;
        let renewed = self.tree.renew(&found, name, &uri, meta);
        let beside = renewed.map_err(|error| self.not_placed(error))?;
        self.index.unkeep(name);
        let status = Status::of(&found.file).map_err(|error| self.failed("cannot look at a file", &error))?;
        let bytes = self.taken(&status, name, beside);
        let noted = IndexedFile { inode: status.inode, bytes, is_by_hand: false, is_use: false };
        self.index.note(name, &noted, || self.room.take(bytes, 1 + u64::from(beside > 0)));
        drop(spare);
        self.noted.placed(name, meta.number);
        self.base.health.works();
        Ok(())
    }
}
