//! HAProxy with its `cache` section, one thread per worker.
//!
//! In: a [`Setup`]. Out: HAProxy at a free port. Its cache keeps responses with status 200 in blocks of shared memory
//! and answers If-None-Match. It answers no ranges, and keeps nothing above `max-object-size`.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Contender, Protocol, Setup, start};
use harness::children::free_port;

/// A cache in memory of 256 MB that heeds the origin's fields.
pub(crate) fn cache(setup: &Setup<'_>, name: &str) -> Result<Contender> {
    let address = free_port()?;
    let work = setup.folder()?;
    let bind = match (setup.certificates, setup.protocol) {
        (None, Protocol::Http1) => String::new(),
        (None, Protocol::Http2) => " proto h2".to_owned(),
        (Some(certificates), protocol) => {
            let both = work.path().join("both.pem");
            let read = |name| fs::read_to_string(certificates.file(name));
            fs::write(&both, read("server.pem")? + &read("server.key")?)?;
            format!(" ssl crt {} alpn {} ssl-min-ver TLSv1.3", both.display(), protocol.alpn())
        }
    };
    let config = format!(
        "global\n  nbthread {threads}\n  maxconn 7500\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1m\n  \
         timeout http-keep-alive 1h\n\
         cache pages\n  total-max-size 256\n  max-object-size 4194304\n  max-age 3600\n\
         frontend clients\n  bind {address}{bind}\n  http-request cache-use pages\n  \
         http-response cache-store pages\n  default_backend app\n\
         backend app\n  server app {origin}\n",
        threads = setup.workers.count,
        origin = setup.origin,
    );
    let file = work.path().join("haproxy.cfg");
    fs::write(&file, config).context("haproxy.cfg")?;
    let mut command = setup.command();
    command.args(["haproxy", "-db", "-q", "-f"]).arg(&file).stdout(Stdio::null());
    Ok(start(name, address, &mut command)?.owning(work))
}
