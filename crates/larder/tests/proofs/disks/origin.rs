//! The origin of the catalogue: each resource in its present version, whole or in part; a POST makes the next one.
//!
//! In: a catalogue. Out: the testkit's origin, with bodies that derive from what was asked, and a count of its GETs. Large
//! bodies come with pauses, so that some are always on their way.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_testkit::origin::{self, Answer, BodyFraming, Seen};

use super::catalogue::{Catalogue, Resource};
use crate::support::{BOUND, answer_of};

/// A running origin; ends when it is dropped.
pub(crate) struct Origin {
    running: origin::Origin,
    pub(crate) catalogue: Arc<Catalogue>,
    gets: Arc<AtomicU64>,
}

impl Origin {
    /// All that it has is fresh for a day.
    pub(crate) fn start(catalogue: Catalogue) -> Self {
        Self::with(catalogue, answer)
    }

    /// Much of it is stale after a second, and the origin confirms what has not changed.
    pub(crate) fn with_short_lifetimes(catalogue: Catalogue) -> Self {
        Self::with(catalogue, short_lived)
    }

    fn with(catalogue: Catalogue, answer: fn(&Catalogue, Resource, &str) -> Answer) -> Self {
        let (catalogue, gets) = (Arc::new(catalogue), Arc::<AtomicU64>::default());
        let choose = {
            let (catalogue, gets) = (Arc::clone(&catalogue), Arc::clone(&gets));
            move |seen: &Seen| match (Resource::of(&seen.target), seen.method.as_str()) {
                (None, _) => Answer::new(404, &[], ""),
                (Some(resource), "POST") => {
                    let version = catalogue.change(resource);
                    Answer::new(200, &[&format!("ETag: \"v{version}\"")], "")
                }
                (Some(resource), _) => {
                    gets.fetch_add(1, Ordering::SeqCst);
                    answer(&catalogue, resource, seen.fields.first("x-flavour").unwrap_or_default())
                }
            }
        };
        let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { running: origin::Origin::answering(free_port, BOUND, choose).unwrap(), catalogue, gets }
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        self.running.url()
    }

    /// GETs so far.
    pub(crate) fn gets(&self) -> u64 {
        self.gets.load(Ordering::SeqCst)
    }
}

fn answer(catalogue: &Catalogue, resource: Resource, flavour: &str) -> Answer {
    let version = catalogue.version(resource);
    let tag = format!("ETag: {}", resource.etag(version, flavour));
    let names = resource.names();
    let mut fields = vec![tag.as_str(), "Cache-Control: max-age=86400"];
    fields.extend(names.iter().map(String::as_str));
    if resource.has_flavours() {
        fields.push("Vary: X-Flavour");
    }
    Answer {
        seed: Some(resource.seed(version, flavour)),
        ranges: true,
        framing: resource.is_chunked().then_some(BodyFraming::Chunked),
        piece_bytes: Some(64 * 1024),
        pause: Some("2ms".to_owned()),
        ..answer_of(&fields, resource.bytes)
    }
}

fn short_lived(catalogue: &Catalogue, resource: Resource, flavour: &str) -> Answer {
    let answer = answer(catalogue, resource, flavour);
    let is_lifetime = |line: &String| line.starts_with("Cache-Control");
    let lifetime = format!("Cache-Control: {}", resource.short_lifetime());
    let others = answer.fields.iter().filter(|line| !is_lifetime(line)).cloned();
    let fields = others.chain([lifetime]).collect();
    // So long that others come meanwhile, and purges.
    Answer { fields, conditional: true, delay: Some("2ms".to_owned()), ..answer }
}
