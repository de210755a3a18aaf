//! The promises that are hardest to keep, each shown on the binary and from outside: one request for many clients, an
//! origin that dies, clients that leave at every stage, uploads that break, and slow readers beside fast ones.
//!
//! After each, nothing is left: the gauges and the descriptors of the process are what they were before.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod cancels;
mod cancels_http2;
mod collapse;
mod dead_origin;
mod disks;
mod hot_bodies;
mod plain_files;
mod ranges;
mod slow_reader;
mod uploads;
