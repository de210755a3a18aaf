//! The listener with one fixed answer behind it, on one thread: what a hit costs before there is a cache.
//!
//! `cargo run --release -p larder-listen --example fixed -- 127.0.0.1:8080 134`
#![allow(clippy::disallowed_macros, reason = "an example may panic where nobody reads it")]

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_http::body::Body;
use larder_http::message::{PreparedFields, Request, Response, ResponseHead};
use larder_listen::{Drain, Interims, Metrics, Service, Settings, Slots, accept_loop, bind};

#[derive(Clone)]
struct Fixed {
    fields: Arc<PreparedFields>,
    body: Bytes,
}

impl Service for Fixed {
    type Receipt = ();

    type Call = std::future::Ready<(Response, ())>;

    fn call(&self, _: Request, _: &Interims) -> Self::Call {
        let mut head = ResponseHead::new(StatusCode::OK, HeaderMap::new());
        head.stored = Some(self.fields.clone());
        std::future::ready((Response::new(head, Body::Full(self.body.clone())), ()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let body_bytes: usize = arguments.next().unwrap_or_else(|| "134".to_owned()).parse()?;
    let mut fields = HeaderMap::new();
    fields.insert("content-type", HeaderValue::from_static("text/plain"));
    fields.insert("date", HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
    let service =
        Fixed { fields: Arc::new(PreparedFields::new(fields)), body: vec![b'x'; body_bytes].into() };
    let mut bound = bind(address, 1)?;
    println!("http://{}/", bound.listener.address);
    let socket = bound.sockets.pop().ok_or("no socket")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(accept_loop(
        socket,
        Arc::new(ArcSwap::from_pointee(Settings::default())),
        service,
        Slots::new(1000),
        Arc::new(Metrics::default()),
        Drain::new().signal(),
        Arc::default(),
    ))?;
    Ok(())
}
