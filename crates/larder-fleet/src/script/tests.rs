//! The script on a real server beside the data structure that the model has for it: the same replies to the same calls.
#![allow(clippy::unwrap_used)]

use larder_testkit::dice::Dice;
use larder_testkit::redis::{RawRedis, RedisServer};

use super::*;
use crate::model::server::Server;

/// Entries that are kept, so that the log is cut.
const KEPT: u64 = 12;

type What = Vec<u8>;

/// Both servers, and members that stand anywhere.
struct Pair {
    _real: RedisServer,
    raw: RawRedis,
    keys: Keys,
    model: Server<What>,
    dice: Dice,
    seen: Vec<Row>,
    epochs: Vec<Epoch>,
    entries: Vec<Place>,
    copy: Option<Copy>,
}

/// What lay in both at some time.
struct Copy {
    hash: Option<Vec<u8>>,
    log: Option<Vec<u8>>,
    model: Server<What>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let real = RedisServer::start();
        Self {
            raw: real.raw(),
            _real: real,
            keys: Keys::new("larder"),
            model: Server { identity: 0, shared: None },
            dice: Dice::new(seed),
            seen: Vec::new(),
            epochs: vec![Epoch(9)],
            entries: vec![Place::default()],
            copy: None,
        }
    }

    fn one_of<T: Clone>(dice: &mut Dice, all: &[T]) -> T {
        all[dice.below(all.len() as u64) as usize].clone()
    }

    fn incarnation(&mut self) -> Incarnation {
        Incarnation(u128::from(self.dice.below(5)))
    }

    fn epoch(&mut self) -> Epoch {
        let known = if self.dice.percent(85) { self.epochs.len() - 1 } else { 0 };
        Self::one_of(&mut self.dice, &self.epochs[known..])
    }

    fn place(&mut self) -> Place {
        let newest = self.entries.len().saturating_sub(4);
        let known = if self.dice.percent(70) { newest } else { 0 };
        let place = Self::one_of(&mut self.dice, &self.entries[known..]);
        match self.dice.below(10) {
            0..=1 => Place { id: None, ..place },
            2 => Place { id: Some(EntryId(self.dice.name())), ..place },
            _ => place,
        }
    }

    fn call(&mut self) -> LogCall<What> {
        let (epoch, incarnation) = (self.epoch(), self.incarnation());
        match self.dice.below(12) {
            0..=2 => {
                let fresh = Epoch(self.dice.name());
                let called = ["web 1", "web-2", "web-3\n"][self.dice.below(3) as usize];
                let lease = self.dice.percent(70).then(|| Duration::from_millis(self.dice.below(10_000)));
                let from = self.dice.percent(50).then(|| (epoch, self.place()));
                LogCall::Attach { fresh, name: called.into(), incarnation, lease, from }
            }
            3..=4 => {
                LogCall::Renew { epoch, incarnation, applied: self.place(), settles: self.dice.percent(30) }
            }
            5..=7 => {
                let purges = (0..self.dice.below(4)).map(|_| {
                    let length = self.dice.below(40);
                    (EntryId(self.dice.name()), (0..length).map(|_| self.dice.below(256) as u8).collect())
                });
                let purges = purges.collect();
                LogCall::Append { epoch, incarnation, applied: self.place(), purges }
            }
            8..=9 => LogCall::Read { epoch, after: self.place().sequence },
            10 => {
                let beat = Self::one_of(&mut self.dice, &self.seen.clone()).beat;
                LogCall::Expire { epoch, incarnation, beat }
            }
            _ => LogCall::Leave { epoch, incarnation },
        }
    }

    fn happen(&mut self) {
        let Keys { hash, log } = self.keys.clone();
        match self.dice.below(60) {
            0 => {
                self.promote();
            }
            1 => {
                self.raw.ask(&[b"FLUSHALL"]);
                self.model.shared = None;
            }
            2 => {
                self.raw.ask(&[b"DEL", log.as_bytes()]);
                self.model.trim(0);
            }
            3..=5 => {
                self.copy = Some(Copy {
                    hash: self.raw.ask(&[b"DUMP", hash.as_bytes()]),
                    log: self.raw.ask(&[b"DUMP", log.as_bytes()]),
                    model: self.model.clone(),
                });
            }
            6 => self.put_back(),
            _ => {}
        }
    }

    /// The server becomes a replica of one that is not there, and a server of its own again.
    fn promote(&mut self) {
        self.raw.ask(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
        self.raw.ask(&[b"REPLICAOF", b"NO", b"ONE"]);
        self.model.identity += 1;
    }

    /// What lay there before lies there again, as after a start with an older snapshot.
    fn put_back(&mut self) {
        let Some(copy) = self.copy.take() else { return };
        self.raw.ask(&[b"FLUSHALL"]);
        for (key, dump) in [(self.keys.hash.clone(), copy.hash), (self.keys.log.clone(), copy.log)] {
            if let Some(dump) = dump {
                self.raw.ask(&[b"RESTORE", key.as_bytes(), b"0", &dump]);
            }
        }
        let identity = self.model.identity;
        self.model = Server { identity, ..copy.model };
        self.promote();
    }

    fn ask_both(&mut self, call: LogCall<What>) -> &'static str {
        let Keys { hash, log } = &self.keys;
        let mut command = words(["EVAL", SCRIPT, "2", hash, log]);
        command.extend(kept_to(&call, (KEPT, BYTES_MAX)));
        let command: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let said = self.raw.ask_list(&command).unwrap_or_else(|error| panic!("{call:?}: {error}"));
        let said: LogReply<What> = reply(&said).unwrap_or_else(|_| panic!("{call:?}: {said:?}"));
        let mut modelled = self.model.call(call.clone());
        self.model.trim(KEPT as usize);
        // The script cuts before it answers, and the floor of an answer is that of now.
        if let LogReply::Entries { entries, .. } = &mut modelled {
            entries.truncate(READ_MAX as usize);
        }
        assert_eq!(sorted(said.clone()), sorted(modelled), "{call:?}");
        self.learn(call, said)
    }

    fn learn(&mut self, call: LogCall<What>, said: LogReply<What>) -> &'static str {
        let rows = match &said {
            LogReply::Attached { rows, .. }
            | LogReply::Rows { rows, .. }
            | LogReply::Appended { rows, .. } => rows.clone(),
            _ => Vec::new(),
        };
        self.seen.extend(rows);
        match (call, said) {
            (_, LogReply::Attached { epoch, .. }) => {
                if self.epochs.last() != Some(&epoch) {
                    self.epochs.push(epoch);
                    self.entries.truncate(1);
                }
                "attached"
            }
            (LogCall::Append { purges, .. }, LogReply::Appended { first, .. }) => {
                let places =
                    (first..).zip(&purges).map(|(sequence, (id, _))| Place { sequence, id: Some(*id) });
                self.entries.extend(places);
                "appended"
            }
            (_, LogReply::Lost(Lost::Epoch)) => "epoch lost",
            (_, LogReply::Lost(Lost::Entry)) => "entry lost",
            (_, LogReply::Lost(Lost::Member)) => "member lost",
            (_, LogReply::Entries { floor, entries }) if floor > 0 && !entries.is_empty() => "cut entries",
            (_, LogReply::Entries { entries, .. }) if entries.is_empty() => "no entries",
            (_, LogReply::Entries { .. }) => "entries",
            (LogCall::Renew { .. }, _) => "renewed",
            (LogCall::Expire { .. }, _) => "expired",
            _ => "left",
        }
    }
}

