//! apt through larder: a repository made on the spot, served by nginx, and machines whose apt knows nothing else.
//!
//! In: the stage. Out: a table of what each step asked of the mirror. A package that the mirror is asked for twice, a new
//! version that does not show, and an apt that refuses what it got fail the run; see tests/realapp/apt/README.md.

mod repository;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::{Larder, Stage};
use super::static_files::{Asked, StaticFiles};
use crate::packages;
use harness::children::run_within;
use repository::Repository;

pub(super) const PACKAGES: &[&str] = &["apt-utils", "gpg", "gpg-agent", "gpgconf", "gpgv", "nginx"];

const APT_MAX: Duration = Duration::from_secs(120);
const MACHINES: usize = 8;
const LARGE_BYTES: usize = 24_000_000;
const SMALL: [&str; 3] = ["larder-one", "larder-two", "larder-three"];
const LARGE: &str = "larder-large";

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let repository = Repository::new(stage.work)?;
    for name in SMALL {
        repository.add(name, "1.0", 200_000)?;
    }
    repository.add(LARGE, "1.0", LARGE_BYTES)?;
    repository.publish()?;
    let mut mirror = StaticFiles::start(stage.work, &repository.root, "")?;
    let config = stage.example("apt.toml", "http://127.0.0.1:8087", mirror.address)?;
    let config = config.replace("./apt-cache", &stage.work.join("apt-cache").display().to_string());
    let config = config
        .replace("40GiB", "256MiB")
        .replace("4GiB", "64MiB")
        .replace("memory = \"256MiB\"", "memory = \"16MiB\"");
    let larder = stage.larder(&config)?;
    let public = larder.public;
    let mut table = Table::new(&mirror, larder)?;
    println!("| step | asked of the mirror | of it packages | bytes sent by the mirror |");
    println!("|---|---|---|---|");

    let machine = |name: &str| Machine::new(stage.work, name, public, &repository.key);
    let first = machine("first")?;
    first.update()?;
    table.row("a machine's `apt-get update`")?;
    first.install(&SMALL)?;
    table.row("its `apt-get install` of three packages")?;
    first.update()?;
    let again = table.row("`apt-get update` again")?;
    ensure!(again.iter().all(|one| one.status == 304), "an update without news: {again:?}");

    let second = machine("second")?;
    second.update()?;
    let update = table.row("another machine's `apt-get update`")?;
    ensure!(update.iter().all(|one| one.target.ends_with("InRelease") && one.status == 304), "{update:?}");
    second.install(&SMALL)?;
    let install = table.row("its `apt-get install` of the same")?;
    ensure!(install.is_empty(), "the mirror was asked for packages again: {install:?}");

    repository.add(SMALL[0], "2.0", 200_000)?;
    repository.publish()?;
    second.update()?;
    second.install(&SMALL[..1])?;
    table.row("a new version is published; its `update` and `install`")?;
    ensure!(second.has(SMALL[0], "2.0")?, "the new version does not show");

    drop(table);
    let mut table = Table::new(&mirror, stage.larder_at(public, &config)?)?;
    let third = machine("third")?;
    third.update()?;
    third.install(&SMALL)?;
    let restarted = table.row("larder restarted; a third machine's `update` and `install`")?;
    ensure!(restarted.iter().all(|one| !one.target.ends_with(".deb")), "not from the disk: {restarted:?}");

    let machines: Vec<Machine> =
        (0..MACHINES).map(|number| machine(&format!("crowd-{number}"))).collect::<Result<_>>()?;
    std::thread::scope(|scope| {
        let working: Vec<_> = machines
            .iter()
            .map(|machine| {
                scope.spawn(|| machine.update().and_then(|()| machine.install(&[LARGE]).map(drop)))
            })
            .collect();
        working
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| anyhow::bail!("a machine panicked")))
    })?;
    let crowd = table.row(&format!(
        "{MACHINES} machines at once: `update`, `install` of {} MB",
        LARGE_BYTES / 1_000_000
    ))?;
    let large = crowd.iter().filter(|one| one.target.contains(LARGE)).count();
    ensure!(large == 1, "{MACHINES} machines caused {large} requests for one package");

    let cut = machine("cut")?;
    cut.update()?;
    cut.has_begun(&format!("{LARGE}_1.0_all.deb"), &machines[0], LARGE_BYTES / 3)?;
    let said = cut.install(&[LARGE])?;
    ensure!(
        said.contains("Range: bytes=") && said.contains(" 206 "),
        "apt did not go on where it was: {said}"
    );
    let resumed = table.row("a machine whose download was cut goes on")?;
    ensure!(resumed.iter().all(|one| !one.target.ends_with(".deb")), "{resumed:?}");

    let by_default = format!(
        "[origins.mirror]\nservers = \"http://{}\"\n\n[[site]]\norigin = \"mirror\"\n",
        mirror.address
    );
    drop(table);
    let mut table = Table::new(&mirror, stage.larder_at(public, &by_default)?)?;
    for (name, step) in
        [("plain-1", "without any rule: `update` and `install`"), ("plain-2", "the same on another machine")]
    {
        let machine = machine(name)?;
        machine.update()?;
        machine.install(&SMALL)?;
        let asked = table.row(step)?;
        let again = name == "plain-2" && asked.iter().any(|one| one.target.ends_with(".deb"));
        ensure!(!again, "the mirror was asked for packages again: {asked:?}");
    }

    table.larder.still_runs()?;
    mirror.still_runs()?;
    let version = |name| packages::version(name).unwrap_or_default();
    Ok(format!("apt {}, nginx {}", version("apt"), version("nginx")))
}

