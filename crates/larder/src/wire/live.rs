//! What may be kept of requests, in the words of observation.
//!
//! In: the table `live` of a config. Out: the settings of a watch.

use larder_config::{ClientAddresses, HiddenParameter, Live};
use larder_observe::watch::{Clients, Redact, WatchSettings};

/// What the watch of a larder with this config may keep.
pub(crate) fn watched(live: &Live) -> WatchSettings {
    WatchSettings {
        redact: Redact::new(live.redact.iter().map(HiddenParameter::as_str)),
        clients: match live.clients {
            ClientAddresses::Masked => Clients::Masked,
            ClientAddresses::Full => Clients::Full,
            ClientAddresses::Off => Clients::Off,
        },
        history: live.history,
        memory_bytes: usize::try_from(live.memory.0).unwrap_or(usize::MAX),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    #[test]
    fn a_config_that_says_nothing_has_the_defaults_of_the_watch() {
        let site = "[origins.a]\nservers = \"http://127.0.0.1:1\"\n[[site]]\norigin = \"a\"\n";
        let config = larder_config::parse(site, "f", Path::new("")).unwrap().config;
        assert_eq!(watched(&config.live), WatchSettings::default());
        let said = "[live]\nhistory = \"0s\"\nmemory = \"1MiB\"\nclients = \"off\"\nredact = [\"sid\"]\n";
        let config = larder_config::parse(&(said.to_owned() + site), "f", Path::new("")).unwrap().config;
        let expected = WatchSettings {
            redact: Redact::new(["sid"]),
            clients: Clients::Off,
            history: std::time::Duration::ZERO,
            memory_bytes: 1 << 20,
        };
        assert_eq!(watched(&config.live), expected);
    }
}
