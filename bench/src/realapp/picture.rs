//! The picture that an application's run keeps.
//!
//! In: the file that is written. Out: its size, what its browser waits for, and what it may weigh.

use std::path::Path;

use harness::browser::{Picture, Ready};

/// A picture of a page whose scripts and pictures have arrived.
pub(super) fn drawn(file: &Path) -> Picture<'_> {
    Picture { file, size: (1100, 1000), ready: Ready::Loaded, bytes_max: 300_000 }
}
