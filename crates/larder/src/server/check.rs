//! What a start with a config would find, without starting.
//!
//! In: a checked config. Out: what it would be given on this machine, or the error that a start or a reload would end with.
//! Everything is built as at a start, but what is outside is left alone: no disk or directory of a store is opened, no server is
//! asked, nothing is bound.

use std::sync::Arc;

use larder_config::{Checked, Config};
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Metrics};
use larder_proxy::{Plan, Proxy, Worker};

use super::certificates::{CertificateWatch, expiry_warnings};
use super::descriptors::{Limit, Shares};
use super::error::ServerError;
use super::runtime::usable_cpus;
use crate::wire::acme::OrderedCertificates;
use crate::wire::{WireError, Wiring};

/// What a start would have.
pub(crate) struct Promised {
    /// File descriptors, and what they allow.
    pub(crate) descriptors: String,
    /// What there is too little of, and certificates that expire soon.
    pub(crate) warnings: Vec<String>,
}

/// # Errors
/// As [`super::Server::start`], as far as that can be known before.
pub(crate) fn check(checked: &Checked, clock: &Clock) -> Result<Promised, ServerError> {
    let config = &checked.config;
    let now = clock.now().wall;
    let (tls, _) = CertificateWatch::start(checked, OrderedCertificates::default(), now)?;
    crate::wire::acme::settings(config, &checked.places).map_err(ServerError::Certificates)?;
    let expiring = expiry_warnings(tls.certificates(), config.tls.expiry_warning, now);
    let limit = Limit::raise();
    let shares = Shares::of(config, limit.now, config.workers.unwrap_or_else(usable_cpus))?;
    build(config, Clock::default(), Diagnostics::silent())?;
    Ok(Promised {
        descriptors: shares.told(limit),
        warnings: shares
            .warning()
            .into_iter()
            .chain(expiring.into_iter().map(|(_, sentence)| sentence))
            .collect(),
    })
}

/// A worker as `config` makes it, with stores that have nothing in them and nothing behind them.
///
/// # Errors
/// What the config says cannot be built.
pub(crate) fn build(config: &Config, clock: Clock, diagnostics: Diagnostics) -> Result<Worker, WireError> {
    let version = env!("CARGO_PKG_VERSION");
    let metrics = Arc::new(Metrics::new(1, larder_proxy::vocabulary(), clock.now().wall, version));
    let said = config;
    let mut config = config.clone();
    for (_, store) in &mut config.stores {
        (store.disks, store.files) = (Vec::new(), None);
        (store.memcached, store.redis) = (None, None);
    }
    let wiring = Wiring::new(Arc::clone(&metrics), clock.clone(), diagnostics.clone(), Arc::default());
    let (settings, _) = wiring.draft_reading(&config, &Shares::unlimited(), (said, false))?;
    let plan = Plan::new(settings).map_err(WireError::from)?;
    Worker::new(&Proxy::new(clock, metrics, diagnostics), 0, plan).map_err(WireError::from)
}
