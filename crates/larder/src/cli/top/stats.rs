//! What the servers of origins do, from two looks at their counters.
//!
//! In: what `/stats` says. Out: requests and failures per second, by origin and server. A counter that has become less belongs to a larder that
//! was started anew: there is no rate then.

use std::collections::BTreeMap;

use serde_json::Value;

/// The last look, and the rates that it gave.
#[derive(Debug, Default)]
pub(super) struct ServerRates {
    at: f64,
    counts: BTreeMap<(String, String), (u64, u64)>,
    rates: BTreeMap<(String, String), (f64, f64)>,
}

/// The members of a list.
pub(super) fn each<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A member that is a text.
pub(super) fn word<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl ServerRates {
    /// Takes another look.
    pub(super) fn take(&mut self, stats: &Value, now: f64) {
        let mut counts = BTreeMap::new();
        for origin in each(stats, "origins") {
            for server in each(origin, "servers") {
                let number = |name: &str| server.get(name).and_then(Value::as_u64).unwrap_or_default();
                let name = (word(origin, "name").to_owned(), word(server, "server").to_owned());
                counts.insert(name, (number("requests"), number("failures")));
            }
        }
        let passed = now - self.at;
        self.rates.clear();
        for (name, (requests, failures)) in &counts {
            let before = self.counts.get(name);
            let more = before.and_then(|(then, failed)| {
                Some((requests.checked_sub(*then)?, failures.checked_sub(*failed)?))
            });
            if let Some((requests, failures)) = more.filter(|_| passed > 0.1) {
                self.rates.insert(name.clone(), (requests as f64 / passed, failures as f64 / passed));
            }
        }
        (self.counts, self.at) = (counts, now);
    }

    /// Requests and failures per second, where they are known.
    pub(super) fn rate(&self, origin: &str, server: &str) -> Option<(f64, f64)> {
        self.rates.get(&(origin.to_owned(), server.to_owned())).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_looks_make_a_rate_and_a_restart_makes_none() {
        let look = |requests: u64| json!({"origins": [{"name": "app", "servers": [{"server": "s", "requests": requests, "failures": 1}]}]});
        let mut rates = ServerRates::default();
        rates.take(&look(10), 100.0);
        assert_eq!(rates.rate("app", "s"), None);
        rates.take(&look(30), 105.0);
        assert_eq!(rates.rate("app", "s"), Some((4.0, 0.0)));
        rates.take(&look(3), 110.0);
        assert_eq!((rates.rate("app", "s"), rates.rate("other", "s")), (None, None));
        rates.take(&json!([]), 111.0);
    }
}
