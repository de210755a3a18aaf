//! The newest of what happened to larder itself.
//!
//! In: events. Out: the same, newest first. Purges, messages and wrong tokens can be caused by clients, and in any number. They have a ring of
//! their own, so that no flood of them takes a reload, a disk or a server from sight.

use std::sync::Arc;

use super::event::Event;
use super::ring::Ring;

/// So many events of each ring are remembered.
const EVENTS_MAX: usize = 128;
/// The memory that those of each ring may take.
const RING_BYTES_MAX: usize = 256 * 1024;
/// The memory that all of them may take.
pub(super) const EVENTS_BYTES_MAX: usize = 2 * RING_BYTES_MAX;

/// An event with its place among all of them.
#[derive(Debug)]
struct Numbered {
    number: u64,
    event: Arc<Event>,
}

/// Remembered events.
#[derive(Debug)]
pub(super) struct Events {
    own: Ring<Numbered>,
    of_clients: Ring<Numbered>,
    count: u64,
}

impl Default for Events {
    fn default() -> Self {
        let ring = || Ring::new(EVENTS_MAX, RING_BYTES_MAX);
        Self { own: ring(), of_clients: ring(), count: 0 }
    }
}

/// Whether clients can cause events of this kind, and what they say may be of a client.
fn is_of_clients(kind: &str) -> bool {
    matches!(kind, "purge" | "message" | "tokens")
}

impl Events {
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.count += 1;
        let bytes = event.bytes();
        let ring = if is_of_clients(event.kind) { &mut self.of_clients } else { &mut self.own };
        ring.push(Arc::new(Numbered { number: self.count, event }), bytes);
    }

    pub(super) fn newest_first(&self) -> Vec<Arc<Event>> {
        let mut all = self.own.newest_first();
        all.extend(self.of_clients.newest_first());
        all.sort_unstable_by_key(|numbered| std::cmp::Reverse(numbered.number));
        all.iter().map(|numbered| Arc::clone(&numbered.event)).collect()
    }

    /// Forgets what may tell of clients.
    pub(super) fn forget_clients(&mut self) {
        self.of_clients.clear();
    }

    pub(super) fn bytes(&self) -> usize {
        self.own.bytes() + self.of_clients.bytes()
    }
}

#[cfg(test)]
mod tests {
    use larder_http::time::WallTime;

    use super::*;

    #[test]
    fn a_flood_of_what_clients_cause_leaves_the_rest() {
        let mut events = Events::default();
        let mut tell = |kind, text: &str| {
            let text = text.to_owned();
            events.push(Arc::new(Event { at: WallTime(0), kind, subject: String::new(), text }));
        };
        tell("reload", "first");
        (0..1000).for_each(|number| tell("purge", &number.to_string()));
        tell("disk", "second");
        tell("message", "third");
        let texts: Vec<_> = events.newest_first().iter().map(|event| event.text.clone()).collect();
        assert_eq!((&*texts[0], &*texts[1], &*texts[2]), ("third", "second", "999"));
        assert_eq!((texts.len(), &**texts.last().unwrap()), (2 + EVENTS_MAX, "first"));
        assert!(events.bytes() <= EVENTS_BYTES_MAX);
        events.forget_clients();
        let kinds: Vec<_> = events.newest_first().iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["disk", "reload"]);
    }
}
