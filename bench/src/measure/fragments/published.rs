//! One fragment from the application, from memcached, and as a file, by ab: the setup that was published for nginx.
//!
//! In: larder and nginx, each with a stored template of one fragment. Out: the figures of the runner by `ab -c 10`, a connection for each
//! request, as the published figures were taken. The application answers at once, so its row tells what asking it costs, and not how
//! long an application takes.
//! Deliberately absent: targets. What one fragment costs is told.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::values::Memcached;
use super::{FIRST, NGINX_LINES, PAGE};
use crate::measure::contender::{Contender, Kit, Setup, larder, nginx};
use crate::measure::drive::Load;
use crate::measure::runner::{Row, Scenario};
use crate::measure::validity::OriginAsked;
use harness::pages::{self, Form, FragmentedPage, Theme};

const LARDER: &str = "larder";
const NGINX: &str = "nginx";

const STORED: FragmentedPage =
    FragmentedPage { form: Form::Ssi, fragments: 1, fragment_bytes: 700, bytes: 1500, ..PAGE };
/// Its fragment may not be stored.
const ASKED: FragmentedPage = FragmentedPage { theme: Theme::Unstored, ..STORED };

/// For the page of the measurement.
pub(super) fn how() -> String {
    "\"one fragment\": a stored template of one fragment, asked for by `ab -c 10`, a connection for each request. Published by others for \
     nginx with an application in Python (`ab -n 1000 -c 10`): 5 ms from the application, 0.6 ms from memcached, 0.4 ms as a file."
        .to_owned()
}

/// One scenario for each way.
pub(super) fn scenarios(kit: &Kit) -> [Scenario<'_>; 3] {
    let from_app = vec![
        Row::new(LARDER, move |setup| larder::site(&kit.larder, setup, LARDER, "assemble = \"ssi\"")),
        Row::new(NGINX, |setup| nginx::cache(setup, NGINX, &format!("{NGINX_LINES} ssi on;"))),
    ];
    let from_memcached = vec![
        Row::new(LARDER, move |setup| Memcached::of(&STORED)?.with_larder(kit, setup, LARDER, "0s")),
        Row::new(NGINX, |setup| Memcached::of(&STORED)?.with_nginx(setup, NGINX)),
    ];
    let as_file =
        vec![Row::new(LARDER, move |setup| larder_with_files(kit, setup)), Row::new(NGINX, nginx_with_files)];
    [
        scenario("one fragment, from the application", ASKED, from_app),
        scenario("one fragment, from memcached", STORED, from_memcached),
        scenario("one fragment, as a file", STORED, as_file),
    ]
}

fn scenario<'a>(name: &str, page: FragmentedPage, rows: Vec<Row<'a>>) -> Scenario<'a> {
    let mut scenario = Scenario::hit(name, &page.target(), page.page(FIRST), rows);
    scenario.load = Load::Ab { connections: 10 };
    scenario.origin_asked = if page == ASKED { OriginAsked::Sometimes } else { OriginAsked::Never };
    scenario
}

/// larder looks for a file of `root` before anything else.
fn larder_with_files(kit: &Kit, setup: &Setup<'_>) -> Result<Contender> {
    let config = format!(
        "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{}\"\n\n[[site]]\norigin = \"app\"\nroot = \"files\"\n\
         assemble = \"ssi\"\n",
        setup.origin
    );
    let launch = larder::configured(&kit.larder, setup, LARDER, &config)?;
    lay_out(&launch.folder().join("files"))?;
    launch.contender()
}

fn nginx_with_files(setup: &Setup<'_>) -> Result<Contender> {
    let proxy = nginx::PROXY;
    let locations = format!(
        "location / {{ {proxy} proxy_cache pages; {NGINX_LINES} ssi on; }}\n\
         location /page/part/ {{ root files; {} }}",
        nginx::OPEN_FILES
    );
    let launch = nginx::configured(setup, NGINX, "", &locations)?;
    lay_out(&launch.folder().join("files"))?;
    launch.contender()
}

/// The fragment as a file.
fn lay_out(folder: &Path) -> Result<()> {
    for target in STORED.parts() {
        let file = folder.join(target.trim_start_matches('/'));
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(&file, pages::answer(&target).context("no fragment")?.content)?;
    }
    Ok(())
}
