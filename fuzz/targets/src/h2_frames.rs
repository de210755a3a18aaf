//! Connections of HTTP/2: whatever frames a client sends, what comes back is frames, and no request is whole that was not sent as one.
//!
//! In: what follows a client's preface and its first SETTINGS. Out: nothing, or a panic that says what does not hold. Time jumps, so
//! limits cost nothing.

use std::collections::BTreeMap;
use std::future::{Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Delivery, Peer, Request, Response, ResponseHead};
use larder_listen::{Accepted, Drain, Interims, Listener, Metrics, Service, Settings, serve_connection};

use crate::converse;

const BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;
/// What larder takes, and what clients take unless they say more. Clients that do are passed over here.
const PAYLOAD_MAX: usize = 16_384;

/// Answers with what the target asks for, once it has read all content in a task of its own.
#[derive(Clone, Default)]
struct Answers {
    calls: Arc<AtomicUsize>,
    reports: Arc<AtomicUsize>,
    whole: Arc<AtomicUsize>,
}

impl Service for Answers {
    type Receipt = ();

    type Call = Ready<(Response, ())>;

    fn call(&self, request: Request, _: &Interims) -> Self::Call {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let whole = Arc::clone(&self.whole);
        match request.body {
            Body::Stream { mut stream, .. } => drop(tokio::spawn(async move {
                while let Some(frame) = poll_fn(|cx| stream.as_mut().poll_frame(cx)).await {
                    if frame.is_err() {
                        return;
                    }
                }
                whole.fetch_add(1, Ordering::SeqCst);
            })),
            _ => drop(whole.fetch_add(1, Ordering::SeqCst)),
        }
        let length = request.head.target.as_str().len() * 1000;
        let mut fields = HeaderMap::new();
        fields.insert("x-length", HeaderValue::from(length));
        let content = Body::Full(Bytes::from(vec![b'x'; length]));
        ready((Response::new(ResponseHead::new(StatusCode::OK, fields), content), ()))
    }

    fn delivered(&self, (): (), _: Delivery) {
        self.reports.fetch_add(1, Ordering::SeqCst);
    }
}

/// The frames of `bytes`: type, flags, stream and payload. The last may be cut.
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (u8, u8, u32, &[u8])> {
    std::iter::from_fn(move || {
        let &[a, b, c, kind, flags, s, t, u, v] = bytes.first_chunk::<9>()?;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let payload = &bytes[9..bytes.len().min(9 + length)];
        bytes = &bytes[9 + payload.len()..];
        Some((kind, flags, u32::from_be_bytes([s & 0x7f, t, u, v]), payload))
    })
}

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let service = Answers::default();
    let peer = Peer::clear(([127, 0, 0, 1], 40_000).into(), ([127, 0, 0, 1], 80).into());
    let served = service.clone();
    let answers = converse(&[BEGINNING, input].concat(), |io| async move {
        let drain = Drain::new();
        let Listener { transport, protocols, .. } = peer.local.into();
        let (settings, metrics) = (Arc::new(Settings::default()), Arc::new(Metrics::default()));
        let accepted = Accepted { stream: io, peer, transport, protocols };
        serve_connection(accepted, settings, served, metrics, drain.signal()).await;
        // Readers hear of the end.
        tokio::task::yield_now().await;
    });
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    assert_eq!(count(&service.calls), count(&service.reports), "a report for each answer");
    let ends =
        frames(input).filter(|(kind, flags, ..)| matches!(*kind, DATA | HEADERS) && flags & END_STREAM != 0);
    assert!(count(&service.whole) <= ends.count(), "a request was whole without an end");
    let mut ended = BTreeMap::new();
    for (kind, flags, stream, payload) in frames(&answers) {
        let is_of_client = frames(input).any(|(kind, _, other, _)| kind == 4 && other == 0);
        assert!(payload.len() <= PAYLOAD_MAX || is_of_client, "a frame of {} bytes", payload.len());
        assert!(stream == 0 || stream % 2 == 1, "a stream of larder's own");
        if stream != 0 && matches!(kind, DATA | HEADERS | RST_STREAM) {
            let is_reset = kind == RST_STREAM;
            match ended.get(&stream) {
                None => {}
                // RFC 9113 8.1: it may be told that no more of the request is needed.
                Some(false) if is_reset => {}
                Some(_) => panic!("frame {kind} behind the end of stream {stream}"),
            }
            if is_reset || flags & END_STREAM != 0 {
                ended.insert(stream, is_reset);
            }
        }
    }
}
