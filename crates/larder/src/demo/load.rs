//! The load: clients that each keep one connection and ask for the same page again as soon as they have it.
//!
//! In: an address, a path, how many clients and for how long. Out: an [`Outcome`]. Every answer is checked: status 200,
//! and each byte of the page. The first wrong one ends the load with an error, since figures of wrong answers mean
//! nothing.
//!
//! What is counted per second is what arrived within the time. Who was still waiting at its end is given some more, so
//! that the longest waits are not left out; who has no answer even then counts with the time waited so far, as the
//! lower bound that it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use http::header::{COOKIE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use larder_http::time::{Clock, WallTime};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::connection::ClientConnection;
use super::expected::{ExpectedPage, PageArrival};
use super::load_error::LoadError;

/// How long a client that asked within the time may wait for its answer after it.
const GRACE: Duration = Duration::from_secs(4);
/// The longest wait that is told from longer ones, in microseconds.
const WAIT_MICROS_MAX: u64 = 120_000_000;

/// What is asked, of whom, by how many, for how long.
pub(super) struct Load<'a, P> {
    pub(super) address: SocketAddr,
    pub(super) path: &'static str,
    /// What every answer has to be.
    pub(super) page: &'a Arc<P>,
    pub(super) clients: usize,
    pub(super) time: Duration,
    /// The app's own counts of what it has rendered, one for each kind of thing.
    pub(super) renders: &'a (dyn Fn() -> Vec<u64> + Sync),
}

/// What a load came to.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// For how long the answers below were counted.
    pub(super) time: Duration,
    /// Answers within the time.
    pub(super) answers: u64,
    /// Bytes of their content.
    pub(super) body_bytes: u64,
    /// What the app rendered within the time, one figure for each kind of thing.
    pub(super) renders: Vec<u64>,
    /// Waits of all requests that were made within the time, in microseconds.
    pub(super) waits: Histogram<u64>,
    /// Waits for their first bytes of content, in microseconds.
    pub(super) first_bytes: Histogram<u64>,
    /// The longest wait for a whole page, exactly.
    pub(super) longest: Duration,
    /// Requests without an answer when the time and the grace were over.
    pub(super) unanswered: u64,
    /// The shortest time that one of those had waited: from here on, waits are lower bounds.
    pub(super) bound_from: Option<Duration>,
    /// The age of the oldest page at its arrival, by its stamp.
    pub(super) oldest: Duration,
}

impl Outcome {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            time,
            answers: 0,
            body_bytes: 0,
            renders: Vec::new(),
            waits: waits(),
            first_bytes: waits(),
            longest: Duration::ZERO,
            unanswered: 0,
            bound_from: None,
            oldest: Duration::ZERO,
        }
    }

    /// Answers per second of the time.
    pub(super) fn rate(&self) -> f64 {
        self.answers as f64 / self.time.as_secs_f64()
    }

    /// What the app rendered in all.
    pub(super) fn all_renders(&self) -> u64 {
        self.renders.iter().sum()
    }

    /// Counts one wait: for the first bytes, and for all.
    pub(super) fn waited(&mut self, first: Duration, wait: Duration) {
        self.longest = self.longest.max(wait);
        self.first_bytes.saturating_record(u64::try_from(first.as_micros()).unwrap_or(u64::MAX));
        self.waits.saturating_record(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX));
    }
}

/// Room for waits.
fn waits() -> Histogram<u64> {
    Histogram::new_with_bounds(1, WAIT_MICROS_MAX, 3).expect("1 to 120 s in 3 digits is possible")
}

/// A load that runs, for whoever wants to look at it meanwhile. The lock guards the figures; it is taken once per
/// answer, on one thread.
#[derive(Clone, Debug)]
pub(super) struct Figures(Arc<Mutex<Outcome>>);

impl Figures {
    pub(super) fn new(time: Duration) -> Self {
        Self(Arc::new(Mutex::new(Outcome::new(time))))
    }

    /// Answers so far.
    pub(super) fn answers(&self) -> u64 {
        self.0.lock().answers
    }
}

/// Drives the load. Needs a runtime; is done at most 5 s for connections and [`GRACE`] after its time.
///
/// # Errors
/// The first thing that went wrong with any client.
///
/// # Cancel safety
/// Dropping it ends every client.
pub(super) async fn drive<P: ExpectedPage>(
    load: Load<'_, P>,
    figures: &Figures,
) -> Result<Outcome, LoadError> {
    let mut connecting = JoinSet::new();
    for number in 0..load.clients {
        connecting.spawn(Client::connect(load.address, load.path, (Arc::clone(load.page), number)));
    }
    // All are connected before the first asks: the time is spent on requests alone.
    let mut ready = Vec::with_capacity(load.clients);
    while let Some(client) = connecting.join_next().await {
        ready.push(client??);
    }
    let (renders_before, end) = ((load.renders)(), Instant::now() + load.time);
    let mut clients = JoinSet::new();
    for client in ready {
        clients.spawn(client.run(end, figures.clone()));
    }
    let mut renders_at_end = None;
    loop {
        tokio::select! {
            biased;
            () = sleep_until(end), if renders_at_end.is_none() => renders_at_end = Some((load.renders)()),
            next = clients.join_next() => match next {
                Some(result) => result??,
                None => break,
            },
        }
    }
    let mut outcome = figures.0.lock().clone();
    let renders = renders_at_end.unwrap_or_else(load.renders);
    outcome.renders = renders.iter().zip(&renders_before).map(|(end, before)| end - before).collect();
    Ok(outcome)
}

