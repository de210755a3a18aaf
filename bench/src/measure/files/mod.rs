//! Stored responses that are plain files: what an answer costs beside a web server that is pointed at the same folder.
//!
//! In: the published run of such a set-up, 134 bytes of JSON asked for by 100 connections, with keep-alive. Out: the usual
//! figures of larder with a store of files on tmpfs, and of nginx with the same file there: plain, without `sendfile`, with
//! descriptors kept open, and behind `try_files` with an application. The point of such files is that people
//! touch them, so each server is tried at last: the file is replaced, and the next answer has to be the new one. Who keeps
//! descriptors open need not see that, and is no measure for who does.
//! Deliberately absent: the application's own share. It wrote the file long ago.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::contender::{Contender, Kit, Launch, Setup, floor, larder, nginx};
use super::curl::{Version, ask};
use super::drive::{Load, Request};
use super::hit::floor_fields;
use super::outcome::{Judged, Outcome};
use super::page::Page;
use super::rows::{FLOOR, LARDER, NGINX, of_floor, of_nginx};
use super::runner::{Behind, Pace, Row, Scenario, run as measure};

const SCENARIO: &str = "134 B of JSON";
const CONNECTIONS: usize = 100;
const TARGET: &str = "/items/1";
const JSON: &str = "{\"id\":1,\"name\":\"pickled lemons\",\"price\":{\"amount\":\"4.50\",\"currency\":\"EUR\"},\
                    \"stock\":120,\"tags\":[\"jar\",\"citrus\",\"salt\"],\"shelf\":\"north\"}";

const LARDER_FILES: &str = "larder, files";
const NGINX_PLAIN: &str = "nginx, files";
const NGINX_NO_SENDFILE: &str = "nginx, sendfile off";
const NGINX_OPEN_FILES: &str = "nginx, open_file_cache";
const NGINX_TRY_FILES: &str = "nginx, try_files";
/// CPU per request of larder's files, at most so much of nginx's.
const OF_NGINX: f64 = 1.0;

/// Where nginx has the files, below its own folder.
const FOLDER: &str = "files";
/// How deep a file may lie below the folder of a store: scheme, host, path, and some more.
const DEPTH_MAX: usize = 8;

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let outcome = measure(&kit, &[scenario(&kit)], Pace::USUAL)?;
    let judged = judge(&outcome)?;
    Page {
        name: "files",
        title: "Plain files",
        how: format!(
            "One worker each, pinned to one core; {} with keep-alive on another; three interleaved rounds of 3 s, \
             medians. The same {} bytes of JSON each time, as a plain file on tmpfs, but for \"{LARDER}\" (memory) and \"{NGINX}\". \
             \"{LARDER_FILES}\": `files = \"DIR\"`, written there by its first fetch. \"{NGINX_PLAIN}\": `sendfile` and \
             nothing else; \"{NGINX_TRY_FILES}\": `try_files $uri $uri/ @app`, the published set-up. At the end the file was replaced, and the \
             next answer was the new one, but for \"{NGINX_OPEN_FILES}\", which keeps descriptors and need not see that. \
             The floor is a bare epoll loop with a fixed answer. Published, by `ab -n 100000 -c 100`: 21 604 requests/s, and 1 141 from the application.",
            Load::Wrk { connections: CONNECTIONS, script: None }.told(),
            JSON.len()
        ),
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("wrk", "-v")],
    }
    .write(root, &outcome, &judged)
}

