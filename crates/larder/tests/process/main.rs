//! The binary as its operator sees it: starting, checking, signals, logs, the admin address, memory.
//!
//! Each test runs a larder of its own in a process of its own, before a scripted origin in the test.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod checking_disks;
mod ending;
mod explaining;
mod keeping;
mod keeping_files;
mod logging;
mod memory;
mod reloading;
mod starting;
