//! Two workers that keep pages, and beside each of them one that never does: it tells what look-ups alone give.
//!
//! In: requests. Out: their answers, taken apart so that they can be compared. All four share their stores; the two of a pair
//! always have the same plan.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::{HeaderName, HeaderValue, StatusCode};
use larder_cache::purge::{Mode, Scope, Selector};
use larder_cache::template::{Assemble, TemplatePolicy};
use larder_http::body::{Body, BodyError};
use larder_http::message::{Peer, Request, RequestHead, Response};
use larder_http::time::Clock;
use larder_http::trailers;
use larder_listen::Interims;
use larder_observe::{Diagnostics, Metrics};
use larder_store::{MemoryStoreSettings, Store};

use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::purges::{Dialect, Order, Sender};
use crate::serve::{Serving, serve};
use crate::settings::{
    Access, FieldEdits, OriginChoice, ProxySettings, RuleMatch, RuleNumber, RuleSettings, SiteSettings,
    ValueMatch,
};
use crate::testing_proxy::app;
use crate::worker::Worker;

const SETTINGS: MemoryStoreSettings = MemoryStoreSettings { memory: 4 << 20, max_object: 1 << 20 };

/// A worker that keeps pages, and its twin that does not.
pub(super) struct Pair {
    keeps: Arc<Worker>,
    looks: Arc<Worker>,
}

pub(super) struct Workers {
    pub(super) clock: Clock,
    pub(super) pairs: [Pair; 2],
    proxy: Arc<Proxy>,
    metrics: Arc<Metrics>,
    stores: [Arc<Store>; 2],
    origin: OriginChoice,
}

/// An answer, as a client has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) status: StatusCode,
    /// In order.
    fields: Vec<(String, String)>,
    length: Option<u64>,
    pub(super) content: String,
    is_broken: bool,
}

impl Given {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    pub(super) fn is_hit(&self) -> bool {
        self.field("cache-status").contains("; hit")
    }

    /// Whether all of it comes from memory, and nothing of it is stale. In the first second of being stale a part is not told from one
    /// in its last second of being fresh.
    pub(super) fn is_fresh(&self) -> bool {
        let status = self.field("cache-status");
        self.is_hit() && status.contains("detail=assembled") && !status.contains("ttl=0;")
    }
}

/// Reads an answer to its end.
pub(super) async fn read(response: Response) -> Given {
    let Response { head, body, .. } = response;
    let (status, length) = (head.status, body.length());
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut fields: Vec<_> =
        head.into_fields().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    fields.sort();
    let mut content = Vec::new();
    let end: Result<(), BodyError> = match body {
        Body::Empty => Ok(()),
        Body::Full(bytes) => {
            content.extend_from_slice(&bytes);
            Ok(())
        }
        Body::Pieces { owner, range } => {
            content.extend_from_slice(&owner.pieces().concat()[range.start as usize..range.end as usize]);
            Ok(())
        }
        Body::Stream { mut stream, .. } => loop {
            match std::future::poll_fn(|cx| stream.as_mut().poll_frame(cx)).await {
                None => break Ok(()),
                Some(Ok(frame)) => content.extend(frame.into_data().into_iter().flatten()),
                Some(Err(error)) => break Err(error),
            }
        },
    };
    let content = String::from_utf8(content).unwrap();
    Given { status, fields, length, content, is_broken: end.is_err() }
}

impl Pair {
    /// What the worker that keeps pages says.
    pub(super) fn keeps(&self, head: &RequestHead, client: IpAddr) -> Serving {
        served(&self.keeps, head, client)
    }

    /// What look-ups alone give.
    pub(super) fn looks(&self, head: &RequestHead, client: IpAddr) -> Serving {
        self.looks.kept_pages.forget_all();
        served(&self.looks, head, client)
    }
}

fn served(worker: &Arc<Worker>, head: &RequestHead, client: IpAddr) -> Serving {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let request = Request {
        head: head.clone(),
        body: Body::Empty,
        websocket: false,
        trailers: trailers::Wish::default(),
        peer: Peer::clear(SocketAddr::from((client, 1)), local),
    };
    serve(worker, request, &Interims::default())
}

