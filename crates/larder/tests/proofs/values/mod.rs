//! A store with values in memcached or Redis, before a real origin and with Debian's servers: what an application puts there is what
//! clients get, and what becomes of them when the server does not behave.

mod crowd;
mod faults;
mod found;
mod purged;
mod redis;
mod written;

use std::path::{Path, PathBuf};

use larder_testkit::client::{Request, Response};
use larder_testkit::memcached::Server;
use larder_testkit::origin::{Answer, Origin, PathScript};
use tempfile::TempDir;

use crate::support::{Process, answer_of, cache_status, connect, get, within};

/// What clients of these tests ask for.
const HOST: &str = "localhost";

/// A larder with values of one memcached, before an origin.
struct Setup {
    folder: TempDir,
    memcached: Server,
    origin: Origin,
    larder: Process,
}

impl Setup {
    /// `values` are keys of the table `memcached`, `site` lines of the site.
    async fn new(scripts: Vec<PathScript>, values: &str, site: &str) -> Self {
        let (memcached, origin) = (Server::start(), Origin::simple(scripts).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), &unix(&memcached), &origin.url(), values, site);
        let larder = Process::run_config(&config).await;
        Self { folder, memcached, origin, larder }
    }

    fn set(&self, name: &str, value: &str) {
        self.memcached.raw().set(name, 0, 0, value.as_bytes());
    }

    /// What lies there under `name`, as memcached says it.
    fn there(&self, name: &str) -> String {
        self.memcached.raw().ask(&format!("get {name}\r\n"))
    }

    async fn get(&self, target: &str) -> Response {
        within(target, get(self.larder.addr, target)).await
    }

    async fn send(&self, request: &Request) -> Response {
        within("an answer", async { connect(self.larder.addr).await.exchange(request).await.unwrap() }).await
    }

    async fn admin(&self, request: &Request) -> Response {
        within("an answer", async { connect(self.larder.admin).await.exchange(request).await.unwrap() }).await
    }

    /// Look-ups of this result.
    async fn lookups(&self, result: &str) -> u64 {
        self.counted("larder_remote_lookups_total", result).await
    }

    /// The samples of a family with this result, added up.
    async fn counted(&self, family: &str, result: &str) -> u64 {
        let metrics = self.larder.metrics().await;
        let label = format!("result=\"{result}\"");
        let samples = metrics.samples().into_iter();
        let counted = samples.filter(|(name, _)| name.starts_with(family) && name.contains(&label));
        counted.map(|(_, value)| value as u64).sum()
    }
}

fn unix(memcached: &Server) -> String {
    format!("unix:{}", memcached.socket().display())
}

/// A config in `folder`.
fn config(folder: &Path, server: &str, origin: &str, values: &str, site: &str) -> PathBuf {
    let path = folder.join("larder.toml");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{origin:?}]\n\
         [stores.default]\nmemory = \"8MiB\"\n[stores.default.memcached]\nservers = [{server:?}]\ndefault_type = \
         \"text/html\"\n{values}\n[[site]]\nhosts = [\"{HOST}\"]\norigin = \"app\"\n{site}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// An answer with this body.
fn page(fields: &[&str], body: &str) -> Answer {
    Answer { body: Some(body.to_owned()), bytes: None, ..answer_of(fields, 0) }
}

#[track_caller]
fn is_hit(response: &Response, body: &str) {
    assert_eq!(String::from_utf8_lossy(&response.body), body, "{response}");
    assert!(cache_status(response).contains("; hit"), "{response}");
}

#[track_caller]
fn is_from_origin(response: &Response, body: &str) {
    assert_eq!(String::from_utf8_lossy(&response.body), body, "{response}");
    assert!(cache_status(response).contains("; fwd="), "{response}");
}
