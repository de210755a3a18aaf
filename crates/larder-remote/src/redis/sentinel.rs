//! Where a master is, as a majority of its Sentinels says (`SENTINEL GET-MASTER-ADDR-BY-NAME`).
//!
//! In: the Sentinels. Out: the master that more than half of them name, asked again twice a second and whenever a connection could not be
//! made. A Sentinel that is cut off, or that has not learned of a failover yet, names the former master; so one answer alone is never
//! believed, and all that are configured count, those that do not answer too.
//! One task has the connections ([`Masters::watch`]). All others wait for what it finds.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::{Value, cmd};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::login::LoggedIn;
use super::reach::{LoginSettings, Reach};
use super::round;
use super::scan::{Lists, Scanner};
use super::settings::SentinelSettings;
use crate::address::Address;
use crate::clock;

/// Between two rounds, where nothing asks for one.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The part of the limit that one question may take: who waits for a round has the whole.
const LIMIT_PARTS: u32 = 4;
/// Between two rounds at least.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest name of a host.
const NAME_MAX: usize = 256;
/// The bounds of a reply: a host and a port.
const LISTS: Lists = Lists { nested: 1, elements: 8, bytes: 4096 };

/// See the head of the file.
pub(super) struct Masters {
    said: SentinelSettings,
    account: Arc<LoginSettings>,
    reach: Reach,
    limit: Duration,
    /// The last round that has begun.
    begun: AtomicU64,
    found: watch::Sender<Round>,
    is_wanted: Notify,
}

/// What a round has found.
#[derive(Clone, Debug, Default)]
struct Round {
    /// Which; the first one is 1.
    number: u64,
    /// What a majority says in it.
    named: Option<Address>,
    /// What the last majority said.
    master: Option<Address>,
    /// When the round began in which it was said last, on the lease's clock.
    vouched: Duration,
    answered: usize,
    /// Why one had no answer.
    failure: Option<String>,
}

impl Masters {
    pub(super) fn new(said: SentinelSettings, reach: Reach, limit: Duration) -> Self {
        let (user, password) = (said.user.clone(), said.password.clone());
        let account = Arc::new(LoginSettings { user, password, database: 0 });
        let found = watch::Sender::new(Round::default());
        Self { said, account, reach, limit, begun: AtomicU64::new(0), found, is_wanted: Notify::new() }
    }

    /// The master.
    ///
    /// # Errors
    /// No majority has named one since the start.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn current(&self) -> io::Result<Address> {
        let mut found = self.found.subscribe();
        // The sender is this value's own.
        let round = found.wait_for(|round| round.number > 0).await.map_err(io::Error::other)?.clone();
        let Some(master) = round.master else {
            self.ask_soon();
            let why = round.failure.map_or(String::new(), |why| format!("; {why}"));
            return Err(io::Error::other(format!(
                "no majority of the {} Sentinels names a master {:?}; {} answered{why}",
                self.said.sentinels.len(),
                self.said.master,
                round.answered
            )));
        };
        Ok(master)
    }

    /// Waits until another one is the master.
    pub(super) async fn left(&self, master: &Address) {
        self.moved_from(Some(master)).await;
    }

    /// Waits until another one is the master.
    pub(super) async fn moved_from(&self, master: Option<&Address>) {
        let is_other = |round: &Round| round.master.is_some() && round.master.as_ref() != master;
        if self.found.subscribe().wait_for(is_other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether a majority names this one in a round that has begun later than this call.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn confirms(&self, master: &Address) -> bool {
        self.later_round().await.is_some_and(|named| named == *master)
    }

    /// Waits until a round is over that has begun later than this call. What a majority names in it.
    pub(super) async fn later_round(&self) -> Option<Address> {
        let last = self.begun.load(Ordering::Acquire);
        self.ask_soon();
        let mut found = self.found.subscribe();
        found.wait_for(|round| round.number > last).await.ok()?.named.clone()
    }

    /// Since when a majority vouches for the master, on the lease's clock.
    pub(super) fn vouched(&self) -> Duration {
        self.found.borrow().vouched
    }

    /// The master, as far as it is known.
    pub(super) fn known(&self) -> Option<Address> {
        self.found.borrow().master.clone()
    }

    /// A round is to begin without waiting for its time.
    pub(super) fn ask_soon(&self) {
        self.is_wanted.notify_one();
    }

    /// Asks, for as long as it is polled. Never ends.
    pub(super) async fn watch(&self) {
        let mut links: Vec<Option<LoggedIn>> = self.said.sentinels.iter().map(|_| None).collect();
        loop {
            let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let began = clock::now();
            let asked = self.said.sentinels.iter().zip(&mut links);
            let answers = round::ask_all(asked.map(|(sentinel, link)| self.ask(sentinel, link))).await;
            let failed = answers.iter().zip(&self.said.sentinels).find_map(|(answer, sentinel)| {
                let why = answer.as_ref().err()?;
                Some(format!("{sentinel}: {why}"))
            });
            let answers: Vec<Address> = answers.into_iter().flatten().collect();
            let named = majority(&answers, self.said.sentinels.len());
            self.found.send_modify(|round| {
                *round = Round {
                    number,
                    vouched: if named.is_some() { began } else { round.vouched },
                    master: named.clone().or_else(|| round.master.take()),
                    named,
                    answered: answers.len(),
                    failure: failed,
                };
            });
            sleep(PAUSE).await;
            let _ = timeout(ASK_EVERY, self.is_wanted.notified()).await;
        }
    }

    /// What one Sentinel says. Its connection stays open as long as it answers.
    async fn ask(&self, sentinel: &Address, link: &mut Option<LoggedIn>) -> Result<Address, String> {
        let scanner = || Scanner::with_lists(NAME_MAX, LISTS);
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.said.master);
        let asked = (sentinel, &self.account, scanner);
        let reply = self.reach.ask_one(asked, link, (&question, self.limit / LIMIT_PARTS)).await?;
        address(&reply).ok_or_else(|| match reply {
            Value::Nil => "it knows no such master".to_owned(),
            Value::ServerError(error) => format!("it says: {error}"),
            _ => "what it says is no address".to_owned(),
        })
    }
}

