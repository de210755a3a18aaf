//! The caches of a world: its peer and larder, before an origin.
//!
//! In: a world, its origin, and what will be stored. Out: a running cache. larder's config is written here; those of the peers are in
//! tests/dialects/peers, without what differs from run to run.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use super::PEERS;
use super::stored::Stored;
use super::world::{Peer, World};
use crate::peers::{self, Running};

/// Where Debian has it.
pub(crate) const NGINX_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_cache_purge_module.so";

/// The world's peer.
pub(crate) fn peer(root: &Path, world: &World, origin: SocketAddr, _: &[Stored]) -> Result<Running> {
    let folder = root.join(PEERS);
    match world.peer {
        Peer::Varnish(config) => peers::varnish(&folder.join(config), origin),
        Peer::Nginx(config) => peers::nginx(&folder.join(config), origin, &[("module", NGINX_MODULE)]),
    }
}

/// larder with a site of all hosts.
pub(crate) fn larder(root: &Path, world: &World, origin: SocketAddr, stored: &[Stored]) -> Result<Running> {
    let without_port = |stored: &'_ Stored| stored.host.split(':').next().unwrap_or_default().to_owned();
    let mut hosts: Vec<String> = stored.iter().map(without_port).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let tags: Vec<&str> =
        world.tags.iter().map(|(name, _)| *name).chain(world.more_tags.iter().copied()).collect();
    let tags = if tags.is_empty() { String::new() } else { format!("tags = {tags:?}\n") };
    // Requests say nothing of freshness here, as with the peers.
    let config = format!(
        "[origins.app]\nservers = [\"http://{origin}\"]\n\n\
         [[site]]\nhosts = {hosts:?}\norigin = \"app\"\nrequest_directives = \"ignore\"\npurge = {}\n{tags}",
        world.purge
    );
    peers::larder(root, &config)
}
