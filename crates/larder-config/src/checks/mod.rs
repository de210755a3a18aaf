//! Checks that need more than one key: of the whole config, of a whole origin, a whole store, and of who may purge.
//!
//! Listeners with TLS and sites with TLS need each other, and ACME needs ports. Names have to exist, addresses and hosts have to differ, stores have directories for themselves, and keys have to
//! tell apart what rules tell apart, those of values in memcached and Redis too. Versions need a server and a place, and a fleet needs
//! one server. A note says which cookies keep a request from what a
//! rule stores.
//!
//! In: the sections as they were read, and the document for the places. Values that were refused are not judged
//! again, so that one mistake makes one error.

mod addresses;
mod cookies;
mod directories;
mod edge;
mod fragments;
mod hosts;
mod keys;
mod layers;
pub(crate) mod names;
mod origin;
pub(crate) mod patterns;
mod purge;
mod records;
pub(crate) mod site_tls;
mod store;
mod values;
mod versions;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::sections::config::Config;

impl Consistent for Config {
    fn check(&self, table: &Table, _at: &At<'_>, reading: &mut Reading<'_>) {
        addresses::check(self, table, reading);
        edge::check(self, table, reading);
        names::check(table, reading);
        directories::check(table, reading);
        hosts::check(table, reading);
        keys::check(self, table, reading);
        values::check(self, table, reading);
        records::check(self, table, reading);
        versions::check(self, table, reading);
        fragments::check(table, reading);
        cookies::note(self, table, reading);
    }
}