impl fmt::Debug for Masters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.said.master, self.said.sentinels)
    }
}

/// What more than half of all say.
fn majority(answers: &[Address], of: usize) -> Option<Address> {
    let votes = |address: &Address| answers.iter().filter(|other| *other == address).count();
    answers.iter().find(|address| votes(address) * 2 > of).cloned()
}

/// A host and a port.
fn address(reply: &Value) -> Option<Address> {
    let Value::Array(parts) = reply else { return None };
    let text = |part: &Value| match part {
        Value::BulkString(text) => std::str::from_utf8(text).ok().map(str::to_owned),
        _ => None,
    };
    let [host, port] = parts.as_slice() else { return None };
    let (host, port) = (text(host)?, text(port)?.parse().ok().filter(|port| *port != 0)?);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_host))
        .then(|| Address::Tcp { host: host.to_ascii_lowercase(), port })
}

/// Whether this answer of a Sentinel names a master.
#[cfg(feature = "fuzzing")]
pub(crate) fn names_master(bytes: &[u8]) -> bool {
    ::redis::parse_redis_value(bytes).is_ok_and(|value| address(&value).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str) -> Address {
        Address::Tcp { host: host.to_owned(), port: 1 }
    }

    #[test]
    fn a_majority_is_more_than_half_of_all_that_there_are() {
        let (a, b) = (at("a"), at("b"));
        assert_eq!(majority(&[a.clone(), a.clone()], 3), Some(a.clone()));
        assert_eq!(majority(&[b.clone(), a.clone(), a.clone()], 3), Some(a.clone()));
        assert_eq!(majority(std::slice::from_ref(&a), 1), Some(a.clone()));
        assert_eq!(majority(std::slice::from_ref(&a), 2), None);
        assert_eq!(majority(&[a.clone(), b.clone()], 3), None);
        assert_eq!(majority(&[a.clone(), a, b.clone(), b], 4), None);
        assert_eq!(majority(&[], 3), None);
    }

    #[test]
    fn an_answer_is_a_host_and_a_port_or_none() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let read = |parts: &[&str]| address(&Value::Array(parts.iter().map(|part| text(part)).collect()));
        assert_eq!(read(&["10.0.0.1", "6379"]), Some(Address::Tcp { host: "10.0.0.1".into(), port: 6379 }));
        assert_eq!(read(&["::1", "1"]), Some(Address::Tcp { host: "::1".into(), port: 1 }));
        assert_eq!(read(&["Cache", "1"]), Some(Address::Tcp { host: "cache".into(), port: 1 }));
        for parts in [&["", "1"][..], &["a b", "1"], &["a", "0"], &["a", "65536"], &["a", "x"], &["a"], &[]] {
            assert_eq!(read(parts), None, "{parts:?}");
        }
        assert_eq!(address(&Value::Nil), None);
        assert_eq!(address(&Value::Array(vec![Value::Int(1), Value::Int(2)])), None);
    }
}
