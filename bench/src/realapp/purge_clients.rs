//! Clients that purge, from their own packages: Wagtail's frontend cache, plone.cachepurging, and the packages of Fastly and Cloudflare.
//!
//! In: the stage, whose folder has a program for each client. Out: a table of what each purge did to a page, and what the
//! client made of the answer. A run fails where a client raises an error for a purge that is made, or none for one that is
//! refused, and where the page is not what the client was told. See tests/realapp/purge-clients/README.md.
//! There are three larders in front of one origin: purges of the second are soft, and the third lets nobody purge.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::{Larder, Stage};
use super::{node, python};
use harness::children::{Server, free_port, output_within};

pub(super) use super::python::PACKAGES;

const READY_MAX: Duration = Duration::from_secs(20);
/// Wagtail sets up a database first.
const CLIENT_MAX: Duration = Duration::from_secs(240);
const TOKEN: &str = "a-long-secret-of-ours";
/// Attempts of Plone's queue at what is refused, and the two that are not repeated: Plone's at once, and Wagtail's.
const REFUSED: u64 = 2 * (5 + 1) + 1;
const OF_PYTHON: [&str; 4] = ["wagtail", "plone.cachepurging", "fastly", "cloudflare"];
const OF_NODE: [&str; 2] = ["fastly", "cloudflare"];

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let interpreter = python::interpreter(stage, "purge-clients")?;
    let packages = node::application(stage, "purge-clients")?;
    let origin = free_port()?;
    let mut command = Command::new(&interpreter);
    command.arg(stage.data.join("origin.py")).arg(origin.port().to_string()).stdin(Stdio::null());
    let mut server = Server::start("the origin", &mut command)?;
    server.wait_for(origin, READY_MAX)?;

    let token = format!("admin = {{ token = \"{TOKEN}\" }}");
    let hard = larder(stage, origin, &token, "purge = { from = [\"127.0.0.1\"] }")?;
    let soft = larder(stage, origin, "", "purge = { from = [\"127.0.0.1\"], soft = true }")?;
    let closed = larder(stage, origin, "", "")?;
    let place = serde_json::json!({
        "hard": hard.public, "soft": soft.public, "closed": closed.public,
        "admin": hard.admin, "token": TOKEN, "work": stage.work,
    });
    println!("\n| client | purge | what the client makes of the answer | the page then |\n|---|---|---|---|");
    for program in ["wagtail_client.py", "plone_client.py", "api_clients.py"] {
        client(&interpreter, stage.data.join(program), &place).context(program)?;
    }
    client(Path::new("node"), packages.join("api-clients.mjs"), &place).context("api-clients.mjs")?;
    println!();

    let refused = closed.sum("larder_purges_refused_total")?;
    ensure!(refused == REFUSED, "{refused} purges were refused, not {REFUSED}");
    ensure!(closed.sum("larder_purges_total")? == 0, "a purge was made where nobody may");
    server.still_runs()?;
    for mut larder in [hard, soft, closed] {
        larder.still_runs()?;
    }
    let mut versions = Vec::new();
    let list = fs::read_to_string(stage.data.join("requirements.txt"))?;
    for name in OF_PYTHON {
        let line = list.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("=="));
        versions.push(format!("{name} {} (PyPI)", line.with_context(|| format!("{name} has no version"))?));
    }
    for name in OF_NODE {
        versions.push(format!("{name} {} (npm)", node::version(&packages, name)?));
    }
    Ok(versions.join(", "))
}

/// A larder with this of its own, and this in its one site.
fn larder(stage: &Stage<'_>, origin: SocketAddr, token: &str, purge: &str) -> Result<Larder> {
    stage.larder(&format!(
        "{token}\n[origins.app]\nservers = [\"http://{origin}\"]\n\
         [[site]]\nhosts = [\"127.0.0.1\"]\norigin = \"app\"\n{purge}\n"
    ))
}

/// Runs a client's program to its end and prints its rows.
fn client(interpreter: &Path, program: PathBuf, place: &serde_json::Value) -> Result<()> {
    let mut command = Command::new(interpreter);
    command.arg(program).arg(place.to_string()).env("PYTHONDONTWRITEBYTECODE", "1");
    let rows = output_within(&mut command, CLIENT_MAX)?;
    ensure!(rows.lines().count() > 3, "no rows: {rows}");
    print!("{rows}");
    Ok(())
}
