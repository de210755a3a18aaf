//! A page as a browser draws it: headless Chromium, once, with a profile of its own. [`driver`] has one that is told what to do, and [`dashboard`]
//! what larder's own page needs.
//!
//! In: a URL. Out: a picture. Chromium talks to nobody but that URL, and what it leaves running is ended by its id.

pub(crate) mod dashboard;
pub(crate) mod driver;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use harness::children::run_within;

const DRAW_MAX: Duration = Duration::from_secs(90);
/// How long Chromium's own children may take to end after it.
const LEAVE_MAX: Duration = Duration::from_secs(10);
/// What a picture in the repository may weigh.
const PICTURE_BYTES_MAX: u64 = 300_000;

/// How every Chromium is started here: without a window, and without a word to its makers.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--hide-scrollbars",
    // Pages name pictures on other hosts, too.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

/// Draws `url` into `picture`.
pub(crate) fn draw(url: &str, picture: &Path, work: &Path) -> Result<()> {
    let profile = work.join("chromium");
    let log = fs::File::create(work.join("chromium.log"))?;
    let mut command = Command::new("chromium");
    command
        .args(OPTIONS)
        .arg(format!("--user-data-dir={}", profile.display()))
        // Time for scripts and pictures to arrive; it passes at once where nothing is left to wait for.
        .args(["--window-size=1100,1000", "--virtual-time-budget=10000"])
        .arg(format!("--screenshot={}", picture.display()))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let status = run_within(&mut command, DRAW_MAX);
    end_left_overs(&profile)?;
    ensure!(status.context("chromium")?.success(), "chromium failed; see {}", work.display());
    let bytes = fs::metadata(picture).context("chromium drew nothing")?.len();
    ensure!(bytes < PICTURE_BYTES_MAX, "the picture has {bytes} bytes, more than {PICTURE_BYTES_MAX}");
    Ok(())
}

/// Waits for the processes that name this run's profile, and ends those that stay.
fn end_left_overs(profile: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        let left = running_with(profile);
        if left.is_empty() {
            return Ok(());
        }
        let waited = start.elapsed();
        if waited > LEAVE_MAX {
            bail!("chromium left processes behind: {left:?}");
        }
        if waited > LEAVE_MAX / 2 {
            // One that is gone by now is what is wanted.
            left.iter().filter_map(|pid| Pid::from_raw(*pid)).for_each(|pid| {
                let _ = kill_process(pid, Signal::KILL);
            });
        }
        harness::children::pause();
    }
}

fn running_with(profile: &Path) -> Vec<i32> {
    let wanted = profile.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&wanted)
        })
        .collect()
}
