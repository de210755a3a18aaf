//! nginx that keeps whole answers in a Redis: `srcache`, with Lua for what Debian has no module for.
//!
//! In: where the Redis is. Out: nginx in front of it, with all pages put there. Its answers tell a hit in `Cache-Status`.
//! srcache asks a location of nginx for a page and hands it what is to be stored. Many set that location up with `redis2`, which Debian does not
//! package. Here it is a script with the client of `lua-nginx-redis`, over connections that are kept.

use anyhow::Result;

use super::{BYTES, PAGES, target};
use crate::measure::asker::ask_all_for;
use crate::measure::contender::{Contender, Setup, nginx};
use crate::measure::redis::Place;

/// Starts it, and fetches all pages once.
pub(super) fn filled(setup: &Setup<'_>, place: &Place) -> Result<Contender> {
    let script = format!(
        "local redis = require \"nginx.redis\"\n\
         local red = redis:new()\n\
         red:set_timeout(200)\n\
         assert(red:connect({place}))\n\
         if ngx.req.get_method() == \"PUT\" then\n\
         ngx.req.read_body()\n\
         assert(red:set(ngx.var.args, ngx.req.get_body_data()))\n\
         red:set_keepalive(60000, 1024)\n\
         ngx.exit(200)\n\
         end\n\
         local page = red:get(ngx.var.args)\n\
         red:set_keepalive(60000, 1024)\n\
         if page == ngx.null then ngx.exit(404) end\n\
         ngx.header[\"Content-Length\"] = #page\n\
         ngx.print(page)",
        place = place.lua()
    );
    let locations = format!(
        "location / {{\nset $key $request_uri;\nsrcache_fetch GET /kept $key;\nsrcache_store PUT /kept $key;\n\
         {proxy}\nadd_header Cache-Status $told;\n}}\n\
         location = /kept {{\ninternal; client_body_buffer_size 64k;\ncontent_by_lua_block {{\n{script}\n}}\n}}",
        proxy = nginx::PROXY
    );
    let http = "map $srcache_fetch_status $told { HIT \"nginx; hit\"; default \"nginx; fwd=miss\"; }";
    let modules: String = [nginx::NDK_MODULE, nginx::LUA_MODULE, nginx::SRCACHE_MODULE]
        .map(|module| format!("load_module {module};\n"))
        .concat();
    let contender = nginx::with_modules(setup, "nginx, srcache", &modules, http, &locations)?.contender()?;
    ask_all_for(contender.address, (8, BYTES), PAGES, target)?;
    Ok(contender)
}
