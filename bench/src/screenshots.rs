//! The pictures of the documentation: the dashboard in front of `larder demo --busy`.
//!
//! In: the checkout, with larder as released, and how long the demo runs before the pictures are drawn. Out: docs/images/dashboard-*.png, to be looked
//! at before they are committed.
//! Deliberately absent: any check of what they show. Tests do that, in the same browser.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::browser::dashboard;
use crate::browser::driver::Browser;
use crate::packages;
use harness::children::{Server, free_port};

/// Debian's packages, beside curl.
const PACKAGES: &[&str] = &["curl", "chromium", "chromium-driver", "fonts-dejavu-core"];
/// How long the demo may take to be there.
const READY_MAX: Duration = Duration::from_secs(20);
/// The pages that have a picture, as they stand behind `#/`, and the name of its file.
const PICTURES: &[(&str, &str)] =
    &[("", "overview"), ("why", "why"), ("rules", "rules"), ("origins", "origins"), ("requests", "requests")];

/// Draws all of them.
pub(crate) fn run(root: &Path, seconds: u64) -> Result<()> {
    packages::install(PACKAGES)?;
    let program = root.join("target/release/larder");
    ensure!(program.is_file(), "larder has not been built: run `make screenshots`");
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let admin = free_port()?;
    let mut command = Command::new(&program);
    command
        .args(["demo", "--busy", "--admin", &admin.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut demo = Server::start("larder demo --busy", &mut command)?;
    demo.wait_for(admin, READY_MAX)?;
    gathered(&mut demo, Duration::from_secs(seconds))?;
    let browser = Browser::start(scratch.path(), "screenshots")?;
    for (page, name) in PICTURES {
        let picture = root.join("docs/images").join(format!("dashboard-{name}.png"));
        dashboard::draw(&browser, admin, page, &picture)?;
        println!("docs/images/dashboard-{name}.png: {} bytes", std::fs::metadata(&picture)?.len());
    }
    demo.still_runs()
}

/// Waits while the demo gathers figures.
#[expect(clippy::disallowed_methods, reason = "no worker here: a tool that waits for another program")]
fn gathered(demo: &mut Server, time: Duration) -> Result<()> {
    let begun = Instant::now();
    while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        demo.still_runs()?;
        if std::io::stdout().is_terminal() {
            print!("\rfigures are gathered: {} s left ", left.as_secs());
            std::io::stdout().flush()?;
        }
        std::thread::sleep(left.min(Duration::from_secs(1)));
    }
    if std::io::stdout().is_terminal() {
        println!();
    }
    Ok(())
}
