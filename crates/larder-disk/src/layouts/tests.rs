//! The disks as a tier, in each layout, against what every tier must do.
#![allow(clippy::unwrap_used)]

use larder_http::time::Now;
use larder_tier::contract::{Subject, run};
use larder_tier::{Tier, VocabularyOf};

use super::*;
use crate::engine::DiskSize;

/// Disks of a layout, in a folder that they are made anew in.
struct InLayout {
    layout: Layout,
    count: usize,
    folder: tempfile::TempDir,
    clock: Clock,
}

impl Subject for InLayout {
    /// Heads are bytes here.
    type Vocabulary = VocabularyOf<Vec<u8>, ()>;

    fn make(&self) -> Arc<dyn Tier<Self::Vocabulary>> {
        let disk = |number: usize| DiskSettings {
            path: self.folder.path().join(number.to_string()),
            size: DiskSize::Bytes(64 << 20),
            idle: None,
            files: Default::default(),
        };
        Disks::unopened(self.layout, (0..self.count).map(disk).collect(), 16 << 20, &self.clock)
    }

    fn head(&self, mark: u8) -> Vec<u8> {
        format!("head {mark}").into_bytes()
    }

    fn head_bytes(&self, head: &Vec<u8>) -> Vec<u8> {
        head.clone()
    }

    fn policy(&self) {}

    fn now(&self) -> Now {
        self.clock.now()
    }
}

#[test]
fn disks_are_a_tier_in_each_layout() {
    for (layout, count) in [(Layout::Single, 1), (Layout::Mirror, 2), (Layout::Stripe, 3), (Layout::Hash, 2)]
    {
        let folder = tempfile::tempdir().unwrap();
        let subject = InLayout { layout, count, folder, clock: Clock::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&subject));
    }
}
