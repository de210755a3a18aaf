//! Slots whose content becomes a variable.
//!
//! In: slots that have ended with all that is in them. Out: their content, for the run.

use bytes::BytesMut;
use larder_assemble::{Answer, IncludeFailure, SlotId};

use super::GOOD_BYTES;
use super::document::At;
use super::page::Page;
use super::queue::PagePiece;

impl Page {
    /// Gives the content of slots that are captured and complete. Whether there was one.
    pub(super) fn give_captured(&mut self) -> bool {
        let mut has_given = false;
        for slot in std::mem::take(&mut self.captured) {
            if let Some(answer) = self.content_of(slot) {
                if let Answer::Failed(reason) = answer {
                    self.note_failure(None, reason);
                    // Something else may be asked for in its place.
                    self.captured.push(slot);
                }
                self.run.give(slot, answer);
                // The variable has a copy of it.
                for document in self.queue.drop_content(slot) {
                    if let Some(document) = self.documents.get_mut(document) {
                        document.finish();
                    }
                }
                has_given = true;
            } else if self.queue.is_alive(slot) {
                self.captured.push(slot);
            }
        }
        has_given
    }

    /// All that stands in a captured slot, once it is complete.
    fn content_of(&mut self, slot: SlotId) -> Option<Answer> {
        let (mut content, mut failed, mut waits) = (BytesMut::new(), None, false);
        let documents = &self.documents;
        let is_complete = self.queue.walk(slot, &mut |piece| {
            match piece {
                PagePiece::Own(bytes) => content.extend_from_slice(bytes),
                PagePiece::Body(body) => match body.joined() {
                    Some(bytes) => content.extend_from_slice(&bytes),
                    None => failed = Some(IncludeFailure::TooLarge),
                },
                PagePiece::Text { document, range } => {
                    let mut range = range.clone();
                    while let Some(document) = documents.get(*document).filter(|_| !range.is_empty()) {
                        match document.at(&range) {
                            At::Bytes(bytes) => {
                                range.start += bytes.len() as u64;
                                content.extend_from_slice(&bytes);
                            }
                            At::NotYet => {
                                waits = true;
                                return false;
                            }
                            At::Never => {
                                failed = Some(IncludeFailure::Broken);
                                break;
                            }
                        }
                    }
                }
                PagePiece::Again { .. } => failed = Some(IncludeFailure::TooLarge),
                PagePiece::Failed(reason) => failed = Some(*reason),
                PagePiece::Slot(_) => {}
            }
            if content.len() > GOOD_BYTES {
                failed = Some(IncludeFailure::TooLarge);
            }
            failed.is_none()
        });
        if waits {
            return None;
        }
        match failed {
            Some(reason) => Some(Answer::Failed(reason)),
            None => is_complete.then(|| Answer::Value(content.freeze())),
        }
    }
}
