//! Exit codes, as scripts see them.

/// All went well.
pub(crate) const SUCCESS: u8 = 0;
/// Something went wrong while running.
pub(crate) const FAILURE: u8 = 1;
/// The command line itself is wrong (clap's own code as well).
pub(crate) const USAGE: u8 = 2;
/// The config has errors.
pub(crate) const CONFIG: u8 = 3;
/// Ctrl-C ended it, as a shell says it of a command that the signal killed.
pub(crate) const INTERRUPTED: u8 = 130;