struct Client<P> {
    connection: ClientConnection,
    address: SocketAddr,
    path: &'static str,
    page: Arc<P>,
    /// Which client it is.
    number: usize,
    clock: Clock,
}

/// An answer that was right.
struct Answered {
    /// When the oldest part of the page was rendered.
    rendered: WallTime,
    /// When its first bytes were there.
    first: Instant,
    body_bytes: u64,
}

impl<P: ExpectedPage> Client<P> {
    async fn connect(
        address: SocketAddr,
        path: &'static str,
        (page, number): (Arc<P>, usize),
    ) -> Result<Self, LoadError> {
        let connection = ClientConnection::open(address).await?;
        Ok(Self { connection, address, path, page, number, clock: Clock::default() })
    }

    /// Asks until `end`.
    async fn run(mut self, end: Instant, figures: Figures) -> Result<(), LoadError> {
        loop {
            let began = Instant::now();
            if began >= end {
                return Ok(());
            }
            let Ok(result) = timeout_at(end + GRACE, self.exchange()).await else {
                let wait = began.elapsed();
                let mut outcome = figures.0.lock();
                outcome.unanswered += 1;
                outcome.bound_from = Some(outcome.bound_from.map_or(wait, |bound| bound.min(wait)));
                // The first bytes may have come before: then this is too long, and never too short.
                outcome.waited(wait, wait);
                return Ok(());
            };
            let Answered { rendered, first, body_bytes } = result?;
            let (now, age) = (Instant::now(), self.clock.now().wall.since(rendered));
            let mut outcome = figures.0.lock();
            outcome.waited(first - began, now - began);
            outcome.oldest = outcome.oldest.max(age);
            if now <= end {
                outcome.answers += 1;
                outcome.body_bytes += body_bytes;
            }
        }
    }

    /// One request and its answer, checked to the last byte.
    async fn exchange(&mut self) -> Result<Answered, LoadError> {
        let mut arrival = self.page.arrival(self.number);
        let mut request = Request::get(self.path).header(HOST, self.address.to_string());
        if let Some(cookie) = self.page.cookie(self.number) {
            request = request.header(COOKIE, cookie);
        }
        self.connection.sender.ready().await?;
        let mut response = self.connection.sender.send_request(request.body(Empty::new())?).await?;
        if response.status() != StatusCode::OK {
            return Err(LoadError::Status(response.status()));
        }
        let (mut body_bytes, mut first) = (0, None);
        while let Some(frame) = response.frame().await {
            if let Ok(piece) = frame?.into_data() {
                first.get_or_insert_with(Instant::now);
                arrival.take(&piece)?;
                body_bytes += piece.len() as u64;
            }
        }
        let rendered = arrival.end()?;
        Ok(Answered { rendered, first: first.unwrap_or_else(Instant::now), body_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::app::{App, RENDER_TIME};
    use super::*;

    async fn load(path: &'static str, page: &str, clients: usize) -> (App, Result<Outcome, LoadError>) {
        let app = App::start().unwrap();
        let time = Duration::from_secs(1);
        let (page, renders) = (app.page(page).unwrap(), || vec![app.renders()]);
        let load = Load { address: app.address(), path, page, clients, time, renders: &renders };
        let outcome = drive(load, &Figures::new(time)).await;
        (app, outcome)
    }

    #[tokio::test]
    async fn the_app_makes_one_page_at_a_time_and_every_answer_is_counted_once() {
        let before = Instant::now();
        let (app, outcome) = load("/", "/", 2).await;
        let outcome = outcome.unwrap();
        let serial = before.elapsed().as_millis() / RENDER_TIME.as_millis();
        assert!(u128::from(app.renders()) <= serial, "{} renders in the time of {serial}", app.renders());
        assert_eq!(outcome.waits.len(), app.renders(), "each page was waited for");
        assert!((1..=5).contains(&outcome.answers), "{outcome:?}");
        assert!(outcome.all_renders().abs_diff(outcome.answers) <= 1, "{outcome:?}");
        assert_eq!(outcome.body_bytes, outcome.answers * app.page("/").unwrap().page_bytes() as u64);
        assert_eq!((outcome.unanswered, outcome.bound_from), (0, None));
        assert!(outcome.waits.min() >= 180_000, "{}", outcome.waits.min());
    }

    #[tokio::test]
    async fn who_is_still_waiting_after_the_grace_counts_as_unanswered() {
        // 40 clients need 7 s for one page each.
        let (_app, outcome) = load("/", "/", 40).await;
        let outcome = outcome.unwrap();
        assert!(outcome.unanswered > 0, "{outcome:?}");
        assert!(outcome.bound_from.unwrap() > GRACE);
        assert!(outcome.waits.len() >= 40);
    }

    #[tokio::test]
    async fn a_wrong_page_ends_the_load() {
        let (_app, outcome) = load("/story/2", "/story/3", 2).await;
        assert!(
            matches!(outcome, Err(LoadError::Page(super::super::expected::WrongPage::Differs(_)))),
            "{outcome:?}"
        );
    }

    #[tokio::test]
    async fn an_answer_other_than_200_ends_the_load() {
        let (_app, outcome) = load("/nowhere", "/", 2).await;
        assert!(matches!(outcome, Err(LoadError::Status(StatusCode::NOT_FOUND))), "{outcome:?}");
    }
}
