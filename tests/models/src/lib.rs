//! Every order of events that shared numbers and locks allow, tried on the sources of the crates.
//!
//! In: files of other crates, compiled once more with loom's atomics and locks in place of the system's. Out: functions that try
//! every order of what threads do with them, as far as memory allows one, and panic where something does not hold. The tests call
//! them: loom's types work in a model only, so the files' own tests stay where they are.
//! Deliberately absent: everything that waits, and everything with a body.
// With the tests of those files it would be another crate.
#![cfg(not(test))]

pub mod invalidation;
