//! The clients of a [`Load`](super::load::Load): what they ask for and when, what they hold their answers to, and who purges meanwhile.
//!
//! In: the addresses of larders. Out: a [`Tally`]. Each client asks at its times, whether or not it has an answer to what it asked before: connections
//! are opened as they are needed. What is wrong is noted, and fails the test at the next line of the table.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use larder_testkit::Error;
use larder_testkit::client::{Connection, End, Request, Response};
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::{body, is_hit};
use crate::support::{BOUND, asking, cache_status, connect, within};

pub(super) const CLIENTS: u64 = 64;
/// So many turns after one larder has asked for a new URL, the other one does: about half a second in CI.
const LAG: u64 = 8;
const LENGTHS: [u64; 5] = [150, 400, 900, 4_000, 12_000];

/// What was seen since the last line.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) waits: Vec<Duration>,
    /// Of hits in memory alone.
    pub(super) in_memory: Vec<Duration>,
    pub(super) from_redis: u64,
    pub(super) fetched: u64,
    pub(super) failed: u64,
    pub(super) left: u64,
    pub(super) complete: u64,
    /// The longest wait at the larder without a Redis, and how many of its requests the origin has got.
    pub(super) beside: (Duration, u64),
    /// What breaks a promise. The first few of them.
    pub(super) wrong: Vec<String>,
}

impl Tally {
    /// The most that the origin was asked for by the requests that are over.
    pub(super) fn may_be_asked(&self) -> u64 {
        self.fetched + self.left + self.beside.1
    }

    fn is_wrong(&mut self, what: String) {
        if self.wrong.len() < 5 {
            self.wrong.push(what);
        }
    }
}

/// What clients, the purger and the test share.
pub(super) struct Shared {
    pub(super) larders: [SocketAddr; 2],
    /// The one without a Redis.
    pub(super) beside: SocketAddr,
    pub(super) admins: [SocketAddr; 2],
    pub(super) begun: Instant,
    pub(super) rate: u64,
    /// The state of the application.
    pub(super) state: Arc<AtomicU64>,
    /// What an answer for a purged URL has to be at least.
    pub(super) least: AtomicU64,
    /// Half of the clients leave in the middle of their requests.
    pub(super) is_left: AtomicBool,
    pub(super) is_over: AtomicBool,
    pub(super) tally: Mutex<Tally>,
}

/// What the request with this number is for, and at which larder.
fn wanted(number: u64) -> (usize, String) {
    let turn = number / 8;
    let new = |turn: u64| format!("/new-{turn}-{}", LENGTHS[(turn % 5) as usize]);
    let larder = (turn % 2) as usize;
    match number % 8 {
        5 => (larder, format!("/changing/{}-400", turn / 2 % 4)),
        6 => (larder, new(turn)),
        7 => match turn.checked_sub(LAG) {
            Some(earlier) => ((turn % 2 + 1) as usize % 2, new(earlier)),
            None => (larder, "/long-700000".to_owned()),
        },
        of_hot => (larder, format!("/hot-{of_hot}-{}", LENGTHS[(turn / 2 % 5) as usize])),
    }
}

/// A test that fails cancels what is under way.
fn is_no_panic(over: Result<(), JoinError>) {
    assert!(!over.is_err_and(|error| error.is_panic()), "a request has panicked");
}

/// A larder closes connections that are idle for a minute, and a request may be under way to it at that moment. Clients close theirs before.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// Connections of a client to each larder that no request is on, since when.
#[derive(Default)]
struct Idle(Mutex<[Vec<(Connection, Instant)>; 2]>);

impl Idle {
    fn take(&self, larder: usize) -> Option<Connection> {
        let idle = &mut self.0.lock()[larder];
        match idle.pop() {
            Some((connection, since)) if since.elapsed() < IDLE_MAX => Some(connection),
            // The others are older still.
            _ => {
                idle.clear();
                None
            }
        }
    }

    fn keep(&self, larder: usize, connection: Option<Connection>) {
        self.0.lock()[larder].extend(connection.map(|connection| (connection, Instant::now())));
    }
}

/// Asks whenever it is time to, whatever has become of the requests before.
pub(super) async fn client(shared: Arc<Shared>, number: u64) {
    let (idle, mut asked) = (Arc::new(Idle::default()), JoinSet::new());
    for round in 0.. {
        let number = number + round * CLIENTS;
        let due = shared.begun + Duration::from_nanos(number * 1_000_000_000 / shared.rate);
        tokio::time::sleep_until(due).await;
        if shared.is_over.load(Ordering::SeqCst) {
            break;
        }
        asked.spawn(request(Arc::clone(&shared), Arc::clone(&idle), number, due));
        while let Some(over) = asked.try_join_next() {
            is_no_panic(over);
        }
    }
    while let Some(over) = asked.join_next().await {
        is_no_panic(over);
    }
}

