//! What becomes of stored responses by each request: asked for one after the other, while the origin counts.
//!
//! In: a running cache, its origin, the list of what is stored, and requests. Out: for each request the status of its answer, and what
//! became of each response. Asking for what is gone stores it again, so each request finds the same.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, ensure};

use super::client::Client;
use super::origin::{Asked, Origin};
use super::requests::PurgeRequest;
use super::stored::Stored;

/// Who may purge by address in every configuration, and who may not.
const PURGER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ANYONE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// What became of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// It is a hit.
    Kept,
    /// It is stored, and confirmed before it is used.
    Stale,
    /// It is not there any more.
    Gone,
    /// The request itself has fetched it, or had it confirmed, and it is a hit since.
    Renewed,
}

impl Fate {
    /// Its word in the list of differences.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Stale => "stale",
            Self::Gone => "gone",
            Self::Renewed => "renewed",
        }
    }
}

/// What a request did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) title: String,
    /// Whether its sender may purge.
    is_allowed: bool,
    pub(crate) status: u16,
    /// In the order of the list.
    pub(crate) fates: Vec<Fate>,
}

impl Outcome {
    /// Whether it was let in and has changed nothing, so that it compares nothing.
    pub(crate) fn is_vacuous(&self) -> bool {
        let is_let_in = self.is_allowed && (200..300).contains(&self.status);
        is_let_in && self.fates.iter().all(|fate| *fate == Fate::Kept)
    }
}

/// Sends each request, as one who may purge and as one who may not.
///
/// # Errors
/// A connection breaks off, or something is not stored that is to be stored.
pub(crate) fn observe(
    cache: SocketAddr,
    origin: &Origin,
    stored: &[Stored],
    requests: &[PurgeRequest],
) -> Result<Vec<Outcome>> {
    let mut asking = Client::connect(cache, ANYONE)?;
    probe(&mut asking, origin, stored, &snapshot(origin, stored))?;
    let again = probe(&mut asking, origin, stored, &snapshot(origin, stored))?;
    for (stored, fate) in stored.iter().zip(again) {
        ensure!(fate == Fate::Kept, "{} is not stored: {fate:?}", stored.name());
    }
    let mut outcomes = Vec::new();
    for request in requests {
        for (from, request) in [(PURGER, request.clone()), (ANYONE, request.with_wrong_secret())] {
            let before = snapshot(origin, stored);
            let status = Client::connect(cache, from)?.send(request.bytes());
            let status = status.with_context(|| request.title.clone())?;
            let fates = probe(&mut asking, origin, stored, &before).with_context(|| request.title.clone())?;
            outcomes.push(Outcome { title: request.title, is_allowed: from == PURGER, status, fates });
        }
    }
    Ok(outcomes)
}

fn snapshot(origin: &Origin, stored: &[Stored]) -> Vec<Asked> {
    (0..stored.len()).map(|place| origin.asked(place)).collect()
}

/// Asks for each. `before` is what the origin had counted before the request whose effect is of interest.
fn probe(asking: &mut Client, origin: &Origin, stored: &[Stored], before: &[Asked]) -> Result<Vec<Fate>> {
    let mut fates = Vec::with_capacity(stored.len());
    for (place, (stored, before)) in stored.iter().zip(before).enumerate() {
        let meanwhile = origin.asked(place);
        let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", stored.target, stored.host);
        let status = asking.send(request.as_bytes()).with_context(|| stored.name())?;
        ensure!(status == 200, "{}: {status}", stored.name());
        let after = origin.asked(place);
        fates.push(if after.whole > meanwhile.whole {
            Fate::Gone
        } else if after.conditional > meanwhile.conditional {
            Fate::Stale
        } else if meanwhile != *before {
            Fate::Renewed
        } else {
            Fate::Kept
        });
    }
    Ok(fates)
}
