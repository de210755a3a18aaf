//! What the measurements need on top of the build: the peers, the programs that load them, and those that make disks.
//!
//! In: the name of a measurement. Out: its tools are on the search path, or the error names the package that has them.

use std::path::Path;

use anyhow::Result;
use harness::install::{self, From, Tool};

use super::contender::nginx::{LUA_MODULE, LUA_REDIS, PURGE_MODULE, SRCACHE_MODULE};
use super::contender::varnish::XKEY;

const TOOLS: &[Tool] = &[
    Tool { program: "curl", from: From::Apt("curl"), targets: CURL_FOR },
    Tool { program: "taskset", from: From::Apt("util-linux"), targets: TASKSET_FOR },
    Tool { program: "nginx", from: From::Apt("nginx-light"), targets: NGINX_FOR },
    Tool { program: "varnishd", from: From::Apt("varnish"), targets: VARNISH_FOR },
    Tool {
        program: "ab",
        from: From::Apt("apache2-utils"),
        targets: &["connections", "microcache", "wordpress", "fragments"],
    },
    Tool { program: "memcached", from: From::Apt("memcached"), targets: &["fragments"] },
    Tool { program: "wrk", from: From::Apt("wrk"), targets: WRK_FOR },
    Tool { program: "haproxy", from: From::Apt("haproxy"), targets: HAPROXY_FOR },
    Tool { program: "h2o", from: From::Apt("h2o"), targets: H2O_FOR },
    Tool { program: "mkfs.ext4", from: From::Apt("e2fsprogs"), targets: DISKS_FOR },
    Tool { program: "losetup", from: From::Apt("mount"), targets: DISKS_FOR },
    Tool {
        program: "h2load",
        from: From::Apt("nghttp2-client"),
        targets: &["http2", "tls", "handshakes", "latency", "watching", "purges", "outage"],
    },
    // Modules are no programs: they are looked for where Debian has them.
    Tool { program: XKEY, from: From::Apt("varnish-modules"), targets: &["purges"] },
    Tool { program: LUA_MODULE, from: From::Apt("libnginx-mod-http-lua"), targets: LUA_FOR },
    Tool { program: LUA_REDIS, from: From::Apt("lua-nginx-redis"), targets: LUA_FOR },
    Tool {
        program: SRCACHE_MODULE,
        from: From::Apt("libnginx-mod-http-srcache-filter"),
        targets: &["records"],
    },
    Tool { program: "redis-server", from: From::Apt("redis-server"), targets: REDIS_FOR },
    Tool { program: "redis-benchmark", from: From::Apt("redis-tools"), targets: &["records"] },
    Tool { program: PURGE_MODULE, from: From::Apt("libnginx-mod-http-cache-purge"), targets: &["purges"] },
];

const CURL_FOR: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "tls",
    "handshakes",
    "connections",
    "miss",
    "workers",
    "latency",
    "watching",
    "wordpress",
    "files",
    "purges",
    "fragments",
    "versions",
];
const TASKSET_FOR: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "tls",
    "handshakes",
    "connections",
    "miss",
    "workers",
    "latency",
    "watching",
    "memory",
    "idle",
    "microcache",
    "herd",
    "wordpress",
    "files",
    "placement",
    "large",
    "objects",
    "reclaim",
    "purges",
    "fragments",
    "versions",
    "records",
    "fleet",
    "outage",
    "million",
];
const NGINX_FOR: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "tls",
    "handshakes",
    "connections",
    "miss",
    "workers",
    "latency",
    "idle",
    "microcache",
    "herd",
    "wordpress",
    "files",
    "placement",
    "large",
    "objects",
    "purges",
    "fragments",
    "versions",
    "records",
];
const VARNISH_FOR: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "connections",
    "miss",
    "latency",
    "idle",
    "microcache",
    "purges",
    "fragments",
];
const HAPROXY_FOR: &[&str] =
    &["hit", "requests", "http2", "tls", "handshakes", "connections", "miss", "latency"];
const H2O_FOR: &[&str] = &["hit", "requests", "http2", "tls", "handshakes", "connections", "latency"];
const WRK_FOR: &[&str] =
    &["hit", "requests", "tls", "connections", "miss", "workers", "files", "purges", "fragments", "versions"];
const LUA_FOR: &[&str] = &["versions", "records"];
const REDIS_FOR: &[&str] = &["versions", "records", "fleet", "outage", "million"];
/// They make disks.
const DISKS_FOR: &[&str] = &["placement", "large", "objects", "reclaim", "purges"];

/// Makes sure that everything `measurement` needs is there. It may need nothing.
pub(super) fn need(root: &Path, measurement: &str) -> Result<()> {
    install::ensure_for(root, measurement, TOOLS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::NAMES;

    #[test]
    fn every_tool_is_for_a_measurement_that_exists() {
        for tool in TOOLS {
            for target in tool.targets {
                assert!(NAMES.contains(target), "{}: {target}", tool.program);
            }
        }
    }

    #[test]
    fn a_measurement_without_peers_needs_none_of_them() {
        let needed = |name: &str| TOOLS.iter().filter(|tool| tool.targets.contains(&name)).count();
        assert_eq!((needed("scan"), needed("memory")), (0, 1));
    }
}
