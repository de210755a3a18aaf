//! What checks, suites and measurements start other programs with.
//!
//! In: commands, and names of programs. Out: servers that end with the check that started them ([`children`], [`orphans`]),
//! and missing programs installed ([`install`], [`go`]). Also an origin for a proxy under test ([`origin`], [`pages`]), answers as
//! clients receive them ([`received`]), what browsers ask with ([`browser`]), and the larder that was built last ([`built`]).
//! Deliberately absent: any crate of larder. What is here must run when larder does not build.
#![allow(clippy::disallowed_macros, reason = "what is here may panic where it cannot be read")]

pub mod browser;
pub mod built;
pub mod children;
pub mod go;
pub mod install;
pub mod origin;
pub mod orphans;
pub mod pages;
pub mod received;