async fn request(shared: Arc<Shared>, idle: Arc<Idle>, number: u64, due: Instant) {
    let (larder, target) = wanted(number);
    let least = match target.starts_with("/changing") {
        true => shared.least.load(Ordering::SeqCst),
        false => 1,
    };
    let leaves = shared.is_left.load(Ordering::SeqCst) && (number / 8).is_multiple_of(2);
    let patience = if leaves { Duration::from_micros(number * 7919 % 4000) } else { Duration::MAX };
    let mut connection = idle.take(larder);
    let asked = ask(&mut connection, shared.larders[larder], &target);
    let Ok(answer) = tokio::time::timeout(patience, asked).await else {
        // Some close, and some reset.
        if number.is_multiple_of(3) {
            connection.into_iter().for_each(Connection::abort);
        }
        shared.tally.lock().left += 1;
        return;
    };
    let (wait, state) = (due.elapsed(), shared.state.load(Ordering::SeqCst));
    let mut tally = shared.tally.lock();
    match answer {
        Ok(answer) => judge(&mut tally, &target, &answer, (wait, least, state)),
        Err(error) => tally.is_wrong(format!("{target} after {wait:?}: {error}")),
    }
    idle.keep(larder, connection);
}

async fn ask(slot: &mut Option<Connection>, addr: SocketAddr, target: &str) -> Result<Response, Error> {
    let connection = match slot {
        Some(connection) => connection,
        None => slot.insert(Connection::open(addr, BOUND).await?),
    };
    let answer = connection.exchange(&asking(target)).await;
    // What comes late on a connection that was given up would be taken for the answer to the next request.
    let ends = |answer: &Response| answer.fields.first("connection").is_some_and(|value| value == "close");
    if answer.as_ref().map_or(true, ends) {
        *slot = None;
    }
    answer
}

/// The state that an answer was stamped with, if it is whole and the one of this target.
pub(super) fn checked(target: &str, answer: &Response) -> Option<u64> {
    let text = std::str::from_utf8(&answer.body).ok()?;
    let stamp = text.split(' ').next()?.parse().ok()?;
    let is_right = answer.status == 200 && answer.end == End::Complete && text == body(target, "none", stamp);
    is_right.then_some(stamp)
}

fn judge(tally: &mut Tally, target: &str, answer: &Response, (wait, least, state): (Duration, u64, u64)) {
    tally.waits.push(wait);
    if answer.status >= 500 {
        tally.failed += 1;
    }
    let (is_hit, detail) = (is_hit(answer), cache_status(answer).split_once("detail=").map(|(_, word)| word));
    match detail {
        None if is_hit => tally.in_memory.push(wait),
        Some("remote") if is_hit => tally.from_redis += 1,
        // Among them those that have waited for the fetch of the other larder.
        _ => tally.fetched += 1,
    }
    if !checked(target, answer).is_some_and(|stamp| (least..=state).contains(&stamp)) {
        tally.is_wrong(format!("{target} after {wait:?}, at least {least}: {answer}"));
    }
}

/// Asks the larder without a Redis, as often as one of the others is asked. It has to ask the origin for each.
pub(super) async fn client_beside(shared: Arc<Shared>) {
    let (idle, mut asked) = (Arc::new(Idle::default()), JoinSet::new());
    for number in 0..u64::MAX {
        let due = shared.begun + Duration::from_nanos(number * 2_000_000_000 / shared.rate);
        tokio::time::sleep_until(due).await;
        if shared.is_over.load(Ordering::SeqCst) {
            break;
        }
        let (shared, idle) = (Arc::clone(&shared), Arc::clone(&idle));
        asked.spawn(async move {
            let mut connection = idle.take(0);
            let target = format!("/short?{}", number % 40);
            let answer = ask(&mut connection, shared.beside, &target).await;
            let mut tally = shared.tally.lock();
            if !answer.is_ok_and(|answer| answer.status == 200) {
                tally.is_wrong(format!("{target} without a Redis"));
            }
            tally.beside = (tally.beside.0.max(due.elapsed()), tally.beside.1 + 1);
            idle.keep(0, connection);
        });
        while let Some(over) = asked.try_join_next() {
            is_no_panic(over);
        }
    }
    while let Some(over) = asked.join_next().await {
        is_no_panic(over);
    }
}

/// Changes what the application has, and purges it, now at the one and now at the other.
pub(super) async fn purger(shared: Arc<Shared>) {
    let urls: Vec<String> =
        (0..4).map(|number| format!("\"http://localhost/changing/{number}-400\"")).collect();
    let by_url = format!("{{\"urls\": [{}]}}", urls.join(", "));
    let by_prefix = "{\"prefixes\": [\"http://localhost/changing/\"]}".to_owned();
    while !shared.is_over.load(Ordering::SeqCst) {
        let now = shared.state.fetch_add(1, Ordering::SeqCst) + 1;
        let what = if now.is_multiple_of(2) { &by_url } else { &by_prefix };
        let request = Request::new("POST", "/api/v1/purges", "localhost")
            .field("Content-Type", "application/json")
            .body(what.clone());
        let admin = shared.admins[(now / 2 % 2) as usize];
        let answer = async { connect(admin).await.exchange(&request).await };
        let answer = within("a purge", answer).await;
        match answer.as_ref().map(|answer| answer.status) {
            Ok(200) => {
                shared.least.fetch_max(now, Ordering::SeqCst);
                shared.tally.lock().complete += 1;
            }
            Ok(503) => {}
            _ => shared.tally.lock().is_wrong(format!("a purge: {answer:?}")),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
