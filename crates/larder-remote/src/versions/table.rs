//! Which versions are known, and which were.
//!
//! In: what reads have brought, and which keys have changed. Out: the text of a version as long as it is known; and the last text that it
//! had. A key counts its changes. A read notes the count before it is sent, and what it brings is known for as long as the count is
//! the same. So a change that is told meanwhile makes it unknown, be it before or after the reply.
//! Bounded: beyond [`FIELDS_MAX`] those go that were not used for longest. What does not exist is not noted, so no request can fill it.
//! Deliberately absent: a clock, and whether the server can still tell of changes.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::bounds::{FIELDS_MAX, SHARDS};
use super::name::VersionName;
use super::version::Version;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, RwLock};

/// No count of changes: it is known to nobody.
const NEVER: u64 = u64::MAX;

/// By the bytes of names.
type Shard = HashMap<Box<[u8]>, Noted, RandomState>;

/// See the head of the file.
pub(super) struct Table {
    shards: [RwLock<Shard>; SHARDS],
    /// By their bytes: all keys that something was read of.
    keys: Mutex<HashMap<Box<[u8]>, Arc<Key>, RandomState>>,
    hasher: RandomState,
    /// The most of a shard.
    room: usize,
}

/// A key of the server.
#[derive(Debug)]
pub(super) struct Key {
    bytes: Box<[u8]>,
    changes: AtomicU64,
}

impl Key {
    /// How often it has changed, as far as was told.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

struct Noted {
    key: Arc<Key>,
    /// The changes of the key before it was read.
    seen: u64,
    version: Version,
    /// It was not there since: what comes next is another time, be it the same text.
    is_gone: bool,
    /// When it was used last.
    used: AtomicU32,
}

impl Noted {
    fn is_known(&self) -> bool {
        self.seen == self.key.changes()
    }
}

/// What noting a version has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entered {
    pub(super) version: Version,
    /// The higher number that it was before.
    pub(super) went_back_from: Option<Arc<str>>,
}

impl Table {
    pub(super) fn new() -> Self {
        Self::with_room(FIELDS_MAX)
    }

