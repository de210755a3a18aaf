//! What a tag takes in memory, on each object that carries it.
//!
//! In: as many objects with three tags, and with twenty more, of which each is on a hundred objects. Out: resident memory of both, and the
//! difference for each tag of each object. What is in it follows from each server: the text of the tag among the fields, and what is
//! there to find it.

use anyhow::{Result, ensure};

use super::cost::{SOME, fill, of_memory};
use super::origin::TaggingOrigin;
use super::{LARDER, VARNISH};
use crate::measure::contender::{Kit, varnish};

pub(super) const OBJECTS: u64 = SOME;
pub(super) const MORE_TAGS: u64 = 20;

/// A server with both.
pub(super) struct Memory {
    pub(super) server: &'static str,
    /// Of the process, without and with the tags.
    pub(super) resident_bytes: [u64; 2],
}

impl Memory {
    /// Bytes for a tag of an object.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(super) fn per_tag(&self) -> f64 {
        let [without, with] = self.resident_bytes;
        (with as f64 - without as f64) / (OBJECTS * MORE_TAGS) as f64
    }
}

/// Measures larder and Varnish.
pub(super) fn run(kit: &Kit) -> Result<Vec<Memory>> {
    let resident = |server: &'static str, more_tags: u64| -> Result<u64> {
        let origin = TaggingOrigin::start(more_tags)?;
        let mut contender = match server {
            LARDER => of_memory(kit, &origin)?,
            _ => varnish::purging(&kit.setup(origin.address), server)?,
        };
        fill(&contender, OBJECTS)?;
        contender.server.still_runs()?;
        Ok(contender.server.resident_bytes())
    };
    let both = |server| {
        let resident_bytes = [resident(server, 0)?, resident(server, MORE_TAGS)?];
        ensure!(resident_bytes.iter().all(|bytes| *bytes > 0), "{server}: no resident memory");
        println!("{server}: {resident_bytes:?} B resident");
        Ok(Memory { server, resident_bytes })
    };
    [LARDER, VARNISH].into_iter().map(both).collect()
}
