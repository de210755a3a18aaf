//! Clients that ask for the catalogue all at once: whole, in part, and with POSTs and purges that invalidate.
//!
//! In: an address, which may die at any moment. Out: counts. Each answer is checked, also what had come of one that was cut;
//! an answer that is wrong, or cut while larder was alive, fails the test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::client::{Connection, End, Request, Response};
use parking_lot::Mutex;

use super::catalogue::{Asked, Catalogue, Draws, Resource, version_of};
use super::purging::{AskedAt, Purge, PurgeKind};
use crate::support::{BOUND, Metrics, Process, cache_status, connect, get, within};

/// Of a hundred requests, where clients purge.
const PURGES_PERCENT: u64 = 3;
/// One of so many purges names a tag, which a fifth of all resources have.
const PURGES_PER_TAG: u64 = 12;

/// How often one request may be cut where that is allowed at all.
const CUTS_IN_A_ROW_MAX: u32 = 4;

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Path {
    /// What was stored, whole.
    Hit,
    /// Some of it.
    Part,
    /// That the client has it already.
    Unchanged,
    /// What is stale, with a refresh behind it.
    Behind,
    /// What another client's request brought.
    Shared,
    /// What was stored, after the origin had confirmed it.
    Confirmed,
    /// What the origin answered.
    Fetched,
}

impl Path {
    pub(crate) const ALL: [Self; 7] =
        [Self::Hit, Self::Part, Self::Unchanged, Self::Behind, Self::Shared, Self::Confirmed, Self::Fetched];

    fn of(response: &Response) -> Self {
        let said = cache_status(response);
        match (is_hit(response), response.status) {
            (false, _) if said.contains("; collapsed") => Self::Shared,
            (false, _) if said.contains("; fwd-status=304") => Self::Confirmed,
            (false, _) => Self::Fetched,
            (true, _) if said.contains("; detail=") => Self::Behind,
            (true, 206) => Self::Part,
            (true, 304) => Self::Unchanged,
            (true, _) => Self::Hit,
        }
    }
}

/// What clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) answers: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) posts: AtomicU64,
    pub(crate) purges: AtomicU64,
    pub(crate) paths: Mutex<BTreeMap<Path, u64>>,
    /// Hits that broke off, where that may happen.
    pub(crate) cut: AtomicU64,
    /// Answers that broke off because the store let go of a body.
    pub(crate) let_go: AtomicU64,
    /// Longest time to a whole answer, in milliseconds.
    pub(crate) longest_ms: AtomicU64,
}

/// Load on one larder.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) addr: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) tally: Arc<Tally>,
    /// Set before larder is killed: from then on connections may break.
    pub(crate) is_dying: Arc<AtomicBool>,
    /// Set to end it.
    pub(crate) is_over: Arc<AtomicBool>,
    /// Of a hundred requests.
    pub(crate) posts_percent: u64,
    /// Whether clients purge URLs and a tag as well. Each such purge is answered with 200.
    pub(crate) has_purges: bool,
    /// What is stored may become unreadable while it is sent: then the client is cut.
    pub(crate) may_cut_hits: Arc<AtomicBool>,
    /// The same of what is stored while it arrives: a client that is behind reads it from the store.
    pub(crate) may_cut_fills: Arc<AtomicBool>,
}

impl Load {
    pub(crate) fn new(larder: &Process, catalogue: &Arc<Catalogue>) -> Self {
        Self {
            addr: larder.addr,
            admin: larder.admin,
            catalogue: Arc::clone(catalogue),
            tally: Arc::default(),
            is_dying: Arc::default(),
            is_over: Arc::default(),
            posts_percent: 8,
            has_purges: false,
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
            if !self.one_request(&mut connection, &mut draws).await {
                return;
            }
        }
    }

    /// One request that is drawn: whether the connection can go on.
    pub(crate) async fn one_request(&self, connection: &mut Connection, draws: &mut Draws) -> bool {
        // Some are asked for much more often than others.
        let count = self.catalogue.resources.len() as u64;
        let among = draws.below(count) + 1;
        let resource = self.catalogue.resources[draws.below(among) as usize];
        if self.has_purges && draws.below(100) < PURGES_PERCENT {
            let is_soft = draws.below(3) == 0;
            let purge = match draws.below(PURGES_PER_TAG) {
                0 => Purge { kind: PurgeKind::Tag, like: self.catalogue.resources[0], is_soft },
                _ => Purge { kind: PurgeKind::Url, like: resource, is_soft },
            };
            return self.purge(connection, purge).await;
        }
        match draws.below(100) {
            n if n < self.posts_percent => self.post(connection, resource).await,
            n if n < 30 => {
                let asked = Asked::part(&self.catalogue, resource, draws);
                self.get(connection, asked).await
            }
            n if n < 36 => {
                let version = self.catalogue.version(resource);
                self.get(connection, Asked::unless(&self.catalogue, resource, version)).await
            }
            _ => {
                let flavour = draws.one_of(&["plain", "sweet"]);
                self.get(connection, Asked::whole(&self.catalogue, resource, flavour)).await
            }
        }
    }

