//! The servers that most measurements have, as rows: each by one name and with one configuration.
//!
//! In: what a row has to know, where the rest follows from its name. Out: a [`Row`] for the runner. A measurement that
//! wants a server otherwise makes its own row, under another name where both stand in one table.

use std::path::PathBuf;

use super::contender::larder::{self, AccessLog};
use super::contender::{Kit, caddy, floor, h2o, haproxy, nginx, varnish};
use super::runner::Row;

pub(super) const FLOOR: &str = "floor";
pub(super) const LARDER: &str = "larder";
pub(super) const BEFORE: &str = "larder, before";
pub(super) const NGINX: &str = "nginx proxy_cache";
pub(super) const NGINX_FILES: &str = "nginx files";
pub(super) const VARNISH: &str = "Varnish";
pub(super) const HAPROXY: &str = "HAProxy";
pub(super) const H2O: &str = "H2O files";
pub(super) const CADDY: &str = "Caddy files";

/// The floor with this answer to everything.
pub(super) fn of_floor<'a>(kit: &'a Kit, answer: Vec<u8>) -> Row<'a> {
    Row::new(FLOOR, move |setup| floor::server(kit, setup, &answer))
}

/// larder with everything on, and no access log.
pub(super) fn of_larder(kit: &Kit) -> Row<'_> {
    Row::new(LARDER, move |setup| larder::full(kit, setup, LARDER, AccessLog::Off))
}

/// An older larder with the same config, where there is one.
pub(super) fn of_larder_before(kit: &Kit) -> Option<Row<'_>> {
    let program = kit.before.as_ref()?;
    Some(Row::new(BEFORE, move |setup| larder::full_of(kit, program, setup, BEFORE, AccessLog::Off)))
}

/// nginx's cache, which heeds the origin's fields.
pub(super) fn of_nginx<'a>() -> Row<'a> {
    Row::new(NGINX, |setup| nginx::cache(setup, NGINX, ""))
}

/// What the origin would answer for these targets, as files of nginx's.
pub(super) fn of_nginx_files<'a>(targets: Vec<String>) -> Row<'a> {
    Row::new(NGINX_FILES, move |setup| nginx::files(setup, NGINX_FILES, &targets))
}

/// Varnish's cache, which heeds the origin's fields.
pub(super) fn of_varnish<'a>() -> Row<'a> {
    Row::new(VARNISH, |setup| varnish::cache(setup, VARNISH, ""))
}

/// HAProxy's cache.
pub(super) fn of_haproxy<'a>() -> Row<'a> {
    Row::new(HAPROXY, |setup| haproxy::cache(setup, HAPROXY))
}

/// What the origin would answer for these targets, as files of H2O's.
pub(super) fn of_h2o<'a>(targets: Vec<String>) -> Row<'a> {
    Row::new(H2O, move |setup| h2o::files(setup, H2O, &targets))
}

/// What the origin would answer for these targets, as files of Caddy's, where there is one.
pub(super) fn of_caddy<'a>(program: Option<&PathBuf>, targets: Vec<String>) -> Option<Row<'a>> {
    let program = program?.clone();
    Some(Row::new(CADDY, move |setup| caddy::files(&program, setup, CADDY, &targets)))
}
