//! What the build of the whole workspace leaves in `target/debug`.
//!
//! In: the checkout. Out: the program's path. Nothing is built here: `make` builds all packages at once, since a package
//! that is built alone has other features of its dependencies, and these would be built twice.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

/// larder in the dev profile.
///
/// # Errors
/// It has not been built.
pub fn larder(root: &Path) -> Result<PathBuf> {
    let program = root.join("target/debug/larder");
    ensure!(program.is_file(), "larder has not been built: run `make built`");
    Ok(program)
}
