//! The promises that are hardest to keep, each shown on the binary and from outside: one request for many clients, an
//! origin that dies, clients that leave at every stage, uploads that break, and slow readers beside fast ones.
//!
//! After each, nothing is left: the gauges and the descriptors of the process are what they were before.
//! The tests of what an operator sees ([`process`]) are in the same program. They start the same binary, and one program is linked
//! and run in the time of two.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod cancels;
mod cancels_http2;
mod collapse;
mod dashboard;
mod dead_origin;
mod disks;
mod every_store;
mod fleet;
mod hot_bodies;
mod own;
mod pages;
mod plain_files;
mod plain_files_absent;
mod plain_files_faults;
mod plain_files_invalidated;
#[path = "../process/mod.rs"]
mod process;
mod ranges;
mod records;
mod redis_servers;
mod slow_reader;
mod slow_readers;
mod uploads;
mod values;
mod versions;
mod who_may;
