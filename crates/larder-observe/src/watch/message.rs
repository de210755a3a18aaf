//! larder's own messages as events.
//!
//! In: what diagnostics have said, on their thread. Out: an event, where the message is about disks or purges, or is a warning or an error.
//! A message may quote a URL or a client's address. Of both is shown what may be shown of requests.
//! Deliberately absent: messages that answer the operator at the terminal, such as those of a reload, which has an event of its own.

use std::net::IpAddr;

use super::event::Event;
use super::{Watch, WatchSettings};
use crate::diagnostics::{Level, Said};

/// In front of who did something, in messages.
const BY: &str = " by ";

/// The kind of event that a message is; `None` where it is none.
fn kind_of(said: &Said) -> Option<&'static str> {
    let is_of = |beginning: &str| said.kind.starts_with(beginning);
    match said.level {
        _ if is_of("disk-") || is_of("file-") || is_of("files-") => Some("disk"),
        _ if said.kind == "purge" || is_of("purge-") => Some("purge"),
        Level::Warning | Level::Error => Some("message"),
        Level::Info => None,
    }
}

impl WatchSettings {
    /// A message without what may not be kept.
    fn shown(&self, message: &str) -> String {
        let mut out = Vec::with_capacity(message.len());
        for word in message.split_inclusive(' ') {
            let (word, blank) = word.strip_suffix(' ').map_or((word, ""), |word| (word, " "));
            let address = word.trim_end_matches([',', ';', ':']);
            match address.parse::<IpAddr>() {
                Ok(client) if out.ends_with(BY.as_bytes()) => {
                    let kept = self.clients.kept(client);
                    out.extend_from_slice(kept.as_deref().unwrap_or("a client").as_bytes());
                    out.extend_from_slice(word.get(address.len()..).unwrap_or_default().as_bytes());
                }
                _ => self.redact.write(word.as_bytes(), &mut out),
            }
            out.extend_from_slice(blank.as_bytes());
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl Watch {
    /// larder has said something.
    pub fn said(&self, said: &Said) {
        let Some(kind) = kind_of(said) else { return };
        let text = self.drain.lock().settings.shown(said.message());
        // The name of a purge says nothing that its text does not say.
        let subject = if kind == "purge" { String::new() } else { said.subject.to_string() };
        self.tell(Event { at: said.at, kind, subject, text });
    }

    /// As much of a client's address as may be shown.
    pub fn client(&self, address: IpAddr) -> Option<String> {
        self.drain.lock().settings.clients.kept(address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use larder_http::time::WallTime;

    use super::*;
    use crate::label::Vocabulary;
    use crate::metrics::Metrics;
    use crate::tap::Tap;
    use crate::watch::Clients;

    fn events(settings: WatchSettings, said: &[(Level, &'static str, &str)]) -> Vec<(&'static str, String)> {
        let metrics = Arc::new(Metrics::new(1, Vocabulary::default(), WallTime(0), "1"));
        let watch = Watch::new(metrics, Arc::new(Tap::off()), settings);
        for (level, kind, text) in said {
            watch.said(&Said::new((*level, kind, "x"), WallTime(1), text, 0));
        }
        let events = watch.events();
        events.iter().rev().map(|event| (event.kind, event.text.clone())).collect()
    }

    #[test]
    fn a_message_is_an_event_of_its_kind_unless_it_is_news() {
        let said = [
            (Level::Info, "disk-back", "a"),
            (Level::Warning, "files-absent", "b"),
            (Level::Info, "purge", "c"),
            (Level::Warning, "purge-not-held", "d"),
            (Level::Warning, "connect", "e"),
            (Level::Error, "panic", "f"),
            (Level::Info, "redis", "g"),
        ];
        let expected = [
            ("disk", "a"),
            ("disk", "b"),
            ("purge", "c"),
            ("purge", "d"),
            ("message", "e"),
            ("message", "f"),
        ];
        assert_eq!(
            events(WatchSettings::default(), &said),
            expected.map(|(kind, text)| (kind, text.to_owned()))
        );
    }

    #[test]
    fn a_message_shows_what_requests_show() {
        let text = "purge 7-1 by 192.0.2.9 (api, admin): hard, url http://a/?token=x&b=1, tag t; 1 removed, said by 2001:db8::7: no";
        for (clients, shown, last) in [
            (Clients::Masked, "192.0.2.0/24", "2001:db8::/48"),
            (Clients::Full, "192.0.2.9", "2001:db8::7"),
            (Clients::Off, "a client", "a client"),
        ] {
            let settings = WatchSettings { clients, ..WatchSettings::default() };
            let expected = format!(
                "purge 7-1 by {shown} (api, admin): hard, url http://a/?token=***&b=1, tag t; 1 removed, said by {last}: no"
            );
            assert_eq!(events(settings, &[(Level::Info, "purge", text)]), [("purge", expected)]);
        }
    }
}