fn sorted(mut said: LogReply<What>) -> LogReply<What> {
    if let LogReply::Attached { rows, .. } | LogReply::Rows { rows, .. } | LogReply::Appended { rows, .. } =
        &mut said
    {
        rows.sort_by_key(|row| row.incarnation);
    }
    said
}

#[test]
fn the_script_does_what_the_model_has() {
    let mut outcomes = std::collections::BTreeMap::new();
    for seed in 1..=5 {
        let mut pair = Pair::new(seed);
        let first = LogCall::Attach {
            fresh: Epoch(9),
            name: "web-1".into(),
            incarnation: Incarnation(1),
            lease: Some(Duration::from_secs(1)),
            from: None,
        };
        pair.ask_both(first);
        for _ in 0..300 {
            pair.happen();
            let call = pair.call();
            *outcomes.entry(pair.ask_both(call)).or_insert(0_u32) += 1;
        }
    }
    assert_eq!(outcomes.len(), 11, "{outcomes:?}");
    assert!(outcomes.values().all(|count| *count >= 2), "{outcomes:?}");
}

/// Runs one call, with bounds of the log.
fn run(raw: &mut RawRedis, call: &LogCall<What>, bounds: (u64, u64)) -> LogReply<What> {
    let Keys { hash, log } = Keys::new("larder");
    let mut command = words(["EVAL", SCRIPT, "2", &hash, &log]);
    command.extend(kept_to(call, bounds));
    let command: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    reply(&raw.ask_list(&command).unwrap()).unwrap()
}

