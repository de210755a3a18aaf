//! Films through larder: nginx with files that ffmpeg made, players that jump, and clients that go away.
//!
//! In: the stage. Out: a table of what each step asked of the server. A range that the server is asked for twice, a wrong byte, a
//! player that cannot jump and a fetch that ends with its client fail the run; see tests/realapp/video/README.md.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;

use super::fetch::Client;
use super::random::Random;
use super::stage::{Larder, Stage};
use super::static_files::{Asked, StaticFiles};
use crate::browser::driver::Browser;
use crate::packages;
use harness::children::{pause, run_within};

pub(super) const PACKAGES: &[&str] = &["nginx", "ffmpeg", "chromium", "chromium-driver", "fonts-dejavu-core"];

const ENCODE_MAX: Duration = Duration::from_secs(300);
const FILL_MAX: Duration = Duration::from_secs(30);
const LARGE_BYTES: usize = 48_000_000;
/// Requests after which a file is on the disk as a whole, however slow that is.
const WHOLE_AFTER: usize = 6;
const CROWD: usize = 20;
const FILM_SECONDS: u32 = 120;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let folder = stage.work.join("films");
    fs::create_dir(&folder)?;
    films(&folder)?;
    for name in ["parts.mp4", "left.mp4", "crowd.mp4"] {
        fs::write(folder.join(name), bytes_of(name))?;
    }
    let page = "<!doctype html><title>film</title><video muted></video>\n";
    fs::write(folder.join("player.html"), page)?;
    for entry in fs::read_dir(&folder)? {
        let mut command = Command::new("touch");
        tool(command.args(["-d", "30 days ago"]).arg(entry?.path()))?;
    }
    let mut server = StaticFiles::start(stage.work, &folder, "")?;
    let config = stage
        .example("video.toml", "http://127.0.0.1:8089", server.address)?
        .replace("./video-cache", &stage.work.join("video-cache").display().to_string())
        .replace("memory = \"256MiB\"", "memory = \"32MiB\"")
        .replace("200GiB", "512MiB")
        .replace("20GiB", "128MiB");
    let larder = stage.larder(&config)?;
    let mut steps = Steps { server: &server, larder, seen: 0 };
    println!("| step | asked of the server | ranges | bytes sent by it |");
    println!("|---|---|---|---|");

    parts(&mut steps)?;
    leaving(&mut steps)?;
    crowd(&mut steps)?;
    stream(&mut steps, &folder)?;
    for film in ["film.mp4", "film.webm"] {
        watch(stage, &mut steps, film, &folder)?;
    }
    steps.larder.still_runs()?;
    server.still_runs()?;
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!("nginx {}, ffmpeg {}, chromium {}", version("nginx"), version("ffmpeg"), version("chromium")))
}

/// What the server was asked in each step.
struct Steps<'a> {
    server: &'a StaticFiles,
    larder: Larder,
    seen: usize,
}

impl Steps<'_> {
    fn client(&self) -> Client {
        self.larder.client()
    }

    fn row(&mut self, step: &str) -> Result<Vec<Asked>> {
        let sent = usize::try_from(self.larder.sum("larder_origin_requests_total")?)?;
        let all = self.server.asked_at_least(sent)?;
        let asked = all.get(self.seen..).unwrap_or_default().to_vec();
        self.seen = all.len();
        let bytes: u64 = asked.iter().map(|one| one.bytes).sum();
        let ranges: Vec<&str> = asked.iter().map(|one| one.range.as_str()).collect();
        let ranges = if ranges.len() > 6 { format!("{} of them", ranges.len()) } else { ranges.join(", ") };
        println!("| {step} | {} | {ranges} | {bytes} |", asked.len());
        Ok(asked)
    }
}

