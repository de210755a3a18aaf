//! A look at servers before they are used: does each of them answer.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use larder_observe::Diagnostics;
use tokio::time::timeout;

use super::settings::MemcachedSettings;
use crate::address::Resolve;
use crate::error::RemoteError;
use crate::protocol::Dialer;
use crate::settings::RemoteSettings;

/// Connects to each server, one after the other, for as long as the settings allow. What each is called, and why it cannot be used.
///
/// # Errors
/// The settings are outside of their bounds.
///
/// # Cancel safety
/// Dropping it closes the connection.
pub async fn examine(
    settings: MemcachedSettings,
    names: Arc<dyn Resolve>,
) -> Result<Vec<(String, Option<String>)>, RemoteError> {
    let (limit, value_max) = (settings.timeout, Arc::new(AtomicUsize::new(settings.max_object)));
    let terms = RemoteSettings::Memcached(settings).into_terms(&names, &Diagnostics::silent())?;
    let mut found = Vec::new();
    for (label, protocol) in terms.servers {
        let dialer = Dialer { protocol, value_max: Arc::clone(&value_max) };
        let why = match timeout(limit, dialer.open()).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no reply came in time".to_owned()),
        };
        found.push((label.text().into_owned(), why));
    }
    Ok(found)
}
