//! Pictures of the dashboard for README and guides.
//!
//! In: `larder demo --busy` of the dev profile, and headless Chromium. Out: docs/images/dashboard-*.png, of pages with eleven minutes of load in
//! them, so that a window of ten minutes is full. Run by hand: no picture is compared.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use harness::browser::{Picture, Ready, draw};
use harness::built;
use harness::children::{Server, free_port, pause};

/// How long the load runs before the first picture.
const LOAD: Duration = Duration::from_secs(660);
/// Longer than all pictures take.
const SECONDS_MAX: &str = "1200";
const READY_MAX: Duration = Duration::from_secs(60);
/// A page has drawn all of its figures by then.
const DRAWN: Duration = Duration::from_secs(8);
/// What a picture may weigh.
const BYTES_MAX: u64 = 200_000;
/// Pages with the heights at which nothing of them is cut.
const PAGES: [(&str, &str, u32); 4] =
    [("overview", "", 1290), ("why", "why", 1000), ("rules", "rules", 660), ("origins", "origins", 1020)];
const WIDTH: u32 = 1100;

/// Draws all of them.
pub(crate) fn run(root: &Path) -> Result<()> {
    let larder = built::larder(root)?;
    let admin = free_port()?;
    let mut demo = Server::start(
        "the demo",
        Command::new(larder)
            .args(["demo", "--busy", "--seconds", SECONDS_MAX, "--admin", &admin.to_string()])
            .stdout(Stdio::null()),
    )?;
    demo.wait_for(admin, READY_MAX)?;
    println!("screenshots: {} s of load first", LOAD.as_secs());
    let begun = Instant::now();
    while begun.elapsed() < LOAD {
        demo.still_runs()?;
        pause();
    }
    let work = tempfile::tempdir().context("a temporary folder")?;
    for (name, page, height) in PAGES {
        let file = root.join(format!("docs/images/dashboard-{name}.png"));
        let picture =
            Picture { file: &file, size: (WIDTH, height), ready: Ready::After(DRAWN), bytes_max: BYTES_MAX };
        draw(&format!("http://{admin}/#/{page}"), &picture, work.path())?;
        println!("screenshots: {}", file.display());
    }
    Ok(())
}