/// A range in the middle, one within it, one beside it, and then the whole.
fn parts(steps: &mut Steps<'_>) -> Result<()> {
    let (client, whole) = (steps.client(), bytes_of("parts.mp4"));
    let ranges = [(10_000_000, 13_999_999), (11_000_000, 12_999_999), (14_000_000, 17_999_999)];
    for (from, to) in ranges {
        let answer = client.ask_with("/parts.mp4", &format!("Range: bytes={from}-{to}"))?;
        ensure!(answer.status == 206 && answer.body == whole[from..=to], "bytes {from} to {to} are wrong");
        println!("bytes {from}-{to}: {}", answer.cache_status);
    }
    let asked = steps.row("three ranges of a file of 48 MB, the second within the first")?;
    ensure!(asked.len() == 2, "{asked:?}");
    let answer = client.get("/parts.mp4")?;
    println!("the whole: {}", answer.cache_status);
    ensure!(answer.status == 200 && answer.body == whole, "the whole is wrong");
    let asked = steps.row("the whole of it")?;
    // A part on disks that begins within a piece is of no use for the whole.
    ensure!(asked.len() == 1, "{asked:?}");
    let times = until_a_hit(&client, "/parts.mp4", &whole)?;
    steps.row(&format!("the whole again, until it is a hit: {times} times"))?;
    Ok(())
}

/// Asks for a file until it is whole on the disk: where that does not keep up with the client, later requests complete it.
/// Returns how often it was asked for.
fn until_a_hit(client: &Client, target: &str, whole: &[u8]) -> Result<usize> {
    for times in 1..=WHOLE_AFTER {
        let answer = client.get(target)?;
        ensure!(answer.body == whole, "{target}: other bytes: {}", answer.cache_status);
        if answer.is_hit() {
            return Ok(times);
        }
    }
    bail!("{target}: no hit after {WHOLE_AFTER} requests")
}

/// A client that leaves early: its fetch goes on, and the film is there for the next one.
fn leaving(steps: &mut Steps<'_>) -> Result<()> {
    let client = steps.client();
    let left = client.leave("/left.mp4")?;
    let deadline = Instant::now() + FILL_MAX;
    let answer = loop {
        let answer = client.ask_with("/left.mp4", "Range: bytes=47999900-47999999")?;
        if answer.is_hit() {
            break answer;
        }
        ensure!(Instant::now() < deadline, "the fetch ended with its client: {}", answer.cache_status);
        pause();
    };
    println!("a client left after {left} bytes; the film's end, then: {}", answer.cache_status);
    until_a_hit(&client, "/left.mp4", &bytes_of("left.mp4"))?;
    let asked = steps.row("a client asks for a film and leaves; another asks for it")?;
    ensure!(asked.len() == 1, "{asked:?}");
    Ok(())
}

/// Many clients at once, each with a range of its own somewhere in a film that is not stored, and some with the whole.
fn crowd(steps: &mut Steps<'_>) -> Result<()> {
    let (client, whole) = (steps.client(), bytes_of("crowd.mp4"));
    let mut random = Random::of_this_run();
    println!("LARDER_SEED={}", random.seed());
    let starts: Vec<usize> = (0..CROWD).map(|_| random.below(LARGE_BYTES - 1_000_000)).collect();
    std::thread::scope(|scope| {
        let asking: Vec<_> = starts
            .iter()
            .map(|from| {
                let whole = &whole;
                scope.spawn(move || {
                    let all = client.get("/crowd.mp4")?;
                    ensure!(all.body == *whole, "the whole is wrong");
                    let part =
                        client.ask_with("/crowd.mp4", &format!("Range: bytes={from}-{}", from + 999_999))?;
                    ensure!(
                        part.status == 206 && part.body == whole[*from..from + 1_000_000],
                        "a part is wrong"
                    );
                    Ok(())
                })
            })
            .collect();
        asking.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| bail!("a client panicked")))
    })?;
    let asked = steps.row(&format!("{CROWD} clients at once: the whole, then a range each"))?;
    ensure!(asked.len() == 1, "{asked:?}");
    Ok(())
}

/// The pieces of a stream, as many players fetch them.
fn stream(steps: &mut Steps<'_>, folder: &Path) -> Result<()> {
    let client = steps.client();
    let (mut pieces, mut fetched) = (0, 0);
    for list in ["hls/film.m3u8", "dash/film.mpd"] {
        let kind = list.split('/').next().unwrap_or_default();
        for player in 0..5 {
            let answer = client.get(&format!("/{list}"))?;
            ensure!(answer.body == fs::read(folder.join(list))?, "{list}: other bytes");
            for entry in fs::read_dir(folder.join(kind))? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name.ends_with(".ts") || name.ends_with(".m4s") {
                    let piece = client.get(&format!("/{kind}/{name}"))?;
                    ensure!(piece.body == fs::read(folder.join(kind).join(&name))?, "{name}: other bytes");
                    ensure!(player == 0 || piece.is_hit(), "{name}: {}", piece.cache_status);
                    fetched += 1;
                    pieces += usize::from(player == 0);
                }
            }
        }
    }
    let asked = steps.row(&format!("five players of an HLS and a DASH stream: {fetched} pieces fetched"))?;
    let of_pieces =
        asked.iter().filter(|one| one.target.ends_with(".ts") || one.target.ends_with(".m4s")).count();
    ensure!(of_pieces == pieces, "{pieces} pieces cost {of_pieces} requests");
    Ok(())
}

