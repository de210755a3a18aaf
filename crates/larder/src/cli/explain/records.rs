//! What an explanation says of responses that larders share through Redis, as rows of its text.
//!
//! In: the record for the request in each store that shares. Out: a part of its own: where the record lies, what it is, why it is not used,
//! who fetches it, and the lease of this larder.

use larder_proxy::explain::{
    ExplainedRecord, Explanation, FleetPlace, RecordFetch, RecordServer, RecordTold,
};

use super::columns::Columns;
use super::phrases::{cited, span};
use crate::cli::table::counted;

/// The step *Shared by larders*.
pub(super) fn records(out: &mut Columns, of: &Explanation) {
    let records = &of.stored.records;
    if records.is_empty() {
        return;
    }
    out.part("Shared by larders");
    for record in records {
        told(out, record);
    }
}

fn told(out: &mut Columns, of: &ExplainedRecord) {
    out.row("store", &of.store);
    out.row("  name", &of.name);
    match &of.server {
        Some(server) => of_server(out, server),
        None => out.row("  lies at", "no node of the cluster is known to have it"),
    }
    if let Some(record) = &of.record {
        of_record(out, record);
    }
    match &of.unused {
        Some(why) => out.row("  not used", &format!("{}: {}", why.token, cited(why))),
        None => out.row("  used", "by a request for which memory has nothing fresh"),
    }
    out.row("  fetch", &fetch(&of.fetch));
    if let Some(place) = &of.fleet {
        out.row("  lease", &lease(place));
    }
}

fn of_server(out: &mut Columns, of: &RecordServer) {
    let slot = of.slot.map_or_else(String::new, |slot| format!(", slot {slot}"));
    out.row("  lies at", &format!("{}{slot}", of.server));
    let breaker = match of.probe_seconds {
        None => format!("breaker {}", of.breaker),
        Some(seconds) => format!("breaker {}, the next probe is sent in {}", of.breaker, span(seconds)),
    };
    let connections = counted(of.connections as u64, "connection", "connections");
    out.row("  link", &format!("{connections} of this larder; {breaker}"));
}

fn of_record(out: &mut Columns, of: &RecordTold) {
    let status = of.status.map_or_else(String::new, |status| format!("{status}, "));
    let pieces = match of.pieces {
        0 => String::new(),
        pieces => format!(" in {}", counted(pieces as u64, "piece", "pieces")),
    };
    let age = of.age_seconds.map_or_else(String::new, |age| format!(", {} old", span(age)));
    let bytes = counted(of.body_bytes, "byte", "bytes");
    out.row("  record", &format!("{status}{bytes}{pieces}{age}; fetched by {}", of.writer));
    out.row("  position", &format!("{} of log {}", of.position, of.epoch));
    if let Some(names) = &of.varies_by {
        out.row("  varies by", names);
    }
}

fn fetch(of: &RecordFetch) -> String {
    let member = match (&of.member, of.here) {
        (_, true) => ": this larder".to_owned(),
        (Some(member), false) => format!(": {member}"),
        (None, false) => String::new(),
    };
    format!("{}{member}. {}", of.state.token, cited(&of.state))
}

fn lease(of: &FleetPlace) -> String {
    let left = match of.lease_seconds {
        Some(left) if left <= 0.0 => "none".to_owned(),
        Some(left) => format!("{} without a renewal", span(left)),
        None => "no end".to_owned(),
    };
    match (&of.epoch, of.position) {
        (Some(epoch), Some(position)) => {
            format!("{left}; {} is at {position} of log {epoch}", of.member)
        }
        _ => format!("{left}; {} has read no log yet", of.member),
    }
}

#[cfg(test)]
mod tests {
    use larder_proxy::explain::Reason;

    use super::*;
    use crate::cli::explain::columns::WIDTH;

    fn reason(token: &str, sentence: &str) -> Reason {
        Reason { token: token.to_owned(), sentence: sentence.to_owned(), section: String::new() }
    }

    #[test]
    fn a_record_is_told_with_its_place_and_why_it_is_not_used() {
        let mut out = Columns::new(WIDTH);
        let record = ExplainedRecord {
            store: "main".to_owned(),
            name: "larder:1:main:r:{ab}".to_owned(),
            server: Some(RecordServer {
                server: "redis 127.0.0.1:7000".to_owned(),
                slot: Some(866),
                connections: 1,
                breaker: "open".to_owned(),
                probe_seconds: Some(2.0),
            }),
            record: Some(RecordTold {
                writer: "web-2".to_owned(),
                epoch: "0a".to_owned(),
                position: 5,
                age_seconds: Some(11.0),
                status: Some(200),
                body_bytes: 16,
                pieces: 2,
                varies_by: Some("accept-language".to_owned()),
            }),
            unused: Some(reason("below-floor", "It is old.")),
            fetch: RecordFetch {
                state: reason("held", "A larder."),
                member: Some("web-3".to_owned()),
                here: false,
            },
            fleet: Some(FleetPlace {
                member: "web-1".to_owned(),
                epoch: Some("0a".to_owned()),
                position: Some(7),
                lease_seconds: Some(0.0),
            }),
        };
        told(&mut out, &record);
        let bare = ExplainedRecord { server: None, record: None, unused: None, fleet: None, ..record };
        told(&mut out, &bare);
        let text = out.finish();
        for part in [
            "redis 127.0.0.1:7000, slot 866",
            "1 connection of this larder; breaker open, the next probe is sent in 2 s",
            "200, 16 bytes in 2 pieces, 11 s old; fetched by web-2",
            "5 of log 0a",
            "accept-language",
            "below-floor: It is old.",
            "held: web-3. A larder.",
            "none; web-1 is at 7 of log 0a",
            "no node of the cluster is known to have it",
            "by a request for which memory has nothing fresh",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }
}
