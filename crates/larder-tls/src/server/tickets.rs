//! Tickets, by which clients resume a session (RFC 5077, RFC 8446 4.6.1): their keys, and what is sealed with them.
//!
//! In: how long tickets are good for, and perhaps keys that several larders share. Out: one [`TicketProducer`] per policy, all with the same keys, for all workers. A ticket is the
//! key's name, a random nonce, and the session sealed by AES-256-GCM together with the digest of the policy that it was made under. Under another policy it opens
//! nothing, since on resumption a client is asked for nothing again.
//! Keys of this process are random and in use for half of the time that tickets are good for; the last one still opens. They are read without a lock.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use parking_lot::Mutex;
use rustls::server::ProducesTickets;

use super::fault::{ServerFault, ServerFile};

/// Of a key, in bytes.
const KEY_BYTES: usize = 32;
const NAME_BYTES: usize = 16;
/// A file of more keys is another file.
const KEYS_MAX: usize = 64;

/// What became of tickets, as counts.
#[derive(Debug, Default)]
pub struct TicketCounts {
    /// Made.
    pub issued: AtomicU64,
    /// Opened, so that a session is resumed if it fits.
    pub opened: AtomicU64,
    /// Of a key that is not known any more, of another policy, or no ticket at all.
    pub refused: AtomicU64,
}

/// The keys of tickets.
#[derive(Debug)]
pub struct TicketKeys {
    ring: ArcSwap<KeyRing>,
    /// How long a ticket is good for.
    lifetime: Duration,
    /// Held to make new ones.
    turning: Mutex<()>,
    /// What became of tickets.
    pub counts: Arc<TicketCounts>,
}

/// Keys, the first of which seals.
#[derive(Debug)]
struct KeyRing {
    keys: Vec<TicketKey>,
    /// When the first was made, where this process made it.
    made: Option<Instant>,
}

#[derive(Clone, Debug)]
struct TicketKey {
    name: [u8; NAME_BYTES],
    key: Arc<LessSafeKey>,
}

impl TicketKey {
    fn new(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).ok()?;
        let mut name = [0; NAME_BYTES];
        name.iter_mut().zip(digest(&SHA256, bytes).as_ref()).for_each(|(to, from)| *to = *from);
        Some(Self { name, key: Arc::new(LessSafeKey::new(key)) })
    }

    fn random() -> Option<Self> {
        let mut bytes = [0; KEY_BYTES];
        rand::fill(&mut bytes).ok()?;
        Self::new(&bytes)
    }
}

impl TicketKeys {
    /// Keys of this process. `None` where the system has no random numbers.
    pub fn random(lifetime: Duration) -> Option<Self> {
        let ring = KeyRing { keys: vec![TicketKey::random()?], made: Some(Instant::now()) };
        Some(Self::of(ring, lifetime))
    }

