//! Clients that ask for the catalogue all at once: whole, in part, and with POSTs that invalidate.
//!
//! In: an address, which may die at any moment. Out: counts. Each answer is checked, also what had come of one that was cut;
//! an answer that is wrong, or cut while larder was alive, fails the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::client::{Connection, End, Request, Response};

use super::catalogue::{Asked, Catalogue, Draws, Resource, version_of};
use crate::support::{BOUND, cache_status, connect, within};

/// What clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) answers: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) posts: AtomicU64,
    /// Hits that broke off, where that may happen.
    pub(crate) cut: AtomicU64,
    /// Longest time to a whole answer, in milliseconds.
    pub(crate) longest_ms: AtomicU64,
}

/// Load on one larder.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) addr: SocketAddr,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) tally: Arc<Tally>,
    /// Set before larder is killed: from then on connections may break.
    pub(crate) is_dying: Arc<AtomicBool>,
    /// Set to end it.
    pub(crate) is_over: Arc<AtomicBool>,
    /// Of a hundred requests.
    pub(crate) posts_percent: u64,
    /// What is stored may become unreadable while it is sent: then the client is cut.
    pub(crate) may_cut_hits: Arc<AtomicBool>,
    /// The same of what is stored while it arrives: a client that is behind reads it from the store.
    pub(crate) may_cut_fills: Arc<AtomicBool>,
}

impl Load {
    pub(crate) fn new(addr: SocketAddr, catalogue: &Arc<Catalogue>) -> Self {
        Self {
            addr,
            catalogue: Arc::clone(catalogue),
            tally: Arc::default(),
            is_dying: Arc::default(),
            is_over: Arc::default(),
            posts_percent: 8,
            may_cut_hits: Arc::default(),
            may_cut_fills: Arc::default(),
        }
    }

    /// Begins so many clients.
    pub(crate) fn begin(&self, clients: u64, seed: &str) -> Vec<tokio::task::JoinHandle<()>> {
        let begin = |client| {
            let (load, draws) = (self.clone(), Draws::new(format_args!("{seed} {client}")));
            tokio::spawn(async move { load.one_client(draws).await })
        };
        (0..clients).map(begin).collect()
    }

    fn may_break(&self) -> bool {
        self.is_dying.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.may_break() || self.is_over.load(Ordering::SeqCst)
    }

    async fn one_client(&self, mut draws: Draws) {
        let Ok(mut connection) = Connection::open(self.addr, BOUND).await else {
            return assert!(self.may_break(), "cannot connect");
        };
        while !self.is_over() {
            // Some are asked for much more often than others.
            let count = self.catalogue.resources.len() as u64;
            let among = draws.below(count) + 1;
            let resource = self.catalogue.resources[draws.below(among) as usize];
            let is_alive = match draws.below(100) {
                n if n < self.posts_percent => self.post(&mut connection, resource).await,
                n if n < 30 => {
                    let asked = Asked::part(&self.catalogue, resource, &mut draws);
                    self.get(&mut connection, asked).await
                }
                _ => {
                    let flavour = draws.one_of(&["plain", "sweet"]);
                    self.get(&mut connection, Asked::whole(&self.catalogue, resource, flavour)).await
                }
            };
            if !is_alive {
                return;
            }
        }
    }

    async fn post(&self, connection: &mut Connection, resource: Resource) -> bool {
        let request = Request::new("POST", &resource.target(), "localhost").body("");
        let Some(response) = self.answer(connection, &request).await else { return false };
        assert_eq!(response.status, 200, "{response}");
        self.catalogue.acknowledge(resource, version_of(&response).unwrap());
        self.tally.posts.fetch_add(1, Ordering::Relaxed);
        true
    }

    async fn get(&self, connection: &mut Connection, asked: Asked) -> bool {
        let Some(response) = self.answer(connection, &asked.request()).await else { return false };
        if let Err(wrong) = asked.check(&self.catalogue, &response) {
            panic!("{wrong}");
        }
        let is_of_store = is_hit(&response) || self.may_cut_fills.load(Ordering::SeqCst);
        if response.end != End::Complete && is_of_store && self.may_cut_hits.load(Ordering::SeqCst) {
            self.tally.cut.fetch_add(1, Ordering::Relaxed);
            *connection = connect(self.addr).await;
            return true;
        }
        if response.end != End::Complete {
            assert!(self.may_break(), "cut while larder was alive: {asked:?}, {response}");
            return false;
        }
        self.tally.answers.fetch_add(1, Ordering::Relaxed);
        self.tally.hits.fetch_add(u64::from(is_hit(&response)), Ordering::Relaxed);
        true
    }

    /// What was answered, whole or not; `None` where larder was dying and nothing came.
    async fn answer(&self, connection: &mut Connection, request: &Request) -> Option<Response> {
        let started = std::time::Instant::now();
        let answered = within("an answer", connection.exchange(request)).await;
        let took_ms = started.elapsed().as_millis() as u64;
        self.tally.longest_ms.fetch_max(took_ms, Ordering::Relaxed);
        match answered {
            Ok(response) => Some(response),
            Err(_) if self.may_cut_hits.load(Ordering::SeqCst) => {
                // Cut before its head: the next request comes on another connection.
                self.tally.cut.fetch_add(1, Ordering::Relaxed);
                *connection = connect(self.addr).await;
                within("an answer", connection.exchange(request)).await.ok()
            }
            Err(error) => {
                assert!(self.may_break(), "{error}: {} {}", request.method, request.target);
                None
            }
        }
    }
}

/// Whether larder says that it asked nobody.
pub(crate) fn is_hit(response: &Response) -> bool {
    cache_status(response).contains("; hit")
}

/// Asks for everything once, and checks it.
pub(crate) async fn read_all(addr: SocketAddr, catalogue: &Catalogue) {
    let mut connection = connect(addr).await;
    for resource in &catalogue.resources {
        let asked = Asked::whole(catalogue, *resource, "plain");
        assert!(whole(&mut connection, catalogue, &asked, asked.request()).await.is_some());
    }
}

/// Asks for everything that is stored, without a request to the origin, and checks it; says what was there.
pub(crate) async fn find_all(addr: SocketAddr, catalogue: &Catalogue) -> Vec<Resource> {
    let mut connection = connect(addr).await;
    let mut there = Vec::new();
    for resource in &catalogue.resources {
        let asked = Asked::whole(catalogue, *resource, "plain");
        let request = asked.request().field("Cache-Control", "only-if-cached");
        if let Some(response) = whole(&mut connection, catalogue, &asked, request).await {
            assert!(is_hit(&response), "{response}");
            there.push(*resource);
        }
    }
    there
}

/// The whole answer; `None` where nothing is stored and the origin was not to be asked.
async fn whole(
    connection: &mut Connection,
    catalogue: &Catalogue,
    asked: &Asked,
    request: Request,
) -> Option<Response> {
    let response = within("an answer", connection.exchange(&request)).await.unwrap();
    if response.status == 504 {
        return None;
    }
    if let Err(wrong) = asked.check(catalogue, &response) {
        panic!("{wrong}");
    }
    assert_eq!(response.end, End::Complete, "cut: {asked:?}, {response}");
    Some(response)
}