/// Appends entries of 1000 bytes, one call each, and gives the floor and the number of entries after each.
fn appended(raw: &mut RawRedis, count: u64, bounds: (u64, u64)) -> Vec<(u64, u64)> {
    let (epoch, incarnation) = (Epoch(9), Incarnation(1));
    let attach = LogCall::Attach { fresh: epoch, name: "web-1".into(), incarnation, lease: None, from: None };
    run(raw, &attach, bounds);
    let after = |number| {
        let purges = vec![(EntryId(u128::from(number)), vec![b'x'; 1000])];
        let append = LogCall::Append { epoch, incarnation, applied: Place::default(), purges };
        assert!(matches!(run(raw, &append, bounds), LogReply::Appended { first, .. } if first == number));
        let read = run(raw, &LogCall::Read { epoch, after: 0 }, bounds);
        let LogReply::Entries { floor, .. } = read else { panic!("{read:?}") };
        let length = raw.ask(&[b"XLEN", Keys::new("larder").log.as_bytes()]).unwrap();
        (floor, String::from_utf8(length).unwrap()[1..].parse().unwrap())
    };
    (1..=count).map(after).collect()
}

#[test]
fn beyond_its_bytes_the_older_half_of_the_log_goes_and_the_floor_follows() {
    const EACH: u64 = 1000 + 128;
    let server = RedisServer::start();
    let most = 100 * EACH;
    let all = appended(&mut server.raw(), 400, (ENTRIES_MAX, most));
    let mut cuts = 0;
    for (number, pair) in (2_u64..).zip(all.windows(2)) {
        let [(before, _), (floor, length)] = [pair[0], pair[1]];
        assert_eq!(floor + length, number, "there are no gaps");
        assert!(length * EACH <= most, "{number}: {length} entries");
        if floor != before {
            cuts += 1;
            assert_eq!(length, 50, "{number}: the newer half is left");
        }
    }
    assert_eq!(cuts, 6);
    let told = server.raw().ask(&[b"HGET", b"larder:1:{fleet}", b"bytes"]).unwrap();
    assert_eq!(told, (400 * EACH).to_string().as_bytes());
    // One that is longer than all that may be kept is kept alone.
    let server = RedisServer::start();
    let all = appended(&mut server.raw(), 80, (ENTRIES_MAX, 1));
    assert_eq!(all.last(), Some(&(79, 1)));
    // Both bounds hold, whichever is reached first.
    let server = RedisServer::start();
    let all = appended(&mut server.raw(), 200, (20, most));
    assert_eq!(all.last(), Some(&(180, 20)));
}

#[test]
fn the_log_takes_no_more_than_its_part_of_the_memory_of_the_server() {
    let server = RedisServer::start_with(&["--maxmemory", "3mb"]);
    let all = appended(&mut server.raw(), 300, (ENTRIES_MAX, BYTES_MAX));
    let longest = all.iter().map(|(_, length)| *length).max();
    assert_eq!(longest, Some((3 << 20) / 16 / 1128));
    assert!(all.last().unwrap().0 > 0);
}

#[test]
fn what_is_no_reply_of_the_script_is_malformed() {
    let read = |said: &[&str]| reply::<What>(&said.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    let (id, by) = ("0123456789abcdef0123456789abcdef", "00000000000000000000000000000001");
    assert_eq!(read(&["left"]), Ok(LogReply::Left));
    let lost = read(&["rows", "7", by, "3", "-", "0", "web-1"]).unwrap();
    assert!(matches!(lost, LogReply::Rows { last: 7, ref rows } if rows[0].lease.is_none()));
    assert!(read(&["entries", "0", "1", id, by, "what"]).is_ok());
    for said in [
        &[][..],
        &["left", "x"],
        &["lost", "x"],
        &["lost"],
        &["rows"],
        &["rows", "-1"],
        &["rows", "+1"],
        &["rows", "9007199254740993"],
        &["rows", "7", by, "3", "-", "0"],
        &["rows", "7", &by[1..], "3", "-", "0", "web-1"],
        &["rows", "7", by, "3", "soon", "0", "web-1"],
        &["entries", "0", "1", id, by],
        &["entries", "0", "1", id, "+0000000000000000000000000000001", "what"],
        &["attached", id, "0"],
        &["ERR"],
    ] {
        assert_eq!(read(said), Err(Malformed), "{said:?}");
    }
    assert_eq!(
        reply::<What>(&[&b"rows"[..], b"7", by.as_bytes(), b"3", b"-", b"0", b"\xff"]),
        Err(Malformed)
    );
}
