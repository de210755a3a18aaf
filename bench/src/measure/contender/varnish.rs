//! Varnish: its defaults and 256 MiB of memory.
//!
//! In: a [`Setup`], and lines of `vcl_backend_response`. Out: Varnish at a free port. Its threads share the servers'
//! core; it has no setting that makes it a single one.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Contender, Protocol, Setup, start};
use harness::children::free_port;

/// A cache in memory. `on_response` holds lines of `vcl_backend_response`; `""` heeds the origin's fields.
pub(crate) fn cache(setup: &Setup<'_>, name: &str, on_response: &str) -> Result<Contender> {
    serve(setup, name, "", on_response)
}

/// A cache in memory that forgets the cookies of requests; left to itself it passes what has any.
pub(crate) fn without_cookies(setup: &Setup<'_>, name: &str) -> Result<Contender> {
    serve(setup, name, "unset req.http.Cookie;", "")
}

fn serve(setup: &Setup<'_>, name: &str, on_request: &str, on_response: &str) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let work = setup.folder()?;
    let file = work.path().join("default.vcl");
    let vcl = format!(
        "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n\
         sub vcl_recv {{ {on_request} }}\nsub vcl_backend_response {{ {on_response} }}\n",
        setup.origin.ip(),
        setup.origin.port()
    );
    fs::write(&file, vcl).context("default.vcl")?;
    let mut command = setup.command();
    command.args(["varnishd", "-F", "-s", "malloc,256m", "-p", "timeout_idle=3600"]);
    if setup.protocol == Protocol::Http2 {
        command.args(["-p", "feature=+http2"]);
    }
    command
        .args(["-T", &admin.to_string(), "-a", &address.to_string()])
        .arg("-n")
        .arg(work.path())
        .arg("-f")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(start(name, address, &mut command)?.owning(work))
}
