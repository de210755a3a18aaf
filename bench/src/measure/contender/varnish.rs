//! Varnish: its defaults and 256 MiB of memory.
//!
//! In: a [`Setup`], and lines of `vcl_backend_response`. Out: Varnish at a free port. Its threads share the servers'
//! core; it has no setting that makes it a single one.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Contender, Protocol, Setup, start};
use harness::children::free_port;

/// Where Debian has the module that purges by tag.
pub(crate) const XKEY: &str = "/usr/lib/x86_64-linux-gnu/varnish/vmods/libvmod_xkey.so";

/// A cache in memory. `on_response` holds lines of `vcl_backend_response`; `""` heeds the origin's fields.
pub(crate) fn cache(setup: &Setup<'_>, name: &str, on_response: &str) -> Result<Contender> {
    serve(setup, name, "", on_response)
}

/// A cache in memory of 4 GiB that can be purged: by tag with `PURGEKEYS` and `xkey-purge` or `xkey-softpurge`, and by a
/// ban of URLs with `BAN` and `X-Url`. Answers tell a hit in `Cache-Status`, and have neither tags nor the URL.
pub(crate) fn purging(setup: &Setup<'_>, name: &str) -> Result<Contender> {
    const SUBS: &str = "\
        import xkey;\n\
        sub vcl_recv {\n\
        if (req.method == \"PURGEKEYS\" && req.http.xkey-softpurge) {\n\
        set req.http.gone = xkey.softpurge(req.http.xkey-softpurge); return (synth(200, \"Purged\")); }\n\
        if (req.method == \"PURGEKEYS\") {\n\
        set req.http.gone = xkey.purge(req.http.xkey-purge); return (synth(200, \"Purged\")); }\n\
        if (req.method == \"BAN\") {\n\
        ban(\"obj.http.x-url ~ \" + req.http.X-Url); return (synth(200, \"Banned\")); }\n\
        }\n\
        sub vcl_backend_response { set beresp.http.x-url = bereq.url; }\n\
        sub vcl_deliver {\n\
        unset resp.http.xkey; unset resp.http.x-url;\n\
        if (obj.hits > 0) { set resp.http.Cache-Status = \"varnish; hit\"; }\n\
        else { set resp.http.Cache-Status = \"varnish; fwd=miss\"; }\n\
        }\n";
    run(setup, name, "malloc,4g", SUBS)
}

/// A cache in memory that forgets the cookies of requests; left to itself it passes what has any.
pub(crate) fn without_cookies(setup: &Setup<'_>, name: &str) -> Result<Contender> {
    serve(setup, name, "unset req.http.Cookie;", "")
}

fn serve(setup: &Setup<'_>, name: &str, on_request: &str, on_response: &str) -> Result<Contender> {
    let subs = format!("sub vcl_recv {{ {on_request} }}\nsub vcl_backend_response {{ {on_response} }}\n");
    run(setup, name, "malloc,256m", &subs)
}

fn run(setup: &Setup<'_>, name: &str, memory: &str, subs: &str) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let work = setup.folder()?;
    let file = work.path().join("default.vcl");
    let vcl = format!(
        "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n{subs}",
        setup.origin.ip(),
        setup.origin.port()
    );
    fs::write(&file, vcl).context("default.vcl")?;
    let mut command = setup.command();
    command.args(["varnishd", "-F", "-s", memory, "-p", "timeout_idle=3600"]);
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
