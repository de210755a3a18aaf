//! larder's listener on a pipe.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;

use http::{HeaderMap, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Peer, Request, Response, ResponseHead};
use larder_listen::{
    Accepted, Drain, Interims, Listener, Metrics, Refusal, Service, Settings, serve_connection,
};

use crate::converse;
use crate::seen::{Log, Seen, end_to_end};

/// The host that the connection came to.
pub const LOCAL: &str = "127.0.0.1";

/// What larder made of a connection.
pub struct Reading {
    /// What the service saw.
    pub requests: Vec<Seen>,
    /// Why the parser refused, if it did.
    pub refusal: Option<Refusal>,
    /// What was written to the client.
    pub answers: Vec<u8>,
}

#[derive(Clone, Default)]
struct Recorder {
    log: Log,
    refusal: Arc<Mutex<Option<Refusal>>>,
}

impl Service for Recorder {
    type Receipt = ();

    type Call = Pin<Box<dyn Future<Output = (Response, ())> + Send>>;

    fn call(&self, request: Request, _: &Interims) -> Self::Call {
        let this = self.clone();
        Box::pin(async move { this.answer(request).await })
    }

    fn refused(&self, refusal: Refusal, _: Option<Peer>) {
        *self.refusal.lock() = Some(refusal);
    }
}

impl Recorder {
    async fn answer(&self, request: Request) -> (Response, ()) {
        let head = &request.head;
        let place = self.log.begin(Seen {
            method: head.method.as_str().to_owned(),
            target: head.target.as_str().to_owned(),
            authority: Some(head.authority.as_str().to_owned()),
            version: format!("{:?}", head.version),
            fields: end_to_end(&head.fields),
            content: Vec::new(),
            whole: false,
        });
        self.read(place, request.body).await;
        (Response::new(ResponseHead::new(StatusCode::OK, HeaderMap::new()), Body::Empty), ())
    }

    async fn read(&self, place: usize, body: Body) {
        match body {
            Body::Empty => {}
            Body::Full(data) => self.log.content(place, &data),
            Body::Pieces { .. } => unreachable!("requests are not stored"),
            Body::Stream { mut stream, .. } => {
                while let Some(frame) = poll_fn(|cx| stream.as_mut().poll_frame(cx)).await {
                    let Ok(frame) = frame else { return };
                    if let Ok(data) = frame.into_data() {
                        self.log.content(place, &data);
                    }
                }
            }
        }
        self.log.whole(place);
    }
}

/// Feeds `input` to larder's listener.
pub fn read(input: &[u8]) -> Reading {
    let recorder = Recorder::default();
    let peer = Peer::clear(([127, 0, 0, 1], 40_000).into(), ([127, 0, 0, 1], 80).into());
    let service = recorder.clone();
    let answers = converse(input, |io| async move {
        let drain = Drain::new();
        let Listener { transport, protocols, .. } = peer.local.into();
        let (settings, metrics) = (Arc::new(Settings::default()), Arc::new(Metrics::default()));
        let accepted = Accepted { stream: io, peer, transport, protocols };
        serve_connection(accepted, settings, service, metrics, drain.signal()).await;
    });
    let refusal = *recorder.refusal.lock();
    Reading { requests: recorder.log.take(), refusal, answers }
}
