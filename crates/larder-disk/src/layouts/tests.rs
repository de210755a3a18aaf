//! The disks as a tier, in each layout, against what every tier must do.
#![allow(clippy::unwrap_used)]

use larder_tier::contract::{Subject, run};
use larder_tier::{Tier, Vocabulary};

use super::*;
use crate::engine::DiskSize;

/// Heads are bytes here.
enum Opaque {}

impl Vocabulary for Opaque {
    type Head = Vec<u8>;
    type Policy = ();
}

#[test]
fn disks_are_a_tier_in_each_layout() {
    let layouts = [(Layout::Single, 1), (Layout::Mirror, 2), (Layout::Stripe, 3), (Layout::Hash, 2)];
    for (layout, count) in layouts {
        let folder = tempfile::tempdir().unwrap();
        let disk = |number: usize| DiskSettings {
            path: folder.path().join(number.to_string()),
            size: DiskSize::Bytes(64 << 20),
            idle: None,
            files: Default::default(),
        };
        let clock = Clock::default();
        let disks = Disks::open(layout, (0..count).map(disk).collect(), 16 << 20, &clock);
        let tier: Arc<dyn Tier<Opaque>> = Arc::clone(&disks) as Arc<dyn Tier<Opaque>>;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&Subject { tier, head: b"head".to_vec(), now: clock.now() }));
        disks.close();
    }
}
