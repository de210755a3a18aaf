//! A body once more, as a file in memory, from which the kernel sends without copying.
//!
//! A `send` copies the body into pages that the kernel takes for it and gives back each time; `sendfile` hands over the
//! pages of a file as they are. For bodies of some ten KiB that is a sixth of a hit, for smaller ones nothing, and
//! for large ones, which do not go out in one call, it costs more than it saves (docs/design/speed.md). So a hot body
//! of such a size gets a copy, counted like any other byte of the store.
//!
//! The file is written here and never again: the kernel may hold on to its pages for a client that has not taken them
//! yet. It is not sealed, since sealing may wait for other cores to let go of the pages.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder_http::body::Pieces;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::budget::Reservation;
use crate::rank::forbid_under_lock;
use crate::stored::StoredBody;

/// Bodies that gain by it.
const GAINS: std::ops::RangeInclusive<u64> = 16 * 1024..=128 * 1024;

const PAGE_BYTES: u64 = 4096;

/// The copy.
#[derive(Debug)]
pub(super) struct Sendable {
    file: File,
    _room: Reservation,
    open: Arc<AtomicUsize>,
}

impl Sendable {
    /// A copy of `body`, in room that `reserve` makes, counted in `open` until it is gone; `None` where it would gain nothing,
    /// or there is no room or no descriptor for it.
    pub(super) fn of(
        body: &StoredBody,
        open: &Arc<AtomicUsize>,
        reserve: impl FnOnce(u64) -> Option<Reservation>,
    ) -> Option<Self> {
        if !GAINS.contains(&body.length()) || !body.is_in_memory() {
            return None;
        }
        forbid_under_lock();
        let room = reserve(body.length().next_multiple_of(PAGE_BYTES))?;
        // Before Linux 6.3 there is no such flag; since then a file without it may be refused.
        let flags = MemfdFlags::CLOEXEC;
        let file = memfd_create(c"larder-body", flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| memfd_create(c"larder-body", flags));
        let mut file = File::from(file.ok()?);
        body.pieces().iter().try_for_each(|piece| file.write_all(piece)).ok()?;
        open.fetch_add(1, Ordering::Relaxed);
        Some(Self { file, _room: room, open: Arc::clone(open) })
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Sendable {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
