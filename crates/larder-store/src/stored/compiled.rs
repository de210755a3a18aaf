//! What is made of a body once and kept beside it: the program of a template, and a digest.
//!
//! In: a program that was compiled while the body arrived, or a way to compile what is in memory. Out: the same program, and the same
//! digest, for every page that the body goes into. They belong to the body, so a 304 keeps them. All of it counts against the
//! cap of the store: what there is no room for is not kept, and is made again when it is wanted. It lies in a box, since few
//! bodies have any of it.
//! Deliberately absent: the languages, and the decision which response is a template.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use larder_assemble::Program;
use larder_tier::Reservation;

use super::StoredBody;
use super::beside::BOX_BYTES;

/// A template beyond this size is not kept compiled.
pub const COMPILED_BYTES_MAX: u64 = 1024 * 1024;

impl StoredBody {
    /// Its program, where it is a template that is kept compiled. A program that is kept is complete.
    #[inline]
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.beside.get()?.program.get().map(|(program, _)| program)
    }

    /// Bytes to reserve for keeping a program.
    pub fn program_bytes(program: &Program) -> u64 {
        BOX_BYTES + program.weight() as u64
    }

    /// Keeps the program that its bytes make, for which `room` was reserved. Nothing is kept without room, of a program that is
    /// not complete, or of a body beyond [`COMPILED_BYTES_MAX`]; the first program that is kept stays.
    pub fn keep_program(&self, program: Arc<Program>, room: Option<Reservation>) {
        if let Some(room) = room
            && program.is_complete()
            && self.length() <= COMPILED_BYTES_MAX
        {
            let _ = self.beside.get_or_init(Box::default).program.set((program, room));
        }
    }

    /// Its program, which is made now by `compile`, from its pieces, where it has none: it was read from a disk, or there was no
    /// room before. `None` where it is not in memory, or is larger than what is kept compiled.
    pub fn compiled(&self, compile: impl FnOnce(&[Bytes]) -> Arc<Program>) -> Option<Arc<Program>> {
        if let Some(program) = self.program() {
            return Some(Arc::clone(program));
        }
        if !self.is_in_memory() || self.length() > COMPILED_BYTES_MAX {
            return None;
        }
        let program = compile(&self.pieces);
        self.keep_program(Arc::clone(&program), self.room_for(&program));
        // Somebody else may have been first: then theirs is what all have.
        Some(self.program().map_or(program, Arc::clone))
    }

    /// The SHA-256 of all of it, where it is in memory. It is made once, and costs about a millisecond for each mebibyte then.
    pub fn digest(&self) -> Option<[u8; 32]> {
        if let Some((digest, _)) = self.beside.get().and_then(|beside| beside.digest.get()) {
            return Some(*digest);
        }
        if !self.is_in_memory() {
            return None;
        }
        let mut context = Context::new(&SHA256);
        self.pieces.iter().for_each(|piece| context.update(piece));
        let digest: [u8; 32] = context.finish().as_ref().try_into().ok()?;
        if let Some(room) = self.room.as_ref().and_then(|room| room.beside(BOX_BYTES)) {
            let _ = self.beside.get_or_init(Box::default).digest.set((digest, room));
        }
        Some(digest)
    }

    /// Keeps what was made of the same bytes while they lay elsewhere.
    pub(crate) fn take_over(&self, other: &Self) {
        if let Some(program) = other.program() {
            self.keep_program(Arc::clone(program), self.room_for(program));
        }
    }

    fn room_for(&self, program: &Program) -> Option<Reservation> {
        self.room.as_ref()?.beside(Self::program_bytes(program))
    }
}

#[cfg(test)]
mod tests;
