//! What became of URLs that are not stored any more, or never were: the reason why a request found nothing.
//!
//! In: the hash of a URL, and what happened to it: a response was evicted, purged, invalidated, or was not stored. Out: the last that
//! happened. One table for all stores of a process, of a fixed size. Each URL has one place, which it shares with others: the
//! newest wins, and 36 bits of the hash tell them apart. A word is written with one store and read with one load, so nothing waits.
//! Memory is taken by the page, when something is first noted there.
//! Deliberately absent: variants. A URL of which one variant has gone and another is there is not looked for here.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Places: 2 MiB where all are used.
const PLACES: usize = 1 << 18;
/// Of these, a page of memory.
const PAGE: usize = 512;
const PLACE_BITS: u32 = PLACES.trailing_zeros();

/// A word has the tag, the fate, and the minute, from the highest bit on.
const MINUTE_BITS: u32 = 20;
const FATE_BITS: u32 = 8;
const TAG_BITS: u32 = 64 - FATE_BITS - MINUTE_BITS;
const MINUTES: u64 = (1 << MINUTE_BITS) - 1;

/// What became of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A response was stored.
    Stored,
    /// A response left memory for want of room, or its body went with what it lay in on a disk.
    Evicted,
    /// A response left memory because it was not asked for.
    Idle,
    /// A purge took it out.
    Purged,
    /// An unsafe request took it out.
    Invalidated,
    /// A response was not stored, for a reason of this number, which is below 250.
    NotStored(u8),
}

impl Fate {
    const NOT_STORED: u8 = 6;

    /// Never 0, so that an empty word is none.
    fn code(self) -> u8 {
        match self {
            Self::Stored => 1,
            Self::Evicted => 2,
            Self::Idle => 3,
            Self::Purged => 4,
            Self::Invalidated => 5,
            Self::NotStored(reason) => Self::NOT_STORED.saturating_add(reason),
        }
    }

    fn of(code: u8) -> Option<Self> {
        Some(match code {
            0 => return None,
            1 => Self::Stored,
            2 => Self::Evicted,
            3 => Self::Idle,
            4 => Self::Purged,
            5 => Self::Invalidated,
            other => Self::NotStored(other - Self::NOT_STORED),
        })
    }
}

/// What became of URLs lately. Shared by all stores of a process.
#[derive(Debug)]
pub struct Fates {
    pages: Box<[OnceLock<Box<[AtomicU64; PAGE]>>]>,
    /// Of the last time that was told.
    minute: AtomicU32,
}

impl Default for Fates {
    fn default() -> Self {
        Self { pages: (0..PLACES / PAGE).map(|_| OnceLock::new()).collect(), minute: AtomicU32::new(0) }
    }
}

impl Fates {
    /// The page of a URL, and its place there.
    fn place(&self, url: u64) -> (Option<&OnceLock<Box<[AtomicU64; PAGE]>>>, usize) {
        let place = url as usize % PLACES;
        (self.pages.get(place / PAGE), place % PAGE)
    }

    fn tag(url: u64) -> u64 {
        (url >> PLACE_BITS) & ((1 << TAG_BITS) - 1)
    }

    /// Tells the time, which is monotonic, for what is noted from now on: stores have no clock. To be called every second.
    pub fn tell_time(&self, now: Duration) {
        let minute = ((now.as_secs() / 60) & MINUTES) as u32;
        // All workers read this line; it is written once a minute.
        if self.minute.load(Ordering::Relaxed) != minute {
            self.minute.store(minute, Ordering::Relaxed);
        }
    }

    /// Notes what has become of the URL with this hash, at the time that was told last.
    pub fn note(&self, url: u64, fate: Fate) {
        let minute = u64::from(self.minute.load(Ordering::Relaxed));
        let word =
            Self::tag(url) << (FATE_BITS + MINUTE_BITS) | u64::from(fate.code()) << MINUTE_BITS | minute;
        let (page, place) = self.place(url);
        let page = page.map(|page| page.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PAGE])));
        if let Some(place) = page.and_then(|page| page.get(place)) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// What has become of it, and how long ago, to the minute; after two years that begins again. `None` where nothing is known: it is new, or others have taken its place.
    pub fn of(&self, url: u64, now: Duration) -> Option<(Fate, Duration)> {
        let (page, place) = self.place(url);
        let word = page?.get()?.get(place)?.load(Ordering::Relaxed);
        let fate = Fate::of((word >> MINUTE_BITS) as u8)?;
        let minutes = (now.as_secs() / 60).wrapping_sub(word & MINUTES) & MINUTES;
        (word >> (FATE_BITS + MINUTE_BITS) == Self::tag(url))
            .then_some((fate, Duration::from_secs(minutes * 60)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Fate; 8] = [
        Fate::Stored,
        Fate::Evicted,
        Fate::Idle,
        Fate::Purged,
        Fate::Invalidated,
        Fate::NotStored(0),
        Fate::NotStored(7),
        Fate::NotStored(249),
    ];

    #[test]
    fn the_last_that_happened_to_a_url_is_known_with_its_minute() {
        let (fates, url) = (Fates::default(), 0xfedc_ba98_7654_3210);
        assert_eq!(fates.of(url, Duration::ZERO), None);
        for (minute, fate) in ALL.into_iter().enumerate() {
            fates.tell_time(Duration::from_secs(minute as u64 * 60 + 59));
            fates.note(url, fate);
            let now = Duration::from_secs(minute as u64 * 60 + 600);
            assert_eq!(fates.of(url, now), Some((fate, Duration::from_secs(600))));
        }
    }

    #[test]
    fn the_time_is_that_of_a_clock_that_began_long_ago_and_goes_round() {
        let (fates, url) = (Fates::default(), 5);
        // Minutes since 1970, and the last before they begin again.
        for minute in [29_930_195_u64, (29 << MINUTE_BITS) - 1] {
            fates.tell_time(Duration::from_secs(minute * 60));
            fates.note(url, Fate::Purged);
            let now = Duration::from_secs((minute + 3) * 60 + 1);
            assert_eq!(fates.of(url, now), Some((Fate::Purged, Duration::from_secs(180))));
        }
    }

    #[test]
    fn urls_that_share_a_place_are_told_apart_and_the_newest_wins() {
        let (fates, url) = (Fates::default(), 0x1234_5678_9abc_def0);
        let other = url ^ (1 << 40);
        fates.note(url, Fate::Evicted);
        assert_eq!(fates.of(other, Duration::ZERO), None);
        fates.note(other, Fate::Purged);
        assert_eq!(fates.of(url, Duration::ZERO), None);
        assert_eq!(fates.of(other, Duration::ZERO), Some((Fate::Purged, Duration::ZERO)));
    }
}