    fn with_room(room: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            keys: Mutex::default(),
            hasher: RandomState::default(),
            room: (room / SHARDS).max(1),
        }
    }

    fn shard(&self, name: &VersionName) -> &RwLock<Shard> {
        let hash = self.hasher.hash_one(name.bytes());
        // In bounds: there are 16.
        &self.shards[(hash >> 60) as usize % SHARDS]
    }

    /// Hands the version to `use_it`, where it is known.
    pub(super) fn known<T>(
        &self,
        name: &VersionName,
        now: u32,
        use_it: impl FnOnce(&Version) -> T,
    ) -> Option<T> {
        let shard = self.shard(name).read();
        let noted = shard.get(name.bytes()).filter(|noted| noted.is_known())?;
        // Mostly read, so that workers do not take the line from each other.
        if noted.used.load(Ordering::Relaxed) != now {
            noted.used.store(now, Ordering::Relaxed);
        }
        Some(use_it(&noted.version))
    }

    /// What it was last here, known or not.
    pub(super) fn last(&self, name: &VersionName) -> Option<Version> {
        self.shard(name).read().get(name.bytes()).map(|noted| noted.version.clone())
    }

    /// The key of a name that is about to be read.
    pub(super) fn key(&self, name: &VersionName) -> Arc<Key> {
        let mut keys = self.keys.lock();
        if let Some(key) = keys.get(name.key()) {
            return Arc::clone(key);
        }
        let key = Arc::new(Key { bytes: name.key().into(), changes: AtomicU64::new(0) });
        keys.insert(key.bytes.clone(), Arc::clone(&key));
        key
    }

    /// A read has brought this; it was sent when the key had changed so often. A number that goes back, and a version that was not there
    /// before, begin another time, called `next_time`. `used` is now, where a request wants it.
    pub(super) fn enter(
        &self,
        name: &VersionName,
        (key, seen): (&Arc<Key>, u64),
        text: &str,
        (used, next_time): (Option<u32>, u64),
    ) -> Entered {
        let mut shard = self.shard(name).write();
        if let Some(noted) = shard.get_mut(name.bytes()) {
            let version = &mut noted.version;
            let mut went_back_from = None;
            let is_less = is_less(text, &version.text);
            if is_less || noted.is_gone {
                version.time = next_time.max(version.time + 1);
                went_back_from = is_less.then(|| Arc::clone(&version.text));
            }
            noted.is_gone = false;
            if let Some(used) = used {
                noted.used.store(used, Ordering::Relaxed);
            }
            if *version.text != *text {
                version.text = text.into();
            }
            let version = version.clone();
            (noted.key, noted.seen) = (Arc::clone(key), seen);
            return Entered { version, went_back_from };
        }
        if shard.len() >= self.room {
            make_room(&mut shard);
        }
        let version = Version { text: text.into(), time: 0 };
        let used = AtomicU32::new(used.unwrap_or_default());
        let noted = Noted { key: Arc::clone(key), seen, version: version.clone(), is_gone: false, used };
        shard.insert(name.bytes().into(), noted);
        Entered { version, went_back_from: None }
    }

    /// A read has found none. What it was before stays as the last one.
    pub(super) fn absent(&self, name: &VersionName) {
        if let Some(noted) = self.shard(name).write().get_mut(name.bytes()) {
            (noted.seen, noted.is_gone) = (NEVER, true);
        }
    }

    /// What was read will not be told of when it changes.
    pub(super) fn is_not_told(&self, name: &VersionName) {
        if let Some(noted) = self.shard(name).write().get_mut(name.bytes()) {
            noted.seen = NEVER;
        }
    }

    /// The server has lost everything.
    pub(super) fn flushed(&self) {
        self.changed(None);
        for shard in &self.shards {
            shard.write().values_mut().for_each(|noted| noted.is_gone = true);
        }
    }

    /// A key has changed, or any may have.
    pub(super) fn changed(&self, key: Option<&[u8]>) {
        let keys = self.keys.lock();
        let add = |key: &Arc<Key>| {
            key.changes.fetch_add(1, Ordering::AcqRel);
        };
        match key {
            Some(key) => keys.get(key).into_iter().for_each(add),
            None => keys.values().for_each(add),
        }
    }

    /// Lets go of keys of which nothing is noted.
    pub(super) fn tidy(&self) {
        self.keys.lock().retain(|_, key| Arc::strong_count(key) > 1);
    }

    /// Versions that were known, are not any more, and were used since then: `max` at most.
    pub(super) fn forgotten(&self, used_since: u32, max: usize) -> Vec<VersionName> {
        let mut names = Vec::new();
        for shard in &self.shards {
            let shard = shard.read();
            let is_it = |noted: &Noted| {
                noted.seen != NEVER && !noted.is_known() && noted.used.load(Ordering::Relaxed) >= used_since
            };
            let forgotten = shard.iter().filter(|(_, noted)| is_it(noted));
            names.extend(forgotten.take(max - names.len()).map(|(bytes, _)| VersionName::of_bytes(bytes)));
            if names.len() == max {
                break;
            }
        }
        names
    }

    /// Keys of which something is known that was used since then: `max` at most.
    pub(super) fn used_keys(&self, used_since: u32, max: usize) -> Vec<Box<[u8]>> {
        let mut keys: HashMap<*const Key, Box<[u8]>> = HashMap::new();
        for shard in &self.shards {
            for noted in shard.read().values() {
                if keys.len() == max {
                    break;
                }
                if noted.used.load(Ordering::Relaxed) >= used_since {
                    keys.entry(Arc::as_ptr(&noted.key)).or_insert_with(|| noted.key.bytes.clone());
                }
            }
        }
        keys.into_values().collect()
    }

    /// How many are known.
    pub(super) fn count(&self) -> usize {
        let known = |shard: &RwLock<HashMap<_, Noted, _>>| {
            shard.read().values().filter(|noted| noted.is_known()).count()
        };
        self.shards.iter().map(known).sum()
    }
}

/// Takes out the eighth that was not used for longest.
fn make_room(shard: &mut Shard) {
    let mut used: Vec<u32> = shard.values().map(|noted| noted.used.load(Ordering::Relaxed)).collect();
    let go = (used.len() / 8).max(1);
    let (_, oldest, _) = used.select_nth_unstable(go - 1);
    let (oldest, mut left) = (*oldest, go);
    shard.retain(|_, noted| {
        let goes = left > 0 && noted.used.load(Ordering::Relaxed) <= oldest;
        left -= usize::from(goes);
        !goes
    });
}

