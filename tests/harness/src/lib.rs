//! What checks, suites and measurements start other programs with.
//!
//! In: commands, and names of programs. Out: servers that end with the check that started them ([`children`]), whatever
//! happens to it ([`orphans`]); programs that are installed where they are missing ([`install`]); an origin to put behind
//! a proxy ([`origin`]); larder itself as the build left it ([`built`]).
//! Deliberately absent: any crate of larder. What is here must run when larder does not build.
#![allow(clippy::disallowed_macros, reason = "what is here may panic where it cannot be read")]

pub mod built;
pub mod children;
pub mod install;
pub mod origin;
pub mod orphans;
