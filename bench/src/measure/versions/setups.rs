//! Who is asked for a page whose version and body lie in a Redis.
//!
//! In: how that Redis is reached. Out: larder or nginx with the Redis beside it, whose CPU time counts as theirs. It runs on the servers' core: a setup
//! takes what it takes of one core, with all that belongs to it.
//! Deliberately absent: a second Redis for bodies. Those who build it by hand have one.

use anyhow::Result;

use super::{BYTES, TARGET};
use crate::measure::contender::{Contender, Kit, SERVER_CORE, Setup, larder, nginx};
use crate::measure::redis::{By, Redis};
use harness::origin::body;

/// A Redis with the version and the body.
pub(super) fn filled(kit: &Kit, by: By) -> Result<Redis> {
    let redis = Redis::start(kit.scratch(), by, SERVER_CORE)?;
    redis.place.ask(&[b"HSET", b"resource_versions", TARGET.as_bytes(), b"7"])?;
    redis.place.ask(&[b"SET", format!("{TARGET}:version=7").as_bytes(), &body(BYTES)])?;
    Ok(redis)
}

/// larder, with these lines of the store and the site. `REDIS` is its URL.
pub(super) fn with_larder(
    redis: Redis,
    kit: &Kit,
    setup: &Setup<'_>,
    (name, store, site): (&str, &str, &str),
) -> Result<Contender> {
    let config = format!(
        "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{}\"\n\n[stores.default]\nmemory = \"256MiB\"\n{store}\n\n\
         [[site]]\norigin = \"app\"\n{site}\n",
        setup.origin
    );
    let launch = larder::configured(&kit.larder, setup, name, &config.replace("REDIS", &redis.place.url()))?;
    Ok(beside(redis, launch.contender()?))
}

/// nginx, which asks for the version and then for the body, over connections that are kept.
pub(super) fn with_nginx(redis: Redis, setup: &Setup<'_>, name: &str) -> Result<Contender> {
    let place = redis.place.lua();
    let script = format!(
        "local redis = require \"nginx.redis\"\n\
         local red = redis:new()\n\
         red:set_timeout(200)\n\
         assert(red:connect({place}))\n\
         local version = red:hget(\"resource_versions\", ngx.var.request_uri)\n\
         local page = red:get(ngx.var.request_uri .. \":version=\" .. version)\n\
         red:set_keepalive(60000, 1024)\n\
         ngx.header[\"Content-Length\"] = #page\n\
         ngx.print(page)"
    );
    let locations = format!("location / {{\ncontent_by_lua_block {{\n{script}\n}}\n}}");
    let modules = format!("load_module {};\nload_module {};\n", nginx::NDK_MODULE, nginx::LUA_MODULE);
    Ok(beside(redis, nginx::with_modules(setup, name, &modules, "", &locations)?.contender()?))
}

fn beside(redis: Redis, contender: Contender) -> Contender {
    let (server, folder) = redis.into_parts();
    contender.with_server_beside(server).with_beside(folder)
}
