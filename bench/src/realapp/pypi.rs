//! pip through larder: pypiserver with wheels made on the spot, and clients without a cache of their own.
//!
//! In: the stage. Out: a table of what each step asked of the index. A wheel that the index is asked for twice, a new version
//! that does not show and an installation that fails, fail the run; see tests/realapp/pypi/README.md.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fetch::Client;
use super::python;
use super::stage::Stage;
use harness::children::{Server, free_port, output_within, pause};

pub(super) use super::python::PACKAGES;

const READY_MAX: Duration = Duration::from_secs(60);
const PIP_MAX: Duration = Duration::from_secs(120);
const CROWD: usize = 6;
/// The large one needs the other two.
const LARGE: &str = "larder-large";
const SMALL: [&str; 2] = ["larder-one", "larder-two"];
const LARGE_BYTES: &str = "12000000";
/// What pip says that it takes of a list.
const PIP_ACCEPTS: &str = "Accept: application/vnd.pypi.simple.v1+json, \
                           application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let python = python::interpreter(stage, "pypi")?;
    let (index, server) = Index::start(stage, &python)?;
    index.add(SMALL[0], "1.0", "50000", &[])?;
    index.add(SMALL[1], "1.0", "50000", &[])?;
    index.add(LARGE, "1.0", LARGE_BYTES, &SMALL)?;
    let config = stage
        .example("pypi.toml", "http://127.0.0.1:8088", index.address)?
        .replace("./pypi-cache", &stage.work.join("pypi-cache").display().to_string())
        .replace("memory = \"256MiB\"", "memory = \"16MiB\"")
        .replace("40GiB", "256MiB")
        .replace("4GiB", "64MiB");
    println!("| step | asked of the index | of it wheels |");
    println!("|---|---|---|");
    let larder = stage.larder(&config)?;
    let (public, admin) = (larder.public, larder.admin);
    let mut steps = Steps { python: &python, index: &index, work: stage.work, public, admin, seen: 0 };

    steps.install("first", &[LARGE])?;
    let first = steps.row("`pip install` of three packages")?;
    ensure!(wheels(&first) == 3, "{first:?}");
    steps.install("second", &[LARGE])?;
    let second = steps.row("the same again, without a cache of pip's own")?;
    ensure!(wheels(&second) == 0, "the index was asked for wheels again: {second:?}");

    index.add(SMALL[0], "2.0", "50000", &[])?;
    steps.larder_rm(stage, &format!("http://{public}/simple/{}/", SMALL[0]))?;
    ensure!(steps.install("third", &["--upgrade", SMALL[0]])? == "2.0", "the new version does not show");
    steps.row("a new version is published; `larder rm`, and `pip install` of it")?;

    index.add(SMALL[1], "2.0", "50000", &[])?;
    let shown = Instant::now();
    let limit = Duration::from_secs(75);
    while !steps.lists(SMALL[1], "2.0")? {
        ensure!(shown.elapsed() < limit, "a new version does not show after {} s", limit.as_secs());
        pause();
    }
    println!("a new version showed after {:.0} s without a word to larder", shown.elapsed().as_secs_f64());
    steps.seen = steps.index.asked()?.len();

    drop(larder);
    let mut larder = stage.larder_at(public, &config)?;
    steps.admin = larder.admin;
    steps.install("fourth", &[LARGE])?;
    let restarted = steps.row("larder restarted; `pip install` of the three")?;
    ensure!(wheels(&restarted) <= 1, "not from the disk: {restarted:?}");

    index.add("larder-crowd", "1.0", LARGE_BYTES, &[])?;
    let steps_of = &steps;
    std::thread::scope(|scope| {
        let working: Vec<_> = (0..CROWD)
            .map(|number| {
                scope.spawn(move || steps_of.install(&format!("crowd-{number}"), &["larder-crowd"]))
            })
            .collect();
        working
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| anyhow::bail!("a client panicked")).map(drop))
    })?;
    let crowd = steps.row(&format!("{CROWD} clients at once, a package of 12 MB"))?;
    ensure!(wheels(&crowd) == 1, "{crowd:?}");

    drop(server);
    steps.install("after", &[LARGE])?;
    println!("the index stopped: `pip install` of the three goes on");
    larder.still_runs()?;
    let script = "import importlib.metadata as m; print('pypiserver', m.version('pypiserver'), '/ pip', m.version('pip'))";
    let versions = output_within(Command::new(&python).args(["-c", script]), READY_MAX)?;
    Ok(versions.trim().replace(" / ", ", "))
}

