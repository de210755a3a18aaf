//! What of a config holds for as long as a process runs.
//!
//! In: the config of the start, and each later one. Out: what the later one says otherwise, a sentence each: a reload tells it every time, until there was a
//! restart or it is taken back.

use larder_config::{AdminSettings, Config, Fleet, RedisServer};

/// What of a config holds from the start to the end, whatever later ones say.
pub(super) struct AtStart {
    admin: AdminSettings,
    membership: Option<(Fleet, RedisServer)>,
    /// It shared responses, so the fleet does what that takes.
    shares_responses: bool,
}

impl AtStart {
    pub(super) fn of(config: &Config) -> Self {
        let membership = config.membership().map(|(fleet, server)| (fleet, server.clone()));
        Self { admin: config.admin.clone(), membership, shares_responses: config.shares_responses() }
    }

    /// What another config says of that, a sentence each.
    pub(super) fn postponed(&self, config: &Config) -> Vec<String> {
        let mut notes = Vec::new();
        if config.admin != self.admin {
            notes.push("admin changes at a restart".to_owned());
        }
        let membership = self.membership.as_ref().map(|(fleet, server)| (fleet.clone(), server));
        if config.membership() != membership {
            notes.push("fleet changes at a restart".to_owned());
        }
        let shares = config.stores.iter().filter(|(_, store)| store.records().is_some());
        let not_yet = shares.filter(|_| !self.shares_responses);
        notes.extend(not_yet.map(|(name, _)| {
            format!("stores.{name}: shares nothing before, since larder was started without a store in Redis")
        }));
        notes
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_holds_from_the_start_is_compared_with_what_runs() {
        let config = |text: &str| {
            let site = "[origins.a]\nservers = \"http://127.0.0.1:1\"\n[[site]]\norigin = \"a\"\n";
            let checked = larder_config::parse(&format!("{text}\n{site}"), "f", Path::new("")).ok();
            checked.map(|checked| checked.config).expect("it is good")
        };
        let fleet = "fleet = { redis = \"redis://127.0.0.1:6379\", name = \"web-1\" }";
        let at_start = AtStart::of(&config(fleet));
        for (other, notes) in [
            (fleet.to_owned(), &[][..]),
            (format!("admin = false\n{fleet}"), &["admin changes at a restart"]),
            (fleet.replace("6379", "6380"), &["fleet changes at a restart"]),
            (fleet.replace("web-1", "web-2"), &["fleet changes at a restart"]),
            (String::new(), &["fleet changes at a restart"]),
        ] {
            assert_eq!(at_start.postponed(&config(&other)), notes, "{other}");
        }
    }
}
