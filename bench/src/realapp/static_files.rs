//! A folder served by Debian's nginx, on a free port, with nothing of the system's configuration.
//!
//! In: a folder. Out: a server that is ended when it is dropped, and every request that it was sent: whether it came
//! through larder, which names itself in Via, for what, with which range, and how it was answered.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use harness::children::{Server, free_port, pause};

const READY_MAX: Duration = Duration::from_secs(20);
const LOG_MAX: Duration = Duration::from_secs(10);

/// An nginx that runs.
pub(super) struct StaticFiles {
    pub(super) address: SocketAddr,
    log: PathBuf,
    server: Server,
}

/// A line of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) target: String,
    pub(super) status: u16,
    /// Range, as it was asked for; `-` without one.
    pub(super) range: String,
    /// Bytes of the body that were sent.
    pub(super) bytes: u64,
}

impl StaticFiles {
    /// Serves `folder`, with the lines of `more` in nginx's `server`.
    pub(super) fn start(work: &Path, folder: &Path, more: &str) -> Result<Self> {
        let address = free_port()?;
        let place = work.join("nginx");
        fs::create_dir(&place)?;
        let log = place.join("access.log");
        let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
        let config = format!(
            "{user}daemon off;\nmaster_process off;\nworker_processes 1;\npid {at}/pid;\nerror_log {at}/error.log;\n\
             events {{ worker_connections 512; }}\n\
             http {{\n  include /etc/nginx/mime.types;\n  default_type application/octet-stream;\n\
             \x20 log_format told '$http_via\\t$request_uri\\t$status\\t$http_range\\t$body_bytes_sent';\n\
             \x20 access_log {log} told;\n  sendfile on;\n  keepalive_timeout 5s;\n\
             \x20 client_body_temp_path {at}/body;\n  proxy_temp_path {at}/proxy;\n  fastcgi_temp_path {at}/fastcgi;\n\
             \x20 uwsgi_temp_path {at}/uwsgi;\n  scgi_temp_path {at}/scgi;\n\
             \x20 server {{\n    listen {address};\n    root {folder};\n    {more}\n  }}\n}}\n",
            at = place.display(),
            log = log.display(),
            folder = folder.display(),
        );
        let file = place.join("nginx.conf");
        fs::write(&file, config)?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).arg("-p").arg(&place).stdin(Stdio::null());
        command.stderr(fs::File::create(place.join("start.log"))?);
        let mut server = Server::start("nginx", &mut command)?;
        server
            .wait_for(address, READY_MAX)
            .with_context(|| fs::read_to_string(place.join("start.log")).unwrap_or_default())?;
        Ok(Self { address, log, server })
    }

    /// What came through larder so far. A request is told when it has been answered.
    pub(super) fn asked(&self) -> Result<Vec<Asked>> {
        let log = fs::read_to_string(&self.log).context("nginx's log")?;
        Ok(log.lines().filter_map(read).collect())
    }

    /// The same, once there are `count`: a line is written when its answer has been sent, which may be after larder has it.
    pub(super) fn asked_at_least(&self, count: usize) -> Result<Vec<Asked>> {
        let deadline = Instant::now() + LOG_MAX;
        loop {
            let asked = self.asked()?;
            if asked.len() >= count {
                return Ok(asked);
            }
            ensure!(
                Instant::now() < deadline,
                "larder says that it asked {count} times, the log has {}",
                asked.len()
            );
            pause();
        }
    }

    /// Fails when it has ended.
    pub(super) fn still_runs(&mut self) -> Result<()> {
        self.server.still_runs()
    }
}

fn read(line: &str) -> Option<Asked> {
    let mut fields = line.split('\t');
    fields.next().filter(|via| via.ends_with("larder"))?;
    let target = fields.next()?.to_owned();
    let status = fields.next()?.parse().ok()?;
    let range = fields.next()?.to_owned();
    Some(Asked { target, status, range, bytes: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_through_larder_counts() {
        assert_eq!(read("-\t/a\t200\t-\t7"), None);
        let asked = Asked { target: "/a".to_owned(), status: 206, range: "bytes=0-6".to_owned(), bytes: 7 };
        assert_eq!(read("1.1 larder\t/a\t206\tbytes=0-6\t7"), Some(asked));
    }
}
