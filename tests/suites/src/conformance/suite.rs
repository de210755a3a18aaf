//! The public cache suite as a program: installed once, its origin started, its client run.
//!
//! In: the versions pinned in tests/conformance/package-lock.json. Out: the list of tests, and raw results of a run.
//! It lives in target/conformance, beside a copy of tests/conformance/suite.mjs, because Node looks for packages above
//! the script that asks for them.
//! Deliberately absent: verdicts.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::score::Results;
use harness::children::{Server, free_port, run_within};
use harness::install::{self, From, Tool};

const TOOLS: &[Tool] = &[
    Tool { program: "node", from: From::Apt("nodejs"), targets: &["conformance"] },
    Tool { program: "npm", from: From::Apt("npm"), targets: &["conformance"] },
];

/// A whole run takes about 20 s, one test at most about 20.
const RUN_MAX: Duration = Duration::from_secs(600);
const READY_MAX: Duration = Duration::from_secs(20);

/// The installed suite.
pub(crate) struct Installed {
    folder: PathBuf,
}

/// How much a run tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    Results,
    /// Every message of both sides on standard output.
    Messages,
}

impl Installed {
    /// Installs the pinned packages below target/conformance, where they are not there yet.
    ///
    /// # Errors
    /// No node or npm, or npm could not fetch the packages.
    pub(crate) fn ensure(root: &Path) -> Result<Self> {
        install::ensure_for(root, "conformance", TOOLS)?;
        let (pinned, folder) = (root.join("tests/conformance"), root.join("target/conformance"));
        install::packages(&pinned, &folder)?;
        let installed = Self { folder };
        fs::copy(pinned.join("suite.mjs"), installed.folder.join("suite.mjs")).context("suite.mjs")?;
        Ok(installed)
    }

    fn package(&self) -> PathBuf {
        self.folder.join("node_modules/http-cache-tests")
    }

    /// The package's own version.
    pub(crate) fn version(&self) -> Result<String> {
        let text =
            fs::read_to_string(self.package().join("package.json")).context("the suite's package.json")?;
        let manifest: Value = serde_json::from_str(&text).context("the suite's package.json")?;
        Ok(manifest.get("version").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Every test, and the results that came with the package.
    pub(crate) fn list(&self) -> Result<Value> {
        self.drive("list", None, &[])
    }

    /// Starts the origin that the tests script.
    pub(crate) fn origin(&self, telling: Telling) -> Result<(Server, SocketAddr)> {
        let address = free_port()?;
        let mut command = Command::new("node");
        command
            .arg("server/server.mjs")
            .env("npm_config_protocol", "http")
            .env("npm_config_port", address.port().to_string())
            .env("npm_config_pidfile", self.folder.join("origin.pid"))
            .current_dir(self.package());
        if telling == Telling::Results {
            command.stdout(Stdio::null());
        }
        let mut server = Server::start("the suite's origin", &mut command)?;
        server.wait_for(address, READY_MAX)?;
        Ok((server, address))
    }

    /// Runs the tests named, one after the other, or all of them at once where none is.
    pub(crate) fn run(&self, cache: SocketAddr, ids: &[&str], telling: Telling) -> Result<Results> {
        let what = if telling == Telling::Messages { "show" } else { "run" };
        let answer = self.drive(what, Some(cache), ids)?;
        answer.as_object().cloned().context("the suite's results are no object")
    }

    fn drive(&self, what: &str, cache: Option<SocketAddr>, ids: &[&str]) -> Result<Value> {
        let file = self.folder.join(format!("{what}.json"));
        // An answer left by an earlier run must not speak for this one.
        let _ = fs::remove_file(&file);
        let mut command = Command::new("node");
        command.args(["--no-warnings", "suite.mjs", what]).arg(&file).current_dir(&self.folder);
        if let Some(cache) = cache {
            // Without a slash at the end: the suite adds its own.
            command.arg(format!("http://{cache}")).args(ids);
        }
        let status = run_within(&mut command, RUN_MAX)?;
        ensure!(status.success(), "the suite broke off: {status}");
        let text = fs::read_to_string(&file).context("the suite left no answer")?;
        serde_json::from_str(&text).context("the suite's answer")
    }
}
