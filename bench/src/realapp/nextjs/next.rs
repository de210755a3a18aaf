//! The site of tests/realapp/nextjs: built, started, and what its start page names.
//!
//! In: the folder with its packages. Out: a server on a free port, and the names that the build chose.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::fetch::Client;
use super::super::node;
use harness::children::{Server, free_port};

const READY_MAX: Duration = Duration::from_secs(60);

/// A server that runs.
pub(super) struct Next {
    pub(super) address: SocketAddr,
    _server: Server,
}

/// `next build`.
pub(super) fn build(folder: &Path) -> Result<()> {
    let left = folder.join(".next");
    if left.exists() {
        fs::remove_dir_all(left)?;
    }
    node::run(next(folder).arg("build"))
}

impl Next {
    /// `next start`.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let address = free_port()?;
        let mut command = next(folder);
        command.args(["start", "-H", "127.0.0.1", "-p", &address.port().to_string()]);
        let mut server = Server::start("next", command.stdin(Stdio::null()).stdout(Stdio::null()))?;
        server.wait_for(address, READY_MAX)?;
        Ok(Self { address, _server: server })
    }

    pub(super) fn client(&self) -> Client {
        Client { address: self.address, host: self.address, compressed: false }
    }
}

fn next(folder: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg("node_modules/next/dist/bin/next").current_dir(folder);
    command.env("NEXT_TELEMETRY_DISABLED", "1").env("NODE_ENV", "production");
    command
}

/// What the paths of page data begin with.
pub(super) fn build_id(folder: &Path) -> Result<String> {
    let file = folder.join(".next/BUILD_ID");
    Ok(fs::read_to_string(&file).with_context(|| file.display().to_string())?.trim().to_owned())
}

/// Scripts and style sheets that the start page names.
pub(super) fn assets(client: &Client) -> Result<Vec<String>> {
    let page = client.get("/")?.text();
    let named = page.split('"').filter(|part| part.starts_with("/_next/static/") && !part.contains('\\'));
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    ensure!(named.len() > 2, "the start page names {} assets", named.len());
    Ok(named.into_iter().collect())
}
