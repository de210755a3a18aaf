//! Another config for a larder that runs.
//!
//! In: a checked config. Out: it is in force, and what of it has to wait for a restart; or an error, and nothing has changed.
//! So everything that can fail comes before anything that changes: sockets are bound, workers prepare what they will
//! adopt. Open connections and what is stored stay.

use std::sync::Arc;

use larder_config::{Checked, Config, Errors, ListenEntry, Problem};
use larder_listen::Listener;
use larder_observe::Level;
use larder_proxy::Plan;

use super::config::RunningConfig;
use super::descriptors::Shares;
use super::runtime::usable_cpus;
use super::{Server, ServerError, addresses, changed};
use crate::wire::WireError;

/// What a reload could not do without a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Postponed {
    /// One sentence each.
    pub notes: Vec<String>,
}

impl Server {
    /// Takes over a new config: sites, rules, origins, stores, listeners, log. The cache and open connections are
    /// kept. Returns what has to wait for a restart.
    ///
    /// # Errors
    /// The old config stays in force, whole.
    pub fn reload(&mut self, checked: Checked) -> Result<Postponed, ServerError> {
        let running = RunningConfig::of(&checked, self.clock.now().wall);
        let changed = changed::sentence(&self.config, &checked.config);
        let result = self.take_over(checked);
        let told = match &result {
            Ok(postponed) => {
                let notes = postponed.notes.iter().map(|note| format!("; needs a restart: {note}"));
                format!("a new config is in force: {changed}{}", notes.collect::<String>())
            }
            // It may quote the config, as in the name of a file.
            Err(error) => {
                let why = running.text.without_secrets(&error.to_string());
                format!("the config before it stays in force: {why}")
            }
        };
        if result.is_ok() {
            self.insight.run_by(running);
        }
        self.metrics.config_reloaded(result.is_ok());
        self.insight.tell("reload", "", told);
        result
    }

    fn take_over(&mut self, checked: Checked) -> Result<Postponed, ServerError> {
        // Everything that can fail comes before anything that changes.
        let (tls, settings_of_sites) = self.tls.next(&checked, self.clock.now().wall)?;
        let orders = crate::wire::acme::settings(&checked.config, &checked.places);
        let orders = orders.map_err(ServerError::Certificates)?;
        let config = checked.config;
        let shares = Shares::of(&config, self.limit.now, self.workers.len())?;
        let (mut settings, draft) = self.wiring.draft(&config, &shares)?;
        settings.secure(settings_of_sites);
        let stores = settings.stores.clone();
        let plan = Plan::new(settings).map_err(WireError::from)?;
        let ours: Vec<_> = self.listeners.values().map(|listener| listener.bound.address).collect();
        let wanted = config.listen.iter().map(|entry| (*entry, addresses::listener(entry, &config)));
        let stays = |(entry, asked): &(ListenEntry, Listener)| {
            self.listeners.get(entry).is_some_and(|open| open.asked == *asked)
        };
        let (staying, new): (Vec<_>, Vec<_>) = wanted.partition(stays);
        let bind = |(entry, asked)| {
            addresses::bind(asked, self.workers.len(), &ours).map(|bound| (entry, asked, bound))
        };
        let bound: Vec<_> = new.into_iter().map(bind).collect::<Result<_, _>>()?;
        let prepared = self.workers.iter().map(|worker| worker.worker().prepare(Arc::clone(&plan)));
        let prepared: Vec<_> = prepared.collect::<Result<_, _>>().map_err(WireError::from)?;
        self.ordering.order(orders)?;
        self.proxy.recover(&stores, &|store| self.wiring.heard(&draft, store));
        self.wiring.tell_of_findings(&draft);
        for (worker, prepared) in self.workers.iter().zip(prepared) {
            worker.worker().adopt(prepared);
        }
        let mut postponed = self.postponed(&config);
        postponed.notes.extend(self.wiring.postponed(&draft));
        self.slots.resize(shares.clients);
        self.wiring.commit(draft, &shares);
        let is_changed = std::mem::replace(&mut self.shares, shares) != self.shares;
        let is_staying = |entry: &ListenEntry| staying.iter().any(|(other, _)| other == entry);
        let gone: Vec<_> = self.listeners.keys().filter(|entry| !is_staying(entry)).copied().collect();
        self.config = config;
        self.insight.keep(crate::wire::live::watched(&self.config.live));
        self.tls = tls;
        self.listen_anew();
        self.closing.retain(|listener| !listener.is_drained());
        for entry in gone {
            if let Some(listener) = self.listeners.remove(&entry) {
                listener.drain.start();
                self.closing.push(listener);
            }
        }
        for (entry, asked, bound) in bound {
            self.open(entry, asked, bound)?;
        }
        if let Err(error) = self.open_log() {
            self.diagnostics.warn("access-log", "reload", format_args!("{error}; the old one stays"));
        }
        if is_changed {
            self.diagnostics.tell(Level::Info, self.shares.told(self.limit));
            self.warn_of_descriptors();
        }
        self.refresh_insight();
        Ok(postponed)
    }

