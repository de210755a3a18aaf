//! Servers of origins that are left out, or come back, as events.
//!
//! In: how the servers are doing, once a second. Out: an event for each that takes no requests any more, for its failures or by active
//! checks, and for each that takes them again. Requests have no part in it.
//! Deliberately absent: an ejection that is over within the second. Counters tell of it.

use std::collections::HashMap;

use larder_origin::{ServerReport, ServerState};

/// What an event is made of: its kind, its subject, its text.
pub(super) type StandingEvent = (&'static str, String, String);

/// How servers stood when they were looked at last.
#[derive(Debug, Default)]
pub(super) struct Standings(HashMap<(String, String, String), ServerState>);

impl Standings {
    /// Looks at the servers of all origins, by the origin's name.
    pub(super) fn look(&mut self, all: Vec<(String, Vec<ServerReport>)>) -> Vec<StandingEvent> {
        let mut events = Vec::new();
        let mut now = HashMap::new();
        for (origin, servers) in all {
            for ServerReport { server, address, state, .. } in servers {
                let key = (origin.clone(), server, address);
                let was_out = self.0.get(&key).copied().is_some_and(is_out);
                let (_, server, address) = &key;
                match (was_out, is_out(state)) {
                    (false, true) => {
                        let why = match state {
                            ServerState::Unhealthy => "its health checks fail",
                            _ => "it failed too often in a row",
                        };
                        let text = format!("origin {origin}: {server} at {address} is left out: {why}");
                        events.push(("ejected", origin.clone(), text));
                    }
                    (true, false) if state != ServerState::Draining => {
                        let text = format!("origin {origin}: {server} at {address} takes requests again");
                        events.push(("recovered", origin.clone(), text));
                    }
                    _ => {}
                }
                now.insert(key, state);
            }
        }
        self.0 = now;
        events
    }
}

const fn is_out(state: ServerState) -> bool {
    matches!(state, ServerState::Ejected | ServerState::Unhealthy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: ServerState) -> ServerReport {
        ServerReport {
            server: "http://a:80".to_owned(),
            address: "192.0.2.1:80".to_owned(),
            weight: 1,
            backup: false,
            state,
            in_flight: 0,
            failures: 0,
            requests: 0,
            classes: [0; 5],
            heads: [0; larder_origin::HEAD_TIMES],
            bytes: 0,
            check: None,
        }
    }

    #[test]
    fn a_server_that_is_left_out_and_comes_back_is_told_once_each() {
        let mut standings = Standings::default();
        let mut kinds = |state| -> Vec<_> {
            let events = standings.look(vec![("app".to_owned(), vec![report(state)])]);
            events.into_iter().map(|(kind, _, text)| (kind, text)).collect()
        };
        let out =
            |why: &str| ("ejected", format!("origin app: http://a:80 at 192.0.2.1:80 is left out: {why}"));
        let back = ("recovered", "origin app: http://a:80 at 192.0.2.1:80 takes requests again".to_owned());
        for (state, expected) in [
            (ServerState::Up, vec![]),
            (ServerState::Ejected, vec![out("it failed too often in a row")]),
            (ServerState::Ejected, vec![]),
            (ServerState::Unhealthy, vec![]),
            (ServerState::SlowStart, vec![back]),
            (ServerState::Up, vec![]),
            (ServerState::Unhealthy, vec![out("its health checks fail")]),
            (ServerState::Draining, vec![]),
        ] {
            assert_eq!(kinds(state), expected, "{state}");
        }
    }
}
