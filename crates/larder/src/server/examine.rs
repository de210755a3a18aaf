//! The other programs that a config names, asked before larder runs with it: can they be reached, and may larder do there what it needs.
//!
//! In: a checked config. Out: a line for each server of memcached, Redis and Valkey, with what is wrong. Nothing is written there.

use std::sync::Arc;
use std::time::Duration;

use larder_config::{CacheMode, Config, RedisServer};
use larder_remote::redis::{Use, examine};
use larder_remote::{RemoteError, SystemNames, memcached};

use crate::wire;

/// Clocks that are further apart are told of.
const CLOCKS_APART: Duration = Duration::from_secs(1);
/// No value is read.
const NO_VALUES: u64 = 0;

/// What was found of one server.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it is called, and what it is for.
    pub(crate) server: String,
    /// What it is; `None` where it cannot be used.
    pub(crate) is: Option<String>,
    /// Why it cannot be used as it is.
    pub(crate) problems: Vec<String>,
    /// What could be better.
    pub(crate) advice: Option<String>,
}

/// A server of Redis, and what it is for.
struct Named {
    server: RedisServer,
    timeout: Duration,
    uses: Vec<(Use, String)>,
}

/// Asks all of them, one after the other.
///
/// # Errors
/// Certificates or addresses cannot be used, or there is no runtime.
pub(crate) fn servers(config: &Config) -> Result<Vec<Found>, RemoteError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(RemoteError::Thread)?.block_on(async {
        let mut found = Vec::new();
        for (name, store) in &config.stores {
            let Some(said) = &store.memcached else { continue };
            let settings = wire::memcached(said, NO_VALUES)?;
            for (server, why) in memcached::examine(settings, Arc::new(SystemNames)).await? {
                found.push(Found {
                    server: format!("memcached {server} (stores.{name})"),
                    is: why.is_none().then(|| "answers".to_owned()),
                    problems: why.into_iter().collect(),
                    advice: None,
                });
            }
        }
        let prefix = config.membership().map(|(fleet, _)| fleet).unwrap_or_default().prefix;
        for named in named(config) {
            found.push(of_redis(&named, prefix.as_str()).await?);
        }
        Ok(found)
    })
}

async fn of_redis(named: &Named, prefix: &str) -> Result<Found, RemoteError> {
    let settings = wire::redis_settings(&named.server, named.timeout, NO_VALUES);
    let uses: Vec<Use> = named.uses.iter().map(|(of, _)| *of).collect();
    let labels: Vec<&str> = named.uses.iter().map(|(_, label)| label.as_str()).collect();
    let server = format!("{} ({})", named.server, labels.join(", "));
    Ok(match examine(&settings, (&uses, prefix), Arc::new(SystemNames)).await? {
        Ok(looked) => {
            let product = looked.about.as_ref().map_or("a server".to_owned(), ToString::to_string);
            let apart = looked.clocks_apart.filter(|apart| *apart >= CLOCKS_APART);
            let apart = apart.map_or(String::new(), |apart| {
                format!("; its clock and the one here are {} s apart", apart.as_secs())
            });
            let millis = looked.round_trip.as_secs_f64() * 1e3;
            Found {
                server,
                is: Some(format!("{product}, a round trip takes {millis:.1} ms{apart}")),
                problems: looked.problems(),
                advice: looked.advice(&uses),
            }
        }
        Err(why) => Found { server, is: None, problems: vec![why], advice: None },
    })
}

/// Each server once, with all that it is for.
fn named(config: &Config) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    let mut add = |server: &RedisServer, timeout, of, label: String| match all
        .iter_mut()
        .find(|named| named.server == *server)
    {
        Some(named) if named.uses.iter().any(|(other, said)| *other == of && *said == label) => {}
        Some(named) => named.uses.push((of, label)),
        None => all.push(Named { server: server.clone(), timeout, uses: vec![(of, label)] }),
    };
    for (name, store) in &config.stores {
        let Some(redis) = &store.redis else { continue };
        let of = if redis.values.is_none() { Use::Records } else { Use::Application };
        add(&redis.server, redis.timeout, of, format!("stores.{name}"));
    }
    if let Some((fleet, server)) = config.membership() {
        let is_timed = config.shares_responses();
        add(server, fleet.timeout, Use::Fleet { is_timed }, "fleet".to_owned());
    }
    for site in &config.sites {
        for rule in site.rules.iter().map(|rule| Some(&rule.settings)).chain([None]) {
            let resolved = larder_config::Settings::resolve(rule, &site.settings, &config.defaults.settings);
            let versions = resolved.versions.as_ref().filter(|_| resolved.cache == CacheMode::Auto);
            let Some(versions) = versions else { continue };
            if let Some(server) = config.server_of_versions(&resolved, versions) {
                add(server, versions.timeout, Use::Application, "versions".to_owned());
            }
        }
    }
    all
}