    async fn post(&self, connection: &mut Connection, resource: Resource) -> bool {
        let request = Request::new("POST", &resource.target(), resource.host()).body("");
        let Some(response) = self.answer(connection, &request).await else { return false };
        assert_eq!(response.status, 200, "{response}");
        self.catalogue.acknowledge(resource, version_of(&response).unwrap(), "a POST");
        self.tally.posts.fetch_add(1, Ordering::Relaxed);
        true
    }

    async fn purge(&self, connection: &mut Connection, purge: Purge) -> bool {
        let changed = purge.change(&self.catalogue);
        let request = purge.request(AskedAt::Listener);
        let Some(response) = self.answer(connection, &request).await else { return false };
        assert_eq!(response.status, 200, "{purge:?}: {response}");
        changed.acknowledge(&self.catalogue, |_| false);
        self.tally.purges.fetch_add(1, Ordering::Relaxed);
        true
    }

    async fn get(&self, connection: &mut Connection, asked: Asked) -> bool {
        let Some(response) = self.answer(connection, &asked.request()).await else { return false };
        if let Err(wrong) = asked.check(&self.catalogue, &response) {
            let url = resource_in_query(&asked.resource);
            let explained = get(self.admin, &format!("/explain?url={url}")).await;
            panic!("{wrong}\n{}", String::from_utf8_lossy(&explained.body));
        }
        let is_of_store = is_hit(&response) || self.may_cut_fills.load(Ordering::SeqCst);
        if response.end != End::Complete && is_of_store && self.may_cut_hits.load(Ordering::SeqCst) {
            self.tally.cut.fetch_add(1, Ordering::Relaxed);
            *connection = connect(self.addr).await;
            return true;
        }
        if response.end != End::Complete {
            if !self.may_break() && self.is_let_go().await {
                *connection = connect(self.addr).await;
                return true;
            }
            assert!(self.may_break(), "cut while larder was alive: {asked:?}, {response}");
            return false;
        }
        self.tally.answers.fetch_add(1, Ordering::Relaxed);
        self.tally.hits.fetch_add(u64::from(is_hit(&response)), Ordering::Relaxed);
        *self.tally.paths.lock().entry(Path::of(&response)).or_default() += 1;
        true
    }

    /// Whether larder has cut one more client of a large body than is known here. Its store let go of that, because readers had more of
    /// what is gone than they may, and the origin had the rest of another version only.
    async fn is_let_go(&self) -> bool {
        let answer = within("metrics", get(self.admin, "/metrics")).await;
        let metrics = Metrics::read(String::from_utf8(answer.body).unwrap());
        let cut = metrics.value("larder_slow_readers_total{outcome=\"cut\"}").unwrap_or(0.0) as u64;
        let is_one_more = |known: u64| (known < cut).then_some(known + 1);
        self.tally.let_go.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_one_more).is_ok()
    }

    /// What was answered, whole or not; `None` where larder was dying and nothing came.
    async fn answer(&self, connection: &mut Connection, request: &Request) -> Option<Response> {
        for _ in 0..CUTS_IN_A_ROW_MAX {
            let started = std::time::Instant::now();
            let answered = within("an answer", connection.exchange(request)).await;
            let took_ms = started.elapsed().as_millis() as u64;
            self.tally.longest_ms.fetch_max(took_ms, Ordering::Relaxed);
            match answered {
                Ok(response) => return Some(response),
                Err(_) if self.may_cut_hits.load(Ordering::SeqCst) => {
                    // Cut before its head: it is asked again on another connection. What is stored may break off, and then the
                    // same body while it arrives.
                    self.tally.cut.fetch_add(1, Ordering::Relaxed);
                    *connection = connect(self.addr).await;
                }
                Err(error) => {
                    assert!(self.may_break(), "{error}: {} {}", request.method, request.target);
                    return None;
                }
            }
        }
        panic!("cut {CUTS_IN_A_ROW_MAX} times: {} {}", request.method, request.target);
    }
}

/// The URL of a resource as the query of another.
fn resource_in_query(resource: &Resource) -> String {
    resource.url().replace(':', "%3A").replace('/', "%2F")
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