    /// Connections that are accepted from now on have the limits of the config, and the certificates that were read last.
    pub(super) fn listen_anew(&self) {
        // A listener that goes may still have connections on their way.
        let tls = self.tls.server().or_else(|| self.listener_settings.load().tls.clone());
        let settings = crate::wire::listener(&self.config, tls, &self.clock);
        self.listener_settings.store(Arc::new(settings));
    }

    fn postponed(&self, config: &Config) -> Postponed {
        let mut notes = Vec::new();
        let workers = config.workers.unwrap_or_else(usable_cpus);
        if workers != self.workers.len() {
            notes.push(format!("workers: {} run, {workers} after a restart", self.workers.len()));
        }
        notes.extend(self.at_start.postponed(config));
        Postponed { notes }
    }

    /// Counts a reload whose config had errors.
    pub fn reload_refused(&self, errors: &Errors) {
        self.metrics.config_reloaded(false);
        let count = match errors.0.len() {
            1 => "an error".to_owned(),
            count => format!("{count} errors"),
        };
        let first = errors.0.first().map(place).unwrap_or_default();
        let text = format!("the config before it stays in force; the new one has {count}: {first}");
        self.insight.tell("reload", "", text);
    }
}

/// Where a problem is, and no word of what stands there: that may be a secret, in a place where none is known.
fn place(problem: &Problem) -> String {
    let Problem { file, line, column, key, .. } = problem;
    let place = match line {
        0 => file.clone(),
        _ => format!("{file}:{line}:{column}"),
    };
    match (place.as_str(), key.as_str()) {
        (_, "") => place,
        ("", _) => key.clone(),
        _ => format!("{place}: {key}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_problem_is_told_by_its_place_alone() {
        let site = "[origins.a]\nservers = \"http://127.0.0.1:1\"\n[[site]]\norigin = \"a\"\n";
        for (wrong, expected) in [
            (
                "request = { set = { Authorization = \"Bearer 5f2c81d09b7ae346 \" } }",
                "f:5:37: site[0].request.set.Authorization",
            ),
            ("query = { api_key = 5281099734612 }", "f:5:1: site[0].query"),
            ("tttl = \"5f2c81d09b7ae346\"", "f:5:1: site[0].tttl"),
            ("origin = 5f2c81d09b7ae346", "f:5:1"),
        ] {
            let errors = larder_config::parse(&format!("{site}{wrong}\n"), "f", Path::new("")).err();
            let told: Vec<_> = errors.iter().flat_map(|errors| &errors.0).map(place).collect();
            assert_eq!(told.first().map(String::as_str), Some(expected), "{wrong}");
        }
        for (file, key, expected) in [("f", "", "f"), ("", "--listen", "--listen")] {
            let (file, key, found) = (file.to_owned(), key.to_owned(), "5f2c81d09b7ae346".to_owned());
            let problem = Problem { file, line: 0, column: 0, key, found, expected: None, hint: None };
            assert_eq!(place(&problem), expected);
        }
    }
}
