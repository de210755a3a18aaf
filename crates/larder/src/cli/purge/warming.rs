//! `larder purge --warm`: asks for what was purged, so that the next visitor does not wait.
//!
//! In: the URLs that a purge names. Out: requests through a listener of larder, after the purge was acknowledged. A tag, a prefix or
//! any other name does not say which URLs it concerns, so these are not asked for. Everything that can be wrong is looked for before
//! the purge, so that a command that cannot warm purges nothing either.

use super::arguments::PurgeArguments;
use crate::cli::warm::{ListenerAddress, ShownAs, WarmError, WarmOptions, WarmReport, WarmUrl, warm};

/// What is to be asked for, and where.
pub(super) struct Warming {
    urls: Vec<WarmUrl>,
    listener: ListenerAddress,
}

/// Why a purge cannot be warmed.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotWarmed {
    #[error("--warm asks for the URLs that are purged, and none is named: no URL follows from {0}")]
    NoUrls(String),
    #[error("{0}: {1}")]
    Url(String, String),
    #[error(transparent)]
    Warm(#[from] WarmError),
}

impl Warming {
    /// Finds out whether what is purged can be asked for.
    ///
    /// # Errors
    /// No URL is named, one of them is none, or no listener takes them.
    pub(super) async fn of(arguments: &PurgeArguments) -> Result<Self, NotWarmed> {
        if arguments.urls.is_empty() {
            return Err(NotWarmed::NoUrls(others(arguments).join(" and ")));
        }
        let parsed = |url: &String| WarmUrl::parse(url).map_err(|why| NotWarmed::Url(url.clone(), why));
        let urls = arguments.urls.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
        let listener = ListenerAddress::find(arguments.through.as_deref(), &arguments.admin).await?;
        listener.check(&urls).await?;
        Ok(Self { urls, listener })
    }

    /// Asks for all of it.
    pub(super) async fn warm(self, json: bool) -> WarmReport {
        let shown = if json { ShownAs::Nothing } else { ShownAs::on_stderr() };
        warm(self.urls, WarmOptions { shown, ..WarmOptions::new(&self.listener) }).await
    }
}

/// What a purge names beside URLs, which cannot be asked for.
pub(super) fn others(arguments: &PurgeArguments) -> Vec<&'static str> {
    let PurgeArguments { tags, prefixes, patterns, hosts, groups, all, .. } = arguments;
    [
        ("tags", !tags.is_empty()),
        ("prefixes", !prefixes.is_empty()),
        ("patterns", !patterns.is_empty()),
        ("hosts", !hosts.is_empty()),
        ("groups", !groups.is_empty()),
        ("--all", *all),
    ]
    .into_iter()
    .filter_map(|(name, is_named)| is_named.then_some(name))
    .collect()
}
