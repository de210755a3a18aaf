//! Caddy with files on tmpfs. It has no cache of its own.
//!
//! In: a [`Setup`], the program, and the targets whose files are laid out. Out: Caddy at a free port, with as many threads for Go code as there
//! are workers. It never asks the origin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use harness::children::free_port;
use serde_json::json;

use super::{Contender, Setup, lay_out, start};

/// What bench/caddy pins; the program does not tell how it was built.
const VERSION: &str = "2.11.9";

/// What a page says of it, where it was measured.
pub(crate) fn told(program: Option<&PathBuf>) -> String {
    program.map(|_| format!(" Caddy is {VERSION}, built with this machine's Go.")).unwrap_or_default()
}

/// Files for these targets.
pub(crate) fn files(program: &Path, setup: &Setup<'_>, name: &str, targets: &[String]) -> Result<Contender> {
    let address = free_port()?;
    let work = setup.folder()?;
    let folder = work.path().join("files");
    lay_out(&folder, targets)?;
    let mut server = json!({
        "listen": [address.to_string()],
        "routes": [{ "handle": [{ "handler": "file_server", "root": folder }] }],
        "automatic_https": { "disable": true },
        "protocols": ["h1", "h2", "h2c"],
    });
    let mut apps = json!({});
    if let Some(certificates) = setup.certificates {
        server["tls_connection_policies"] = json!([{ "protocol_min": "tls1.3" }]);
        let (certificate, key) = (certificates.file("server.pem"), certificates.file("server.key"));
        apps["tls"] =
            json!({ "certificates": { "load_files": [{ "certificate": certificate, "key": key }] } });
    }
    apps["http"] = json!({ "servers": { "files": server } });
    let config = json!({
        "admin": { "disabled": true, "config": { "persist": false } },
        "logging": { "logs": { "default": { "level": "PANIC" } } },
        "apps": apps,
    });
    let file = work.path().join("caddy.json");
    fs::write(&file, config.to_string()).context("caddy.json")?;
    let mut command = setup.command();
    // It keeps what it makes below its home.
    command.env("GOMAXPROCS", setup.workers.count.to_string()).env("HOME", work.path());
    command.arg(program).args(["run", "--config"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(start(name, address, &mut command)?.owning(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_version_is_the_one_that_is_pinned() {
        let pinned = include_str!("../../../caddy/go.mod");
        assert!(
            pinned.contains(&format!("require github.com/caddyserver/caddy/v2 v{VERSION}\n")),
            "{pinned}"
        );
    }
}
