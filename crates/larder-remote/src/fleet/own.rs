//! A purge of this larder, from before it is in force until all its entries wait for their places in the log.
//!
//! In: entries. Out: their names. While it is there, every shared response is older than the purge; after that, as long as one of its
//! entries has no place.

use std::sync::Arc;

use larder_fleet::EntryId;
use larder_fleet::applied::Announced;

use super::carrier::Purge;
use super::member::SharedMember;
use super::random::draw;
use crate::error::RemoteError;

/// See the head of the file. It ends when it is dropped.
pub struct OwnPurge {
    shared: Arc<SharedMember>,
    announced: Announced,
}

impl OwnPurge {
    pub(super) fn new(shared: &Arc<SharedMember>, number: u64) -> Self {
        let announced = shared.positions().applied().announce(number);
        Self { shared: Arc::clone(shared), announced }
    }

    /// Shares an entry, which is in force here already. `None` where too many purges are not complete: then all members are told to take
    /// everything out, as soon as there is room again.
    ///
    /// # Errors
    /// [`RemoteError::Thread`]: the system gives no random number. Everything is taken out then, too.
    pub fn share(&self, what: Purge) -> Result<Option<EntryId>, RemoteError> {
        self.enter(what, false)
    }

    /// The same of something without a receipt. It has half of the room. It is lost where the log is lost before the others have
    /// read it. The future ends when the entry lies in the log, which outlives this process, or the log cannot be had; there is none where
    /// [`Self::share`] would give no name.
    ///
    /// # Errors
    /// As for [`Self::share`].
    ///
    /// # Cancel safety
    /// The entry goes its way without the future.
    pub fn tell(&self, what: Purge) -> Result<Option<impl Future<Output = ()> + Send + use<>>, RemoteError> {
        let id = self.enter(what, true)?;
        let shared = Arc::clone(&self.shared);
        Ok(id.map(|id| async move { shared.placed(id).await }))
    }

    fn enter(&self, what: Purge, is_told: bool) -> Result<Option<EntryId>, RemoteError> {
        let (id, bytes) = match draw() {
            Ok(id) => (EntryId(id), what.len()),
            Err(error) => {
                self.shared.positions().applied().owe(self.announced);
                self.shared.owe_everything();
                return Err(error);
            }
        };
        // Before the member has it: its entry may be read at once.
        self.shared.positions().applied().name(self.announced, id, is_told);
        let has_room = match is_told {
            true => self.shared.member().tell(id, what, bytes),
            false => self.shared.member().purge(id, what, bytes),
        };
        if !has_room {
            self.shared.positions().applied().owe_for(id);
            self.shared.owe_everything();
        }
        self.shared.wake();
        Ok(has_room.then_some(id))
    }
}

impl Drop for OwnPurge {
    fn drop(&mut self) {
        self.shared.positions().applied().end(self.announced);
    }
}
