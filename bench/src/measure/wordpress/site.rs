//! WordPress from Debian's packages, in a scratch folder: a database and a web server that nobody else uses.
//!
//! In: a scratch folder. Out: a running [`Site`], installed by WordPress's own installer and filled with sample posts,
//! comments and users, and the count of what its web server was asked. Apache's log is what counts: no cache is
//! believed about what it sent.
//! Deliberately absent: the system's services and their configuration; nothing outside of the scratch folder is
//! written. What is started is ended by its id when the [`Site`] is dropped.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::pause;
use super::visitor::Visitor;
use harness::children::{Server, free_port, run_within};

/// What all of it comes from. Apache is a dependency of its PHP module.
pub(crate) const PACKAGES: &[&str] = &[
    "wordpress",
    "wordpress-theme-twentytwentythree",
    "libapache2-mod-php",
    "php-cli",
    "php-mysql",
    "mariadb-server",
    "media-types",
    "curl",
];

pub(crate) const ADMIN: (&str, &str) = ("keeper", "keeper-of-this-run");
pub(super) const AUTHOR: (&str, &str) = ("author", "author-of-this-run");

const WORDPRESS: &str = "/usr/share/wordpress";
const MODULES: &str = "/usr/lib/apache2/modules";
const STEP_MAX: Duration = Duration::from_secs(60);
const READY_MAX: Duration = Duration::from_secs(30);
/// Apache writes a line of its log when PHP has finished, which may be after the client has its page.
const LOG_MAX: Duration = Duration::from_secs(10);
const LOG_QUIET: Duration = Duration::from_millis(600);

/// A running WordPress. It lasts as long as this value; the folder is the caller's.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    work: PathBuf,
    // Dropped in this order: the web server ends before what it asks.
    web: Server,
    database: Option<Server>,
}

impl Site {
    /// Sets up and starts a site below `work`.
    pub(crate) fn start(work: &Path) -> Result<Self> {
        let site = work.join("site");
        // With the files behind the links by which Debian shares them among packages.
        finish(Command::new("cp").args(["-rL", WORDPRESS]).arg(&site))?;
        let _ = fs::remove_file(site.join(".htaccess"));
        let database = start_database(work)?;
        let here = work.display().to_string();
        let values = [("@SOCKET@", socket(work).display().to_string()), ("@SALT@", here.clone())];
        fs::write(site.join("wp-config.php"), fill(include_str!("wp-config.php"), &values))?;

        let address = free_port()?;
        let values = [("@WORK@", here), ("@PORT@", address.port().to_string()), ("@PHP@", php_module()?)];
        let mut config = fill(include_str!("apache.conf"), &values);
        if is_root() {
            // Only root may choose a user, and has to.
            config.push_str("User www-data\nGroup www-data\n");
            finish(Command::new("chmod").arg("755").arg(work))?;
            finish(Command::new("chown").args(["-R", "www-data:www-data"]).arg(&site))?;
        }
        let file = work.join("apache.conf");
        fs::write(&file, config)?;
        let mut apache = Command::new("apache2");
        apache.arg("-f").arg(&file).arg("-DFOREGROUND").env("PATH", search_path());
        let mut web = Server::start("Apache", &mut apache)?;
        web.wait_for(address, READY_MAX).with_context(|| log(work))?;
        let site = Self { address, work: work.to_owned(), web, database: Some(database) };
        site.install()?;
        Ok(site)
    }

    /// What a browser does at the first visit, and then the samples.
    fn install(&self) -> Result<()> {
        let browser = Visitor::new(self.address, &self.work, "installer", 1);
        let form = [
            ("weblog_title", "The larder"),
            ("user_name", ADMIN.0),
            ("admin_password", ADMIN.1),
            ("admin_password2", ADMIN.1),
            ("pw_weak", "1"),
            ("admin_email", "keeper@site.example"),
            ("blog_public", "0"),
        ];
        let answer = browser.post("/wp-admin/install.php?step=2", &form)?;
        ensure!(
            answer.status == 200 && answer.says("WordPress has been installed"),
            "the installer answered {}; {}",
            answer.status,
            log(&self.work)
        );
        let script = self.work.join("fill.php");
        fs::write(&script, include_str!("fill.php"))?;
        finish(Command::new("php").arg(&script).arg(self.address.to_string()))
    }

