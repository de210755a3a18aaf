//! nginx: `proxy_cache` on tmpfs, static files on tmpfs, and a plain `proxy_pass`.
//!
//! In: a [`Setup`] and, for a cache, the lines that say what is cached and how. Out: nginx at a free port, with
//! keep-alive without end on both sides and no access log.
//! Deliberately absent: the defaults of a distribution's nginx.conf, which differ from one to the next.

use std::fs;

use anyhow::{Context, Result};

use super::{Contender, Launch, Protocol, Setup, lay_out};
use harness::children::free_port;
use larder_testkit::certificates::Certificates;

/// A cache zone named `pages`. `location` holds the lines that say what is cached and how; `""` heeds the origin's
/// fields.
pub(crate) fn cache(setup: &Setup<'_>, name: &str, location: &str) -> Result<Contender> {
    serve(setup, name, &format!("{PROXY} proxy_cache pages;\n{location}"), &[])
}

/// A cache of its own zones. `http` holds the lines that declare them, `location` those that choose one.
pub(crate) fn own_cache(setup: &Setup<'_>, name: &str, http: &str, location: &str) -> Result<Launch> {
    configured(setup, name, http, &format!("location / {{\n{PROXY} {location}\n}}"))
}

/// Lines for a location: descriptors are kept open, of files and of a cache's alike.
pub(crate) const OPEN_FILES: &str = "open_file_cache max=20000 inactive=1h; open_file_cache_valid 1h;";

/// Every request goes to the origin. Nothing of an answer is put into a file where a client is slow: it waits for it.
pub(crate) fn proxy(setup: &Setup<'_>, name: &str) -> Result<Contender> {
    serve(setup, name, &format!("{PROXY} proxy_max_temp_file_size 0;"), &[])
}

/// Files for these targets, with descriptors kept open.
pub(crate) fn files(setup: &Setup<'_>, name: &str, targets: &[String]) -> Result<Contender> {
    serve(setup, name, &format!("root files; {OPEN_FILES}"), targets)
}

/// Lines for a location: every request goes on, over connections that are kept.
pub(crate) const PROXY: &str =
    "proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\";";

fn serve(setup: &Setup<'_>, name: &str, location: &str, targets: &[String]) -> Result<Contender> {
    let launch = configured(setup, name, "", &format!("location / {{\n{location}\n}}"))?;
    lay_out(&launch.folder().join("files"), targets)?;
    launch.contender()
}

/// Where Debian has the module that purges by URL.
pub(crate) const PURGE_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_cache_purge_module.so";

/// Where Debian has the module that runs Lua, and the one that it needs.
pub(crate) const LUA_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_lua_module.so";
/// See [`LUA_MODULE`].
pub(crate) const NDK_MODULE: &str = "/usr/lib/nginx/modules/ndk_http_module.so";
/// Where Debian has the client of Redis for it.
pub(crate) const LUA_REDIS: &str = "/usr/share/lua/5.1/nginx/redis.lua";

/// Where Debian has the module that keeps whole answers elsewhere.
pub(crate) const SRCACHE_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_srcache_filter_module.so";

/// A cache of up to 4 GiB from which `PURGE` takes a URL. Answers tell a hit in `Cache-Status`.
pub(crate) fn purging(setup: &Setup<'_>, name: &str) -> Result<Contender> {
    let module = format!("load_module {PURGE_MODULE};\n");
    // Below the server's own folder, its prefix.
    let http = "\
        proxy_cache_path objects levels=1:2 keys_zone=objects:160m max_size=4g inactive=1d use_temp_path=off;\n\
        map $upstream_cache_status $told { HIT \"nginx; hit\"; default \"nginx; fwd=miss\"; }";
    // The module's directive for purges at the URL itself (`proxy_cache_purge PURGE from`) ends the worker process in Debian
    // 12, so a named location stands for it.
    let locations = format!(
        "error_page 418 = @purge;\n\
         location / {{\nif ($request_method = PURGE) {{ return 418; }}\n\
         {PROXY} proxy_cache objects; proxy_cache_key $request_uri;\nadd_header Cache-Status $told;\n}}\n\
         location @purge {{ allow 127.0.0.1; deny all; proxy_cache_purge objects $request_uri; }}"
    );
    with_modules(setup, name, &module, http, &locations)?.contender()
}

/// As usual guides have it: a cache of sessions for all workers, beside the tickets that nginx has by itself.
fn tls_lines(certificates: &Certificates) -> String {
    format!(
        "ssl_protocols TLSv1.3; ssl_certificate {}; ssl_certificate_key {}; ssl_session_cache shared:TLS:10m;\n",
        certificates.file("server.pem").display(),
        certificates.file("server.key").display()
    )
}

/// nginx with these lines in `http` and these locations, not started yet. `proxy_pass` finds the origin as `app`.
pub(crate) fn configured(setup: &Setup<'_>, name: &str, http: &str, locations: &str) -> Result<Launch> {
    with_modules(setup, name, "", http, locations)
}

/// The same with these modules.
pub(crate) fn with_modules(
    setup: &Setup<'_>,
    name: &str,
    modules: &str,
    http: &str,
    locations: &str,
) -> Result<Launch> {
    let address = free_port()?;
    let root_user = rustix::process::geteuid().is_root();
    let work = setup.folder()?;
    let folder = work.path().display();
    let several = setup.workers.count > 1;
    let config = format!(
        "{modules}{user}daemon off; worker_processes {workers};{affinity} pid {folder}/pid; error_log stderr crit;\n\
         worker_rlimit_nofile 16384;\n\
         events {{ worker_connections 15000; }}\n\
         http {{\n\
         access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; default_type text/plain;\n\
         keepalive_requests 1000000000; keepalive_timeout 1h;\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         proxy_cache_path {folder}/cache levels=1:2 keys_zone=pages:16m max_size=256m inactive=1h;\n\
         upstream app {{ server {origin}; keepalive 64; keepalive_requests 1000000000; }}\n\
         {http}\n\
         server {{ listen {address} backlog=4096{reuseport}{ssl}{http2};\n\
         {tls}{locations}\n\
         }}\n\
         }}\n",
        user = if root_user { "user root;\n" } else { "" },
        workers = setup.workers.count,
        origin = setup.origin,
        // As larder has it: each worker its own queue of new connections, which the kernel fills evenly. Else one worker may
        // have nearly all of those that are kept.
        reuseport = if several { " reuseport" } else { "" },
        affinity = if several { " worker_cpu_affinity auto;" } else { "" },
        http2 = if setup.protocol == Protocol::Http2 { " http2" } else { "" },
        ssl = if setup.certificates.is_some() { " ssl" } else { "" },
        tls = setup.certificates.map(tls_lines).unwrap_or_default(),
    );
    let file = work.path().join("nginx.conf");
    fs::write(&file, config).context("nginx.conf")?;
    let mut command = setup.command();
    command.arg("nginx").arg("-c").arg(&file).arg("-p").arg(work.path()).args(["-e", "stderr"]);
    Ok(Launch { name: name.to_owned(), address, admin: None, told: None, command, folder: work })
}