    /// Keys in a file: one a line, 32 bytes in hexadecimal digits. The first seals, all open.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(path: &Path, lifetime: Duration) -> Result<Self, ServerFault> {
        Ok(Self::of(KeyRing { keys: read_keys(path)?, made: None }, lifetime))
    }

    fn of(ring: KeyRing, lifetime: Duration) -> Self {
        let ring = ArcSwap::from_pointee(ring);
        Self { ring, lifetime, turning: Mutex::new(()), counts: Arc::default() }
    }

    /// The same, counting on where `before` has stopped.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        Self { counts: Arc::clone(&before.counts), ..self }
    }

    /// Whether the same keys seal and open.
    pub fn is_same(&self, other: &Self) -> bool {
        let (ring, other) = (self.ring.load(), other.ring.load());
        ring.keys.iter().map(|key| key.name).eq(other.keys.iter().map(|key| key.name))
    }

    /// The keys at `now`, new ones where it is time for them.
    fn at(&self, now: Instant) -> arc_swap::Guard<Arc<KeyRing>> {
        let ring = self.ring.load();
        let half = self.lifetime / 2;
        let age = ring.made.map_or(Duration::ZERO, |made| now.saturating_duration_since(made));
        if age < half {
            return ring;
        }
        // Whoever finds it held goes on with the old ones for a moment.
        if let Some(_turning) = self.turning.try_lock()
            && Arc::ptr_eq(&ring, &self.ring.load())
            && let Some(key) = TicketKey::random()
        {
            let last = ring.keys.first().filter(|_| age < 2 * half).cloned();
            let keys = std::iter::once(key).chain(last).collect();
            self.ring.store(Arc::new(KeyRing { keys, made: Some(now) }));
        }
        self.ring.load()
    }

    fn seal(&self, policy: &[u8; 32], plain: &[u8], now: Instant) -> Option<Vec<u8>> {
        let ring = self.at(now);
        let TicketKey { name, key } = ring.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(NAME_BYTES + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        ticket.extend_from_slice(name);
        ticket.extend_from_slice(&nonce);
        let mut sealed = plain.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce, Aad::from(policy), &mut sealed).ok()?;
        ticket.extend_from_slice(&sealed);
        Some(ticket)
    }

    fn open(&self, policy: &[u8; 32], ticket: &[u8], now: Instant) -> Option<Vec<u8>> {
        let ring = self.at(now);
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let key = ring.keys.iter().find(|key| key.name == name)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let length = key.key.open_in_place(nonce, Aad::from(policy), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

fn read_keys(path: &Path) -> Result<Vec<TicketKey>, ServerFault> {
    let fault = |found: String| {
        ServerFault::new(ServerFile::TicketKeys, path, found)
            .hint("`openssl rand -hex 32` makes a key; the first line seals, all lines open")
    };
    let text = std::fs::read_to_string(path).map_err(|error| fault(format!("cannot be read: {error}")))?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let mut keys = Vec::new();
    for (index, line) in lines {
        let key = from_hex(line).and_then(|bytes| TicketKey::new(&bytes));
        keys.push(key.ok_or_else(|| fault(format!("line {} is not 64 hexadecimal digits", index + 1)))?);
        if keys.len() > KEYS_MAX {
            return Err(fault(format!("more than {KEYS_MAX} keys")));
        }
    }
    if keys.is_empty() { Err(fault("no key in it".to_owned())) } else { Ok(keys) }
}

fn from_hex(digits: &str) -> Option<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    if digits.len() != 2 * KEY_BYTES || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(2 * index..2 * index + 2)?;
        // `from_str_radix` would take a sign.
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

/// Tickets of one policy.
#[derive(Debug)]
pub(super) struct TicketProducer {
    pub(super) keys: Arc<TicketKeys>,
    /// Tickets of another one open nothing here.
    pub(super) policy: [u8; 32],
}

impl ProducesTickets for TicketProducer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(self.keys.lifetime.as_secs()).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let ticket = self.keys.seal(&self.policy, plain, Instant::now())?;
        self.keys.counts.issued.fetch_add(1, Ordering::Relaxed);
        Some(ticket)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.keys.open(&self.policy, cipher, Instant::now());
        let counts = &self.keys.counts;
        let count = if plain.is_some() { &counts.opened } else { &counts.refused };
        count.fetch_add(1, Ordering::Relaxed);
        plain
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const POLICY: [u8; 32] = [7; 32];
    const HOUR: Duration = Duration::from_secs(3600);

    fn at(start: Instant, hours: u32) -> Instant {
        start + HOUR * hours
    }

    #[test]
    fn a_ticket_opens_under_its_policy_alone_and_whole_alone() {
        let keys = TicketKeys::random(12 * HOUR).unwrap();
        let now = Instant::now();
        for plain in [&b""[..], b"a session"] {
            let ticket = keys.seal(&POLICY, plain, now).unwrap();
            assert_eq!(keys.open(&POLICY, &ticket, now).as_deref(), Some(plain));
            assert_eq!(keys.open(&[8; 32], &ticket, now), None);
            assert_eq!(TicketKeys::random(12 * HOUR).unwrap().open(&POLICY, &ticket, now), None);
            for cut in 0..ticket.len() {
                assert_eq!(keys.open(&POLICY, &ticket[..cut], now), None, "{cut}");
                let mut other = ticket.clone();
                other[cut] ^= 1;
                assert_eq!(keys.open(&POLICY, &other, now), None, "{cut}");
            }
            assert_ne!(ticket, keys.seal(&POLICY, plain, now).unwrap(), "the nonce came twice");
        }
    }

    #[test]
    fn a_ticket_is_good_for_half_to_all_of_its_time_and_no_longer() {
        let keys = TicketKeys::random(12 * HOUR).unwrap();
        let start = Instant::now();
        let opens = |ticket: &[u8], hours| keys.open(&POLICY, ticket, at(start, hours)).is_some();
        let first = keys.seal(&POLICY, b"1", start).unwrap();
        let late = keys.seal(&POLICY, b"2", at(start, 5)).unwrap();
        assert_eq!(first[..NAME_BYTES], late[..NAME_BYTES]);
        assert!(opens(&first, 5));
        let next = keys.seal(&POLICY, b"3", at(start, 6)).unwrap();
        assert_ne!(first[..NAME_BYTES], next[..NAME_BYTES]);
        assert!(opens(&first, 7) && opens(&late, 11) && opens(&next, 11));
        assert!(opens(&next, 13) && !opens(&first, 13) && !opens(&late, 13));
        // In a night without a handshake both keys have become too old.
        assert!(!opens(&next, 30));
    }

    #[test]
    fn keys_of_a_file_are_shared_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let (one, two) = ("01".repeat(32), "aB".repeat(32));
        std::fs::write(&path, format!("{one}\n\n")).unwrap();
        let here = TicketKeys::read(&path, HOUR).unwrap();
        let there = TicketKeys::read(&path, HOUR).unwrap();
        let now = Instant::now();
        let ticket = here.seal(&POLICY, b"shared", now).unwrap();
        assert_eq!(there.open(&POLICY, &ticket, at(now, 100)).as_deref(), Some(&b"shared"[..]));
        std::fs::write(&path, format!("{two}\n{one}\n")).unwrap();
        let next = TicketKeys::read(&path, HOUR).unwrap().after(&there);
        assert!(next.open(&POLICY, &ticket, now).is_some());
        assert!(Arc::ptr_eq(&next.counts, &there.counts));
        let other = next.seal(&POLICY, b"x", now).unwrap();
        assert_ne!(other[..NAME_BYTES], ticket[..NAME_BYTES]);
        for (text, found) in [
            ("half of a ke".to_owned(), "line 1 is not 64 hexadecimal digits"),
            (String::new(), "no key in it"),
            (format!("{one}\n{}", &one[1..]), "line 2 is not 64 hexadecimal digits"),
            (format!("+1{}", &one[2..]), "line 1 is not 64 hexadecimal digits"),
            (format!("{one}\n").repeat(65), "more than 64 keys"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(TicketKeys::read(&path, HOUR).unwrap_err().found, found);
        }
    }
}
