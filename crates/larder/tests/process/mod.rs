//! The binary as its operator sees it: starting, checking, signals, logs, the admin address, memory.
//!
//! Each test runs a larder of its own in a process of its own, before a scripted origin in the test.

mod admin;
mod admitting;
mod certificates;
mod checking_disks;
mod codings;
mod commands;
mod cookies;
mod demo;
mod descriptors;
mod ending;
mod explaining;
mod happening;
mod keeping;
mod keeping_files;
mod keeping_invalidations;
mod keeping_pages;
mod log;
mod logging;
mod memory;
mod messages;
mod ordering;
mod pages;
mod purges_at_once;
mod purging;
mod reloading;
mod service;
mod starting;
mod sweeping;
mod system_limits;
mod tls_peers;
mod top;
mod warming;
mod watching;
