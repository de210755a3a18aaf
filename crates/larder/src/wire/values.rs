//! Values in memcached or Redis of a store of the config, put to work.
//!
//! In: what the config says of them, and which sites use the store. Out: the tier, and the hosts that it is for. Which servers, keys and
//! formats there are is decided when the store is made; the hosts are those of the config in force.

use std::sync::Arc;

use http::HeaderValue;
use larder_cache::purge::Scope;
use larder_config::{Config, Memcached, Name, Redis, ValueFormat, ValueKeyPart, ValueSettings};
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_remote::memcached::{Codings, MemcachedSettings, Placement, RemoteServer};
use larder_remote::{Address, RemoteError, RemoteSettings, SystemNames};
use larder_values::{Format, KeyPart, KeyTemplate, ServedHosts, Values, ValuesSettings};

/// Starts the tier, where the store has one. No server is connected before something is asked or written.
///
/// # Errors
/// The servers are outside of their bounds together, or there is no thread.
pub(super) fn start(
    config: &larder_config::Store,
    clock: &Clock,
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<Values>>, RemoteError> {
    let max_object = config.max_object_bytes();
    let servers = match (&config.memcached, &config.redis) {
        (Some(said), _) => RemoteSettings::Memcached(memcached(said, max_object)?),
        (None, Some(redis)) => in_redis(redis, max_object),
        (None, None) => return Ok(None),
    };
    // Records of larder's own are no values.
    let Some((_, said)) = config.values() else { return Ok(None) };
    Values::start(settings(said, max_object), servers, Arc::new(SystemNames), clock, diagnostics).map(Some)
}

fn settings(said: &ValueSettings, max_object: u64) -> ValuesSettings {
    ValuesSettings {
        key: template(said.key.parts()),
        format: match said.format {
            ValueFormat::Body => Format::Body,
            ValueFormat::Http => Format::Http,
        },
        near: said.near,
        // A checked config has a type that can be a field's value.
        default_type: said
            .default_type
            .as_str()
            .parse()
            .unwrap_or(HeaderValue::from_static("application/octet-stream")),
        write: said.write,
        max_object,
        timeout: said.timeout,
    }
}

/// How the servers of a store in memcached are reached.
///
/// # Errors
/// One of them has no address.
pub(crate) fn memcached(config: &Memcached, max_object: u64) -> Result<MemcachedSettings, RemoteError> {
    Ok(MemcachedSettings {
        servers: servers(config)?,
        placement: match config.ring {
            larder_config::Ring::Ketama => Placement::Ketama,
            larder_config::Ring::Consistent => Placement::Consistent,
            larder_config::Ring::Nginx => Placement::Nginx,
        },
        timeout: config.values.timeout,
        max_object: usize::try_from(max_object).unwrap_or(usize::MAX),
        codings: Codings { gzip_flag: config.gzip_flag, zlib_flag: config.zlib_flag },
    })
}

fn in_redis(config: &Redis, max_object: u64) -> RemoteSettings {
    RemoteSettings::Redis(Box::new(super::redis::settings(&config.server, config.timeout, max_object)))
}

fn servers(config: &Memcached) -> Result<Vec<RemoteServer>, RemoteError> {
    let server = |entry: &larder_config::RemoteServerEntry| {
        let address = Address::parse(entry.server.as_str())?;
        Ok(RemoteServer { address, weight: entry.weight })
    };
    config.servers.iter().map(server).collect()
}

/// How a name is made of a request.
pub(super) fn template(parts: &[ValueKeyPart]) -> KeyTemplate {
    KeyTemplate::new(parts.iter().map(part).collect())
}

fn part(part: &ValueKeyPart) -> KeyPart {
    match part {
        ValueKeyPart::Text(text) => KeyPart::Text(text.clone()),
        ValueKeyPart::Scheme => KeyPart::Scheme,
        ValueKeyPart::Host => KeyPart::Host,
        ValueKeyPart::Path => KeyPart::Path,
        ValueKeyPart::Query => KeyPart::Query,
        ValueKeyPart::Target => KeyPart::Target,
        ValueKeyPart::Cookie(name) => KeyPart::Cookie(name.as_str().to_owned()),
        ValueKeyPart::Field(name) => KeyPart::Field(name.clone()),
        ValueKeyPart::Version => KeyPart::Versions,
    }
}

/// The hosts whose responses go to a store: those of the sites that use it. An exact host goes before the longest wildcard, and that
/// before the site without hosts, as for requests.
pub(super) fn served(config: &Config, store: &Name) -> Arc<ServedHosts> {
    let (mut hosts, mut otherwise) = (Vec::new(), false);
    for site in &config.sites {
        let is_in = config.site_uses(site, store);
        otherwise |= is_in && site.hosts.is_empty();
        hosts.extend(site.hosts.iter().map(|host| (host.as_str(), is_in)));
    }
    let scope = Scope::of_sites(hosts, otherwise);
    Arc::new(move |host| scope.holds(host))
}
