//! A store with values in Redis, before a real origin and with Debian's redis-server: the same promises as with memcached.

mod faults;
mod found;
mod kept;

use std::path::{Path, PathBuf};

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Origin, PathScript};
use larder_testkit::redis::RedisServer;
use tempfile::TempDir;

use super::{HOST, is_from_origin, is_hit, page};
use crate::support::{Process, connect, get, within};

/// A larder with values of one Redis, before an origin.
struct Setup {
    folder: TempDir,
    redis: RedisServer,
    origin: Origin,
    larder: Process,
}

impl Setup {
    /// `values` are keys of the table `redis`, one of them `key` or `format`; `site` lines of the site.
    async fn new(scripts: Vec<PathScript>, values: &str, site: &str) -> Self {
        Self::with(RedisServer::start(), scripts, values, site).await
    }

    async fn with(redis: RedisServer, scripts: Vec<PathScript>, values: &str, site: &str) -> Self {
        let origin = Origin::simple(scripts).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let url = format!("unix://{}", redis.socket().display());
        let config = config(folder.path(), &url, &origin.url(), values, site);
        let larder = Process::run_config(&config).await;
        Self { folder, redis, origin, larder }
    }

    fn set(&self, name: &str, value: &str) {
        self.redis.raw().set(name, value.as_bytes());
    }

    /// What lies there under `name`.
    fn there(&self, name: &str) -> Option<String> {
        self.redis.raw().get(name)
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

    /// Has URLs purged.
    async fn purge(&self, what: &str) -> Response {
        let request = Request::new("POST", "/api/v1/purges", HOST).field("Content-Type", "application/json");
        self.admin(&request.body(what.to_owned())).await
    }

    /// The samples of a family with this result, added up.
    async fn counted(&self, family: &str, result: &str) -> u64 {
        let metrics = self.larder.metrics().await;
        let label = format!("result=\"{result}\"");
        let samples = metrics.samples().into_iter();
        let counted = samples.filter(|(name, _)| name.starts_with(family) && name.contains(&label));
        counted.map(|(_, value)| value as u64).sum()
    }

    async fn lookups(&self, result: &str) -> u64 {
        self.counted("larder_remote_lookups_total", result).await
    }
}

/// A config in `folder`.
fn config(folder: &Path, url: &str, origin: &str, values: &str, site: &str) -> PathBuf {
    let path = folder.join("larder.toml");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{origin:?}]\n\
         [stores.default]\nmemory = \"8MiB\"\n[stores.default.redis]\nurl = {url:?}\ndefault_type = \
         \"text/html\"\n{values}\n[[site]]\nhosts = [\"{HOST}\"]\norigin = \"app\"\n{site}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}