/// Whether both are numbers, and the new one is less.
fn is_less(new: &str, old: &str) -> bool {
    match (new.parse::<i64>(), old.parse::<i64>()) {
        (Ok(new), Ok(old)) => new < old,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn name(field: &str) -> VersionName {
        VersionName::new(b"versions", Some(field.as_bytes())).unwrap()
    }

    fn text(table: &Table, name: &VersionName, now: u32) -> Option<String> {
        table.known(name, now, |version| version.text.to_string())
    }

    /// A read whose reply is this.
    fn read(table: &Table, name: &VersionName, reply: &str, now: u32) -> Entered {
        let key = table.key(name);
        let seen = key.changes();
        table.enter(name, (&key, seen), reply, (Some(now), 1000))
    }

    fn last(table: &Table, name: &VersionName) -> Option<String> {
        table.last(name).map(|version| version.text.to_string())
    }

    #[test]
    fn a_change_that_is_told_between_a_read_and_its_reply_makes_it_unknown() {
        let (table, a) = (Table::new(), name("/a"));
        assert_eq!(text(&table, &a, 0), None);
        read(&table, &a, "1", 0);
        assert_eq!(text(&table, &a, 0).as_deref(), Some("1"));
        let key = table.key(&a);
        let seen = key.changes();
        table.changed(Some(b"versions"));
        assert_eq!(text(&table, &a, 0), None);
        table.enter(&a, (&key, seen), "2", (Some(0), 1000));
        assert_eq!((text(&table, &a, 0), last(&table, &a).as_deref()), (None, Some("2")));
        read(&table, &a, "2", 0);
        assert_eq!(text(&table, &a, 0).as_deref(), Some("2"));
        table.changed(Some(b"another"));
        assert_eq!(text(&table, &a, 0).as_deref(), Some("2"));
        table.changed(None);
        assert_eq!(text(&table, &a, 0), None);
    }

    #[test]
    fn what_is_not_there_is_not_known_and_had_a_text_before() {
        let (table, a) = (Table::new(), name("/a"));
        read(&table, &a, "7", 0);
        table.absent(&a);
        assert_eq!((text(&table, &a, 0), last(&table, &a).as_deref()), (None, Some("7")));
        assert_eq!(table.forgotten(0, 10), []);
        table.absent(&name("/b"));
        assert_eq!(last(&table, &name("/b")), None);
    }

    #[test]
    fn a_number_that_goes_back_is_seen_and_other_texts_have_no_order() {
        let check = |from: &str, to: &str, went_back: bool| {
            let (table, a) = (Table::new(), name("/a"));
            read(&table, &a, from, 0);
            let version = Version { text: to.into(), time: if went_back { 1000 } else { 0 } };
            let went_back_from = went_back.then(|| from.into());
            assert_eq!(
                read(&table, &a, to, 0),
                Entered { version: version.clone(), went_back_from },
                "{from} {to}"
            );
            assert_eq!(table.known(&a, 0, Version::clone), Some(version));
        };
        let (table, a) = (Table::new(), name("/b"));
        for (reply, time) in [("5", 0), ("4", 1000), ("5", 1000), ("0", 1001), ("1", 1001)] {
            assert_eq!(read(&table, &a, reply, 0).version, Version { text: reply.into(), time });
        }
        check("2", "1", true);
        check("10", "9", true);
        check("9", "10", false);
        check("-1", "-2", true);
        check("3", "3", false);
        check("b", "a", false);
        check("2", "NaN", false);
        check("99999999999999999999", "1", false);
    }

    #[test]
    fn what_comes_back_is_of_another_time_though_it_reads_the_same() {
        let (table, a, b) = (Table::new(), name("/a"), name("/b"));
        let time = |name: &VersionName, reply: &str| read(&table, name, reply, 0).version.time;
        assert_eq!((time(&a, "1"), time(&b, "1")), (0, 0));
        table.absent(&a);
        assert_eq!((time(&a, "1"), time(&a, "1"), time(&b, "1")), (1000, 1000, 0));
        table.flushed();
        assert_eq!((text(&table, &a, 0), text(&table, &b, 0)), (None, None));
        assert_eq!((time(&a, "5"), time(&b, "1")), (1001, 1000));
        table.is_not_told(&b);
        assert_eq!((text(&table, &b, 0), time(&b, "1")), (None, 1000));
    }

    #[test]
    fn those_that_were_used_lately_are_read_again_and_their_keys_touched() {
        let table = Table::new();
        for (field, used) in [("/a", 100), ("/b", 90), ("/c", 80)] {
            read(&table, &name(field), "1", used);
        }
        let other = VersionName::new(b"ver:/x", None).unwrap();
        read(&table, &other, "1", 100);
        assert_eq!((table.forgotten(0, 10), table.count()), (vec![], 4));
        text(&table, &name("/c"), 100);
        table.changed(Some(b"versions"));
        let mut forgotten: Vec<String> =
            table.forgotten(95, 10).iter().map(|name| format!("{name}")).collect();
        forgotten.sort();
        assert_eq!((forgotten, table.count()), (vec!["versions /a".into(), "versions /c".into()], 1));
        assert_eq!(table.forgotten(0, 2).len(), 2);
        let mut keys = table.used_keys(95, 10);
        keys.sort();
        assert_eq!(keys, [b"ver:/x"[..].into(), b"versions"[..].into()]);
        assert_eq!(table.used_keys(101, 10), Vec::<Box<[u8]>>::new());
        assert_eq!(table.used_keys(0, 1).len(), 1);
    }

    #[test]
    fn beyond_the_room_those_go_that_were_not_used_for_longest() {
        let table = Table::with_room(16 * 16);
        for number in 0..4096_u32 {
            let key = VersionName::new(format!("v{number}").as_bytes(), None).unwrap();
            read(&table, &key, "1", number);
        }
        let count = table.count();
        assert!((16 * 14..=16 * 16).contains(&count), "{count}");
        let newest = VersionName::new(b"v4095", None).unwrap();
        let oldest = VersionName::new(b"v0", None).unwrap();
        assert_eq!((text(&table, &newest, 9).as_deref(), last(&table, &oldest)), (Some("1"), None));
        assert!(table.keys.lock().len() > count);
        table.tidy();
        assert_eq!(table.keys.lock().len(), count);
    }
}
