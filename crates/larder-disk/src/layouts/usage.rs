//! The figures of the disks of a store.

use std::path::PathBuf;

use crate::engine::DiskUsage;

/// Each disk by its path.
#[derive(Clone, Debug, Default)]
pub struct DisksUsage(pub Vec<(PathBuf, DiskUsage)>);

impl DisksUsage {
    /// Objects in all indexes; copies count each.
    pub fn objects(&self) -> u64 {
        self.0.iter().map(|(_, usage)| usage.objects).sum()
    }
}