/// What the mirror was asked for in each step.
struct Table<'a> {
    mirror: &'a StaticFiles,
    larder: Larder,
    /// Lines of the mirror's log before this larder was started, and before this step.
    before: usize,
    seen: usize,
}

impl<'a> Table<'a> {
    fn new(mirror: &'a StaticFiles, larder: Larder) -> Result<Self> {
        let before = mirror.asked()?.len();
        Ok(Self { mirror, larder, before, seen: before })
    }

    /// Prints a row, and returns what was asked in this step.
    fn row(&mut self, step: &str) -> Result<Vec<Asked>> {
        let sent = usize::try_from(self.larder.sum("larder_origin_requests_total")?)?;
        let all = self.mirror.asked_at_least(self.before + sent)?;
        let asked: Vec<Asked> = all.get(self.seen..).unwrap_or_default().to_vec();
        self.seen = all.len();
        let packages = asked.iter().filter(|one| one.target.ends_with(".deb")).count();
        let confirmed = asked.iter().filter(|one| one.status == 304).count();
        let bytes: u64 = asked.iter().map(|one| one.bytes).sum();
        println!("| {step} | {}, {confirmed} of them answered 304 | {packages} | {bytes} |", asked.len());
        Ok(asked)
    }
}

/// A machine with its own apt and dpkg, which know one repository.
struct Machine {
    root: PathBuf,
    config: PathBuf,
}

impl Machine {
    fn new(work: &Path, name: &str, larder: SocketAddr, key: &Path) -> Result<Self> {
        let root = work.join(name);
        for folder in [
            "etc/apt/preferences.d",
            "etc/apt/sources.list.d",
            "etc/apt/trusted.gpg.d",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/log/apt",
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
        ] {
            fs::create_dir_all(root.join(folder)).context(folder)?;
        }
        fs::write(root.join("var/lib/dpkg/status"), "")?;
        let source = format!("deb [signed-by={}] http://{larder}/ stable main\n", key.display());
        fs::write(root.join("etc/apt/sources.list"), source)?;
        let config = root.join("apt.conf");
        // Nothing of this computer's own configuration is read.
        let text = format!(
            "Dir \"{at}\";\nDir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n\
             Dir::State::status \"{at}/var/lib/dpkg/status\";\nAPT::Architecture \"amd64\";\n\
             APT::Architectures {{ \"amd64\"; }};\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n\
             Acquire::http::Proxy \"DIRECT\";\nDebug::Acquire::http \"true\";\n\
             DPkg::Options {{ \"--root={at}\"; \"--force-not-root\"; }};\n",
            at = root.display()
        );
        fs::write(&config, text)?;
        Ok(Self { root, config })
    }

    fn update(&self) -> Result<()> {
        self.apt(&["update"]).map(drop)
    }

    /// Installs packages, and returns what apt says of its requests.
    fn install(&self, names: &[&str]) -> Result<String> {
        let said = self.apt(&[&["install", "-y"], names].concat())?;
        let status = fs::read_to_string(self.root.join("var/lib/dpkg/status"))?;
        for name in names {
            let has = status.contains(&format!("Package: {name}\nStatus: install ok installed"));
            ensure!(has, "{name} is not installed: {said}");
        }
        Ok(said)
    }

    fn apt(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("APT_CONFIG", &self.config).env("LC_ALL", "C").env_remove("http_proxy");
        // Both streams: what is said of requests is on the second one.
        let log = self.root.join("apt.log");
        let file = fs::File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let status = run_within(&mut command, APT_MAX)?;
        let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        ensure!(status.success() && !said.contains("\nW: "), "apt-get {arguments:?}: {status}: {said}");
        Ok(said)
    }

    fn has(&self, name: &str, version: &str) -> Result<bool> {
        let status = fs::read_to_string(self.root.join("var/lib/dpkg/status"))?;
        Ok(status.split("\n\n").any(|one| {
            one.contains(&format!("Package: {name}\n")) && one.contains(&format!("Version: {version}\n"))
        }))
    }

    /// Leaves the beginning of another machine's package, as a download that was cut does.
    fn has_begun(&self, file: &str, other: &Self, bytes: usize) -> Result<()> {
        let whole = other.root.join("var/cache/apt/archives").join(file);
        let content = fs::read(&whole).with_context(|| whole.display().to_string())?;
        let partial = self.root.join("var/cache/apt/archives/partial").join(file);
        fs::write(&partial, content.get(..bytes).context("a package that is too small")?)?;
        repository::run(Command::new("touch").arg("-r").arg(&whole).arg(&partial))
    }
}
