//! The registry, and npm as its users run it: each with a home, a cache and a folder of its own.
//!
//! In: the stage and the folder with Verdaccio. Out: a [`Registry`] on a free port, and [`Npm`] that publishes and installs.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::fetch::Client;
use super::super::stage::Stage;
use harness::children::{Server, free_port, output_within};

pub(super) const READY_MAX: Duration = Duration::from_secs(30);
const NPM_MAX: Duration = Duration::from_secs(120);
/// Enough for the list of versions to be worth compressing.
const DEV_DEPENDENCIES: usize = 60;

/// Verdaccio.
pub(super) struct Registry {
    pub(super) address: SocketAddr,
    _server: Server,
}

impl Registry {
    pub(super) fn start(stage: &Stage<'_>, folder: &Path) -> Result<Self> {
        let address = free_port()?;
        // Its storage lies beside its config.
        let config = stage.work.join("config.yaml");
        fs::copy(stage.data.join("config.yaml"), &config)?;
        let mut command = Command::new("node");
        command
            .arg(folder.join("node_modules/verdaccio/bin/verdaccio"))
            .arg("--config")
            .arg(config)
            .args(["--listen", &address.to_string()])
            .current_dir(stage.work)
            .stdin(Stdio::null())
            .stdout(fs::File::create(stage.work.join("verdaccio.log"))?);
        let mut server = Server::start("verdaccio", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        Ok(Self { address, _server: server })
    }
}

/// Adds a user, and returns the user's token.
pub(super) fn member(client: &Client, name: &str) -> Result<String> {
    let who = format!("{{\"name\":\"{name}\",\"password\":\"a password of hers\"}}");
    let target = format!("/-/user/org.couchdb.user:{name}");
    let answer = client
        .curl(&target, &["-X", "PUT", "-H", "Content-Type: application/json", "--data-binary", &who])?;
    let said: serde_json::Value = serde_json::from_slice(&answer.body).context("no JSON")?;
    let token = said.get("token").and_then(serde_json::Value::as_str);
    Ok(token.with_context(|| format!("no token: {} {}", answer.status, answer.text()))?.to_owned())
}

pub(super) fn npm_version() -> Result<String> {
    Ok(output_within(Command::new("npm").arg("--version"), READY_MAX)?.trim().to_owned())
}

/// A package to publish.
#[derive(Clone, Copy)]
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// The package that it depends on.
    pub(super) needs: Option<&'static str>,
}

/// Versions after an installation.
pub(super) struct Installed {
    pub(super) root: String,
    /// Of larder-leaf; empty where it is not needed.
    pub(super) leaf: String,
}

/// npm of one user.
pub(super) struct Npm {
    home: PathBuf,
}

impl Npm {
    /// With a home of its own below `work`, in which nothing is cached yet.
    pub(super) fn new(work: &Path, name: &str, registry: SocketAddr, token: Option<&str>) -> Result<Self> {
        let home = work.join(format!("npm-{name}"));
        fs::create_dir_all(&home)?;
        let mut settings = format!(
            "registry=http://{registry}/\ncache={}\naudit=false\nfund=false\nupdate-notifier=false\n",
            home.join("cache").display()
        );
        if let Some(token) = token {
            settings.push_str(&format!("//{registry}/:_authToken={token}\n"));
        }
        fs::write(home.join(".npmrc"), settings)?;
        Ok(Self { home })
    }

    pub(super) fn publish(&self, package: &Package) -> Result<()> {
        let folder = self.home.join("packages").join(package.name.replace('/', "-")).join(package.version);
        fs::create_dir_all(&folder)?;
        let needs = package.needs.map(|name| (name.to_owned(), serde_json::Value::from("^1.0.0")));
        let unused = (0..DEV_DEPENDENCIES).map(|n| (format!("never-installed-{n}"), "1.0.0".into()));
        let manifest = serde_json::json!({
            "name": package.name,
            "version": package.version,
            "dependencies": needs.into_iter().collect::<serde_json::Map<_, _>>(),
            "devDependencies": unused.collect::<serde_json::Map<_, serde_json::Value>>(),
        });
        fs::write(folder.join("package.json"), manifest.to_string())?;
        fs::write(folder.join("index.js"), format!("module.exports = '{}';\n", package.version))?;
        self.npm(&folder, &["publish"]).map(drop)
    }

    /// Installs a package into a new project.
    pub(super) fn install(&self, package: &str) -> Result<Installed> {
        let project = self.home.join("project");
        fs::create_dir_all(&project)?;
        fs::write(project.join("package.json"), "{\"name\":\"project\",\"private\":true}")?;
        self.npm(&project, &["install", package])?;
        let modules = project.join("node_modules");
        // The file says the same as the manifest, so it came out of the right tarball.
        let version = |name: &str| -> Result<String> {
            let file = modules.join(name).join("index.js");
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            Ok(text.split('\'').nth(1).unwrap_or_default().to_owned())
        };
        let leaf = if modules.join("larder-leaf").exists() { version("larder-leaf")? } else { String::new() };
        Ok(Installed { root: version(package)?, leaf })
    }

    fn npm(&self, folder: &Path, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("npm");
        command
            .args(arguments)
            .arg("--loglevel=error")
            .current_dir(folder)
            .env("HOME", &self.home)
            .env("npm_config_userconfig", self.home.join(".npmrc"));
        let printed = output_within(&mut command, NPM_MAX).with_context(|| format!("npm {arguments:?}"))?;
        ensure!(!printed.contains("npm error"), "{printed}");
        Ok(printed)
    }
}