    /// Requests that Apache has answered whose request line begins with `line`, once no more are coming in.
    pub(crate) fn asked(&self, line: &str) -> Result<usize> {
        let deadline = Instant::now() + LOG_MAX;
        let (mut count, mut since) = (self.logged(line)?, Instant::now());
        while since.elapsed() < LOG_QUIET {
            ensure!(Instant::now() < deadline, "Apache's log does not come to rest");
            pause();
            let now = self.logged(line)?;
            if now != count {
                (count, since) = (now, Instant::now());
            }
        }
        Ok(count)
    }

    /// The same, of requests that came through larder.
    pub(crate) fn asked_through_larder(&self) -> Result<usize> {
        // Nothing more is coming in then.
        self.asked("")?;
        let log = self.log()?;
        Ok(log.lines().filter_map(|l| l.split('\t').nth(3)).filter(|via| via.ends_with("larder")).count())
    }

    fn logged(&self, line: &str) -> Result<usize> {
        let log = self.log()?;
        Ok(log.lines().filter_map(|l| l.split('\t').nth(1)).filter(|l| l.starts_with(line)).count())
    }

    fn log(&self) -> Result<String> {
        fs::read_to_string(self.work.join("access.log")).context("Apache's log")
    }

    /// Ends the database: from now on every page is an error.
    pub(super) fn stop_database(&mut self) {
        self.database = None;
    }

    /// Fails when one of its two servers has ended.
    pub(crate) fn still_runs(&mut self) -> Result<()> {
        self.web.still_runs()?;
        self.database.as_mut().map_or(Ok(()), Server::still_runs)
    }
}

fn start_database(work: &Path) -> Result<Server> {
    let data = work.join("db");
    fs::create_dir(&data)?;
    let user = is_root().then_some("--user=mysql");
    if is_root() {
        finish(Command::new("chmod").arg("755").arg(work))?;
        finish(Command::new("chown").args(["mysql:mysql"]).arg(&data))?;
    }
    let folder = format!("--datadir={}", data.display());
    finish(
        Command::new("mariadb-install-db")
            .arg("--no-defaults")
            .args(user)
            .arg(&folder)
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"]),
    )?;
    let mut command = Command::new("mariadbd");
    command
        .arg("--no-defaults")
        .args(user)
        .arg(&folder)
        .arg(format!("--socket={}", socket(work).display()))
        .arg(format!("--pid-file={}/pid", data.display()))
        .arg(format!("--log-error={}/log", data.display()))
        .arg("--skip-networking")
        .env("PATH", search_path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = Server::start("MariaDB", &mut command)?;
    let deadline = Instant::now() + READY_MAX;
    while UnixStream::connect(socket(work)).is_err() {
        server.still_runs()?;
        if Instant::now() > deadline {
            bail!("MariaDB is not ready after {} s", READY_MAX.as_secs());
        }
        pause();
    }
    finish(
        Command::new("mariadb")
            .args(["--no-defaults", "--user=root"])
            .arg(format!("--socket={}", socket(work).display()))
            .args(["-e", "CREATE DATABASE wordpress CHARACTER SET utf8mb4"]),
    )?;
    Ok(server)
}

fn socket(work: &Path) -> PathBuf {
    work.join("db/socket")
}

fn fill(template: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(template.to_owned(), |text, (mark, value)| text.replace(mark, value))
}

fn finish(command: &mut Command) -> Result<()> {
    let status = run_within(command.stdin(Stdio::null()).stdout(Stdio::null()), STEP_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

fn log(work: &Path) -> String {
    let log = fs::read_to_string(work.join("apache.log")).unwrap_or_default();
    format!("Apache's log says:\n{log}")
}

fn php_module() -> Result<String> {
    let mut names = fs::read_dir(MODULES)
        .context(MODULES)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find(|name| name.starts_with("libphp")).context("Apache has no PHP module")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Servers lie where only root's search path reaches.
fn search_path() -> String {
    format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default())
}