fn wheels(asked: &[String]) -> usize {
    asked.iter().filter(|target| target.contains(".whl")).count()
}

/// The index: a folder of wheels, and pypiserver before it.
struct Index {
    address: SocketAddr,
    folder: PathBuf,
    log: PathBuf,
    python: PathBuf,
    builder: PathBuf,
}

impl Index {
    fn start(stage: &Stage<'_>, python: &Path) -> Result<(Self, Server)> {
        let (folder, log) = (stage.work.join("wheels"), stage.work.join("pypiserver.log"));
        fs::create_dir(&folder)?;
        let address = free_port()?;
        let mut command = Command::new(python);
        command
            .args(["-m", "pypiserver", "run", "-i", "127.0.0.1", "-p", &address.port().to_string()])
            .args(["-P", ".", "-a", ".", "--disable-fallback", "--log-stream", "none", "-vv", "--log-file"])
            .arg(&log)
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(stage.work.join("pypiserver.err"))?);
        let mut server = Server::start("pypiserver", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        let builder = stage.data.join("wheel.py");
        Ok((Self { address, folder, log, python: python.to_owned(), builder }, server))
    }

    /// Builds a wheel into its folder.
    fn add(&self, name: &str, version: &str, bytes: &str, needs: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.python);
        command.arg(&self.builder).arg(&self.folder).args([name, version, bytes]).args(needs);
        output_within(&mut command, READY_MAX).map(drop)
    }

    /// Every request that it was sent, by its log. Nobody but larder asks it.
    fn asked(&self) -> Result<Vec<String>> {
        let log = fs::read_to_string(&self.log).context("pypiserver's log")?;
        let requests = log.lines().filter_map(|line| line.split_once("<LocalRequest: "));
        Ok(requests.map(|(_, request)| request.trim_end_matches('>').to_owned()).collect())
    }
}

struct Steps<'a> {
    python: &'a Path,
    index: &'a Index,
    work: &'a Path,
    public: SocketAddr,
    admin: SocketAddr,
    seen: usize,
}

impl Steps<'_> {
    /// Installs into a folder of its own, and returns the version of the last package.
    fn install(&self, name: &str, packages: &[&str]) -> Result<String> {
        let target = self.work.join(name);
        let public = self.public;
        let mut command = Command::new(self.python);
        command
            .args(["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir"])
            .args(["--index-url", &format!("http://{public}/simple/"), "--trusted-host", "127.0.0.1"])
            .arg("--target")
            .arg(&target)
            .args(packages)
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env_remove("http_proxy");
        output_within(&mut command, PIP_MAX).with_context(|| format!("pip install {packages:?}"))?;
        let module = packages.last().context("no package")?.replace('-', "_");
        let text = fs::read_to_string(target.join(module).join("__init__.py"))?;
        Ok(text.split('"').nth(1).context("no version")?.to_owned())
    }

    /// Whether the list of a package, as larder gives it out, has this version.
    fn lists(&self, name: &str, version: &str) -> Result<bool> {
        let client = Client { address: self.public, host: self.public, compressed: false };
        let answer = client.send(&format!("/simple/{name}/"), &[PIP_ACCEPTS.to_owned()], &[])?;
        Ok(answer.text().contains(&format!("-{version}-")))
    }

    fn larder_rm(&self, stage: &Stage<'_>, url: &str) -> Result<()> {
        let mut command = Command::new(stage.program);
        command.args(["rm", "--admin", &self.admin.to_string(), url]);
        output_within(&mut command, READY_MAX).map(drop)
    }

    fn row(&mut self, step: &str) -> Result<Vec<String>> {
        let all = self.index.asked()?;
        let asked = all.get(self.seen..).unwrap_or_default().to_vec();
        self.seen = all.len();
        println!("| {step} | {} | {} |", asked.len(), wheels(&asked));
        Ok(asked)
    }
}