/// Chromium plays a film, and jumps.
fn watch(stage: &Stage<'_>, steps: &mut Steps<'_>, film: &str, folder: &Path) -> Result<()> {
    const PLAY: &str = "const [source, done] = arguments; const v = document.querySelector('video'); \
        v.onerror = () => done('error ' + v.error.code + ' ' + v.error.message); \
        v.onloadedmetadata = () => done('ready ' + v.duration); v.src = source;";
    const JUMP: &str = "const [to, done] = arguments; const v = document.querySelector('video'); \
        v.onerror = () => done('error ' + v.error.code + ' ' + v.error.message); \
        v.onseeked = () => done('at ' + v.currentTime + ' ' + v.readyState); v.currentTime = to;";
    let size = fs::metadata(folder.join(film))?.len();
    for round in ["first", "second"] {
        let browser = Browser::start(stage.work, &format!("{}-{round}", film.replace('.', "-")))?;
        browser.open(&format!("http://{}/player.html", steps.larder.public))?;
        let said = browser.script_until_done(PLAY, &json!([format!("/{film}")]))?;
        let said = said.as_str().unwrap_or_default().to_owned();
        ensure!(said.starts_with("ready 12") || said.starts_with("ready 119"), "{film}: {said}");
        for to in [FILM_SECONDS * 9 / 10, FILM_SECONDS / 2, FILM_SECONDS / 10] {
            let said = browser.script_until_done(JUMP, &json!([to]))?;
            ensure!(said.as_str().is_some_and(|said| said.starts_with("at ")), "{film}: to {to}: {said}");
        }
        drop(browser);
        let asked = steps.row(&format!("a {round} Chromium jumps in `{film}` of {} MB", size / 1_000_000))?;
        let of_film: Vec<&Asked> = asked.iter().filter(|one| one.target == format!("/{film}")).collect();
        println!("{film}, {round}: {of_film:?}");
    }
    let times = until_a_hit(&steps.client(), &format!("/{film}"), &fs::read(folder.join(film))?)?;
    steps.row(&format!("the whole of `{film}`, until it is a hit: {times} times"))?;
    Ok(())
}

/// Films of some minutes with pictures that cannot be compressed well, and the streams made of one.
fn films(folder: &Path) -> Result<()> {
    for kind in ["hls", "dash"] {
        fs::create_dir(folder.join(kind))?;
    }
    let source = format!("testsrc2=size=320x240:rate=5:duration={FILM_SECONDS},noise=alls=40:allf=t");
    let ffmpeg = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new("ffmpeg");
        tool(command.args(["-v", "error", "-nostdin", "-y"]).args(arguments).current_dir(folder))
    };
    let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "10", "-pix_fmt", "yuv420p"];
    // Its index is at the end: a player has to jump there first.
    ffmpeg(&[&["-f", "lavfi", "-i", &source], &h264[..], &["film.mp4"]].concat())?;
    let vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-g", "10", "-b:v", "800k"];
    ffmpeg(&[&["-i", "film.mp4"], &vp8[..], &["film.webm"]].concat())?;
    let copy = ["-t", "60", "-i", "film.mp4", "-c", "copy"];
    ffmpeg(
        &[&copy[..], &["-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod", "hls/film.m3u8"]].concat(),
    )?;
    ffmpeg(&[&copy[..], &["-f", "dash", "-seg_duration", "4", "dash/film.mpd"]].concat())
}

fn tool(command: &mut Command) -> Result<()> {
    let status = run_within(command.stdin(Stdio::null()).stdout(Stdio::null()), ENCODE_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The bytes of a large file, which its name decides.
fn bytes_of(name: &str) -> Vec<u8> {
    let mut state =
        name.bytes().fold(7_u64, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut bytes = Vec::with_capacity(LARGE_BYTES);
    while bytes.len() < LARGE_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_be_bytes()[..4]);
    }
    bytes.truncate(LARGE_BYTES);
    bytes
}
