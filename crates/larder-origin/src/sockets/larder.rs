//! larder's side of the wire: an origin as it is configured, its state, and the requests that go to it.
//!
//! Waiting is for events, never for time to pass.

use std::sync::Arc;

use crate::sockets::contents::read;
use crate::sockets::origins::address;
use crate::sockets::patience::PATIENCE;
use crate::{
    Affinity, Origin, OriginFailure, OriginRequest, OriginSettings, OriginState, ServerAddress, ServerState,
};
use bytes::Bytes;
use http::{HeaderMap, Method};
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_testkit::origin::Origin as ScriptedOrigin;

/// larder's side of the wire.
pub struct Larder {
    pub origin: Arc<Origin>,
    pub state: Arc<OriginState>,
}

impl Larder {
    /// In front of a scripted origin.
    pub fn before(origin: &ScriptedOrigin, change: impl FnOnce(&mut OriginSettings)) -> Self {
        Self::new(&address(origin), change)
    }

    pub fn new(address: &ServerAddress, change: impl FnOnce(&mut OriginSettings)) -> Self {
        let mut settings = OriginSettings::new("app", vec![address.clone()]);
        change(&mut settings);
        Self::with(settings)
    }

    /// In front of several servers.
    pub fn with(settings: OriginSettings) -> Self {
        let state = OriginState::new();
        let origin = Arc::new(Origin::new(Arc::new(settings), state.clone()).unwrap());
        Self { origin, state }
    }

    /// Another worker, or the same one after a reload.
    pub fn after(&self, settings: impl Into<Arc<OriginSettings>>) -> Self {
        let origin = Arc::new(Origin::new(settings.into(), self.state.clone()).unwrap());
        Self { origin, state: self.state.clone() }
    }

    /// The content of an answer to `request`.
    pub async fn text(&self, request: OriginRequest) -> Result<String, OriginFailure> {
        let response = self.origin.send(request).await?;
        let (content, outcome) = read(response.body).await;
        outcome.unwrap();
        Ok(String::from_utf8(content).unwrap())
    }

    /// The states of all servers' addresses.
    pub fn states(&self) -> Vec<ServerState> {
        self.state.servers().iter().map(|server| server.state).collect()
    }

    /// Waits until those are `expected`.
    pub async fn become_(&self, expected: &[ServerState]) {
        let waiting = async {
            while self.states() != expected {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("{:?} stays, expected {expected:?}", self.state.servers());
        }
    }

    /// Ends this side and waits until nothing of it is left.
    pub async fn ends_without_leaks(self) {
        let Self { origin, state } = self;
        drop(origin);
        state.is_quiet().await;
    }
}

/// Gauges that come back to zero, however many turns of the runtime it takes.
pub trait Quiet {
    async fn is_quiet(&self);
}

impl Quiet for Arc<OriginState> {
    async fn is_quiet(&self) {
        let quiet = async {
            while self.counters().connections_open() + self.counters().in_flight() > 0 {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, quiet).await.is_err() {
            panic!(
                "left behind: {} connections, {} exchanges",
                self.counters().connections_open(),
                self.counters().in_flight()
            );
        }
    }
}

/// The value of a metric, labels ignored and summed.
pub fn metric(state: &OriginState, wanted: &str) -> u64 {
    let mut sum = 0;
    state.for_each(&mut |name, _, _, value| {
        if name == wanted {
            sum += value;
        }
    });
    sum
}

pub fn request(method: Method, target: &'static str, body: Body) -> OriginRequest {
    OriginRequest {
        method,
        target: Target::parse(Bytes::from_static(target.as_bytes())).unwrap(),
        authority: Authority::parse(Bytes::from_static(b"app.example"), Scheme::Http).unwrap(),
        fields: HeaderMap::new(),
        body,
        trailers: Default::default(),
        websocket: false,
        interims: None,
        affinity: Affinity::default(),
        peer: None,
        progress: None,
        received: None,
    }
}

pub fn get(target: &'static str) -> OriginRequest {
    request(Method::GET, target, Body::Empty)
}