impl Workers {
    /// In front of the application at `addr`.
    pub(super) fn new(addr: SocketAddr) -> Self {
        let clock = Clock::default();
        let stores = [Store::in_memory(&SETTINGS), Store::in_memory(&SETTINGS)];
        let origin = app(addr);
        let metrics = Arc::new(Metrics::new(4, crate::vocabulary(), clock.now().wall, "0"));
        let diagnostics = Diagnostics::to(clock.clone(), std::io::sink()).unwrap();
        let proxy = Proxy::new(clock.clone(), Arc::clone(&metrics), diagnostics);
        proxy.recover(&stores, &|_| Default::default());
        let plan = plan(&stores, &origin, &metrics, 0);
        let worker = |index| Arc::new(Worker::new(&proxy, index, Arc::clone(&plan)).unwrap());
        let pairs =
            [(0, 2), (1, 3)].map(|(keeps, looks)| Pair { keeps: worker(keeps), looks: worker(looks) });
        Self { clock, pairs, proxy, metrics, stores, origin }
    }

    /// A pair takes over the plan of this number.
    pub(super) fn reload(&self, pair: usize, number: u64) {
        let plan = plan(&self.stores, &self.origin, &self.metrics, number);
        for worker in [&self.pairs[pair].keeps, &self.pairs[pair].looks] {
            worker.adopt(worker.prepare(Arc::clone(&plan)).unwrap());
        }
    }

    pub(super) async fn purge(&self, selector: Selector, is_soft: bool) {
        let order = Order {
            selectors: vec![selector],
            mode: if is_soft { Mode::Soft } else { Mode::Hard },
            scope: Arc::new(Scope::any()),
            here: Vec::new(),
            takes_patterns: true,
            wait: None,
        };
        let sender = Sender { dialect: Dialect::Api, peer: None, by: "admin" };
        self.pairs[0].keeps.purge(&order, sender).await.unwrap();
    }

    /// Predicates that all have heard of are forgotten.
    pub(super) fn sweep(&self) {
        let stores: Vec<_> = self.stores.iter().map(Arc::downgrade).collect();
        self.proxy.sweep_memory(&stores);
    }

    /// Fetches under way.
    pub(super) fn flights(&self) -> u64 {
        self.proxy.gauges().flights
    }
}

/// The plan of this number. Each has rules of its own, and some of them show in answers.
fn plan(stores: &[Arc<Store>; 2], origin: &OriginChoice, metrics: &Metrics, number: u64) -> Arc<Plan> {
    let tells = number.is_multiple_of(2);
    let said = (HeaderName::from_static("x-plan"), HeaderValue::from(number));
    let edits =
        || FieldEdits { remove: Vec::new(), set: if tells { Vec::new() } else { vec![said.clone()] } };
    let rule = |store: &Arc<Store>| RuleSettings {
        number: RuleNumber::unique(),
        response: edits(),
        debug: number % 3 == 2,
        ..crate::testing::rule(store)
    };
    let on = |path: &str| RuleMatch { paths: vec![format!("^(?s-u){path}$")], ..RuleMatch::default() };
    let [first, second] = stores;
    let mut off = rule(first);
    off.policy.templates = TemplatePolicy { assemble: Assemble::Off, ..TemplatePolicy::default() };
    let with_range =
        RuleMatch { fields: vec![(http::header::RANGE, ValueMatch::Present(true))], ..on("/page/6") };
    let ahead = RuleSettings { refresh_ahead: true, ..rule(first) };
    let site = SiteSettings {
        name: "all".into(),
        route: metrics.route("all"),
        hosts: Vec::new(),
        origin: Some(0),
        root: None,
        websocket: false,
        tls: None,
        purge: Access::Closed,
        rules: [
            // Where a rule asks for fields, fragments are aimed for each request.
            (number % 4 == 3).then_some((with_range, Arc::new(off))),
            Some((on("/(part/ahead|page/6)"), Arc::new(ahead))),
            Some((on("/part/(short|own)"), Arc::new(rule(second)))),
        ]
        .into_iter()
        .flatten()
        .collect(),
        otherwise: Arc::new(rule(first)),
    };
    Plan::new(ProxySettings {
        sites: vec![site],
        origins: vec![origin.clone()],
        stores: stores.to_vec(),
        trusted: Arc::new(|_| false),
        orphan_time: ProxySettings::ORPHAN_TIME,
        hit_for_miss: ProxySettings::HIT_FOR_MISS,
        purges: 16,
    })
    .unwrap()
}
