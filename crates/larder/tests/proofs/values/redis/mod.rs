//! A store with values in Redis, before a real origin and with Debian's redis-server: the same promises as with memcached.

mod faults;
mod found;
mod in_cluster;
mod kept;
mod sentinel;

use std::path::{Path, PathBuf};

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Origin, PathScript};
use larder_testkit::redis::RedisServer;
use tempfile::TempDir;

use super::{HOST, is_from_origin, is_hit, page};
use crate::support::{Process, connect, get, within};

/// A larder with values in Redis, before an origin. `R` is the Redis: one, or several together.
struct Setup<R = RedisServer> {
    folder: TempDir,
    redis: R,
    origin: Origin,
    larder: Process,
}

impl Setup {
    /// `values` are keys of the table `redis`, one of them `key` or `format`; `site` lines of the site.
    async fn new(scripts: Vec<PathScript>, values: &str, site: &str) -> Self {
        Self::of(RedisServer::start(), scripts, values, site).await
    }

    async fn of(redis: RedisServer, scripts: Vec<PathScript>, values: &str, site: &str) -> Self {
        let place = format!("url = \"unix://{}\"", redis.socket().display());
        Self::with((redis, &place), scripts, values, site).await
    }

    fn set(&self, name: &str, value: &str) {
        self.redis.raw().set(name, value.as_bytes());
    }

    /// What lies there under `name`.
    fn there(&self, name: &str) -> Option<String> {
        self.redis.raw().get(name)
    }
}

impl<R> Setup<R> {
    /// A Redis, and the lines that say where it is.
    async fn with((redis, place): (R, &str), scripts: Vec<PathScript>, values: &str, site: &str) -> Self {
        let origin = Origin::simple(scripts).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), place, &origin.url(), values, site);
        let larder = Process::run_config(&config).await;
        Self { folder, redis, origin, larder }
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

/// A config in `folder`. `place` says where Redis is.
fn config(folder: &Path, place: &str, origin: &str, values: &str, site: &str) -> PathBuf {
    let path = folder.join("larder.toml");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n[origins.app]\nservers = [{origin:?}]\n\
         [stores.default]\nmemory = \"8MiB\"\n[stores.default.redis]\n{place}\ndefault_type = \
         \"text/html\"\n{values}\n[[site]]\nhosts = [\"{HOST}\"]\norigin = \"app\"\n{site}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}
