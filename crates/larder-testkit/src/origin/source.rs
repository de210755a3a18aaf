//! Where an origin's answers come from: scripts for each path, or a function of the test.
//!
//! In: the head of a request. Out: the answer that is due, and the number of the request. Scripts go on from answer to
//! answer, so that asking is also a step forward.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::log::Seen;
use super::place::Place;
use super::script::{Answer, PathScript};

/// Chooses the answer for the head of a request.
type Choose = dyn Fn(&Seen) -> Answer + Send + Sync;

/// The answers of an origin.
pub(super) enum Source {
    /// By path; how far each script has got.
    Scripts(Vec<PathScript>, Mutex<Vec<Place>>),
    /// By the test; how many it has chosen.
    Chosen(Box<Choose>, AtomicU64),
}

impl Source {
    pub(super) fn scripts(scripts: Vec<PathScript>) -> Self {
        let places = Mutex::new(vec![Place::default(); scripts.len()]);
        Self::Scripts(scripts, places)
    }

    pub(super) fn chosen(choose: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::Chosen(Box::new(choose), AtomicU64::new(0))
    }

    /// Whether requests for `target` are only counted.
    pub(super) fn is_aside(&self, target: &str) -> bool {
        match self {
            Self::Scripts(scripts, _) => {
                scripts.iter().find(|script| script.covers(target)).is_some_and(|script| script.aside)
            }
            Self::Chosen(..) => false,
        }
    }

    /// The answer that is due, and the number of the request for its path (or for all paths, where the test chooses).
    pub(super) fn due(&self, seen: &Seen) -> Option<(Answer, u64)> {
        match self {
            Self::Scripts(scripts, places) => {
                let (at, script) =
                    scripts.iter().enumerate().find(|(_, script)| script.covers(&seen.target))?;
                let mut places = places.lock();
                let place = places.get_mut(at)?;
                place.requests += 1;
                let requests = place.requests;
                let answer = script.choose(seen, &mut place.pools)?;
                Some((answer.clone(), requests))
            }
            Self::Chosen(choose, count) => {
                let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                Some((choose(seen), number))
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scripts(scripts, places) => f.debug_tuple("Scripts").field(scripts).field(places).finish(),
            Self::Chosen(_, count) => f.debug_tuple("Chosen").field(count).finish(),
        }
    }
}