fn scenario(kit: &Kit) -> Scenario<'_> {
    let fixed = floor::answer("200 OK", &floor_fields(), JSON.as_bytes());
    let rows = vec![
        of_floor(kit, fixed),
        Row::new(LARDER_FILES, move |setup| larder_files(kit, setup)),
        Row::new(LARDER, move |setup| larder::site(&kit.larder, setup, LARDER, "")),
        Row::new(NGINX_PLAIN, |setup| nginx_files(setup, NGINX_PLAIN, STATIC, Edits::Seen)),
        Row::new(NGINX_NO_SENDFILE, |setup| {
            nginx_files(setup, NGINX_NO_SENDFILE, &format!("{STATIC} sendfile off;"), Edits::Seen)
        }),
        Row::new(NGINX_OPEN_FILES, |setup| {
            nginx_files(
                setup,
                NGINX_OPEN_FILES,
                &format!("{STATIC} {}", nginx::OPEN_FILES),
                Edits::NotLookedFor,
            )
        }),
        Row::new(NGINX_TRY_FILES, |setup| {
            nginx_files(setup, NGINX_TRY_FILES, &format!("{STATIC} try_files $uri $uri/ @app;"), Edits::Seen)
        }),
        of_nginx(),
    ];
    let fields = ["Content-Type: application/json".to_owned(), "Cache-Control: max-age=3600".to_owned()];
    let mut scenario = Scenario::hit(SCENARIO, TARGET, JSON.as_bytes().to_vec(), rows);
    scenario.behind = Behind::Fixed(floor::answer("200 OK", &fields, JSON.as_bytes()));
    scenario.load = Load::Wrk { connections: CONNECTIONS, script: None };
    scenario
}

/// Lines of a location.
const STATIC: &str = "root files; default_type application/json;";

/// Whether a file that is replaced has to be in the next answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edits {
    Seen,
    NotLookedFor,
}

/// larder with an empty store of files, which the first request fills.
fn larder_files(kit: &Kit, setup: &Setup<'_>) -> Result<Contender> {
    let store = tempfile::tempdir_in(setup.scratch)?;
    let config = larder::on_files(setup.origin, store.path());
    let contender = larder::configured(&kit.larder, setup, LARDER_FILES, &config)?.contender()?;
    Ok(contender.with_last_check(move |contender| sees_edits(contender, store.path())))
}

fn nginx_files(setup: &Setup<'_>, name: &str, location: &str, edits: Edits) -> Result<Contender> {
    let locations = format!("location / {{ {location} }}\nlocation @app {{ {} }}", nginx::PROXY);
    let launch: Launch = nginx::configured(setup, name, "", &locations)?;
    let folder = launch.folder().join(FOLDER);
    let file = folder.join(TARGET.trim_start_matches('/'));
    fs::create_dir_all(file.parent().context("a folder")?)?;
    fs::write(&file, JSON)?;
    let contender = launch.contender()?;
    Ok(match edits {
        Edits::Seen => contender.with_last_check(move |contender| sees_edits(contender, &folder)),
        Edits::NotLookedFor => contender,
    })
}

/// Puts another body in the place of what lies below `folder`, as an editor does, and asks for it.
fn sees_edits(contender: &Contender, folder: &Path) -> Result<()> {
    let edited = JSON.replace("lemons", "onions");
    let mut bodies = Vec::new();
    bodies_below(folder, DEPTH_MAX, &mut bodies)?;
    ensure!(bodies.len() == 1, "{} files with the body below {}", bodies.len(), folder.display());
    for file in bodies {
        let beside = file.with_file_name("edited");
        fs::write(&beside, &edited)?;
        fs::rename(&beside, &file)?;
    }
    let answer = ask(contender.address, Version::Http11, &Request::of(TARGET))?;
    ensure!(answer.body == edited.as_bytes(), "the file was replaced, and the next answer was not");
    Ok(())
}

/// Every file that holds the body and nothing else.
fn bodies_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            bodies_below(&entry.path(), depth - 1, found)?;
        } else if kind.is_file() && fs::read(entry.path())? == JSON.as_bytes() {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    // The floor is no target here: it says what is left to win.
    outcome.figures(SCENARIO, FLOOR)?;
    Ok(vec![outcome.cpu_at_most(SCENARIO, LARDER_FILES, OF_NGINX, NGINX_PLAIN)?])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_body_is_as_long_as_the_published_one() {
        assert_eq!(JSON.len(), 134);
        assert!(serde_json::from_str::<serde_json::Value>(JSON).is_ok());
        assert_ne!(JSON.replace("lemons", "onions"), JSON);
    }

    #[test]
    fn only_files_with_the_body_are_edited() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("127.0.0.1:80/items");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("1"), JSON).unwrap();
        fs::write(below.join(".1.fields"), "Content-Type: application/json").unwrap();
        let mut found = Vec::new();
        bodies_below(folder.path(), DEPTH_MAX, &mut found).unwrap();
        assert_eq!(found, [below.join("1")]);
    }
}
