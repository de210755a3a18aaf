//! H2O with files on tmpfs, the fastest way that it has to serve a stored answer.
//!
//! In: a [`Setup`] and the targets whose files are laid out. Out: H2O at a free port, which speaks HTTP/1 and HTTP/2
//! alike. It never asks the origin.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Contender, Setup, lay_out, start};
use harness::children::free_port;
use larder_testkit::certificates::Certificates;

fn tls_lines(certificates: &Certificates) -> String {
    format!(
        "  ssl:\n    certificate-file: {}\n    key-file: {}\n    minimum-version: TLSv1.3\n",
        certificates.file("server.pem").display(),
        certificates.file("server.key").display()
    )
}

/// Files for these targets.
pub(crate) fn files(setup: &Setup<'_>, name: &str, targets: &[String]) -> Result<Contender> {
    let address = free_port()?;
    let work = setup.folder()?;
    lay_out(&work.path().join("files"), targets)?;
    let user = if rustix::process::geteuid().is_root() { "user: root\n" } else { "" };
    let config = format!(
        "{user}num-threads: {threads}\nmax-connections: 15000\npid-file: {folder}/pid\nerror-log: /dev/null\n\
         http1-request-timeout: 3600\nhttp2-idle-timeout: 3600\n\
         listen:\n  host: {ip}\n  port: {port}\n{tls}\
         file.mime.setdefaulttype: text/plain\n\
         hosts:\n  default:\n    paths:\n      \"/\":\n        file.dir: {folder}/files\n",
        threads = setup.workers.count,
        folder = work.path().display(),
        ip = address.ip(),
        port = address.port(),
        tls = setup.certificates.map(tls_lines).unwrap_or_default(),
    );
    let file = work.path().join("h2o.conf");
    fs::write(&file, config).context("h2o.conf")?;
    let mut command = setup.command();
    command.args(["h2o", "-m", "worker", "-c"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(start(name, address, &mut command)?.owning(work))
}
