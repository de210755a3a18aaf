//! What only the whole config can tell: names that have to exist, addresses and hosts that have to
//! differ, directories that stores have for themselves, keys that have to tell apart what rules tell apart; and what only
//! a whole origin, a whole store or all conditions of a purge can; and, as a note, which cookies keep a request from what a rule stores.
//!
//! In: the sections as they were read, and the document for the places. Values that were refused are not judged
//! again, so that one mistake makes one error.

mod addresses;
mod cookies;
mod directories;
mod hosts;
mod keys;
mod names;
mod origin;
pub(crate) mod patterns;
mod purge;
mod store;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::sections::config::Config;

impl Consistent for Config {
    fn check(&self, table: &Table, _at: &At<'_>, reading: &mut Reading<'_>) {
        addresses::check(self, table, reading);
        names::check(table, reading);
        directories::check(table, reading);
        hosts::check(table, reading);
        keys::check(self, table, reading);
        cookies::note(self, table, reading);
    }
}
