//! Contents of messages: read to their end, or made of what the test sends when it likes.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::sockets::patience::PATIENCE;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use larder_http::body::{Body, BodyError};
use tokio::sync::mpsc;

/// Reads a body to its end; what came before a break is kept.
pub async fn read(body: Body) -> (Vec<u8>, Result<(), BodyError>) {
    let mut bytes = Vec::new();
    let mut stream = match body {
        Body::Empty => return (bytes, Ok(())),
        Body::Stream { stream, .. } => stream,
        other => panic!("an origin's body is never {other:?}"),
    };
    let reading = async {
        while let Some(frame) = stream.frame().await {
            match frame {
                Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    let outcome = tokio::time::timeout(PATIENCE, reading).await.expect("the body ends");
    (bytes, outcome)
}

/// Reads a body that ends well, and what comes behind its data.
pub async fn read_all(body: Body) -> (Vec<u8>, HeaderMap) {
    let Body::Stream { stream, .. } = body else { panic!("not a stream: {body:?}") };
    let collected = tokio::time::timeout(PATIENCE, stream.collect()).await.expect("the body ends");
    let collected = collected.expect("it ends well");
    let trailers = collected.trailers().cloned().unwrap_or_default();
    (collected.to_bytes().to_vec(), trailers)
}

/// A body whose frames, trailers among them, the test sends when it likes. Dropping the sender ends it.
pub fn frames() -> (mpsc::Sender<Frame<Bytes>>, Body) {
    let (sender, receiver) = mpsc::channel(64);
    (sender, Body::Stream { length: None, stream: Box::pin(Frames(receiver)) })
}

struct Frames(mpsc::Receiver<Frame<Bytes>>);

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// A body whose pieces the test sends when it likes. Dropping the sender ends it.
pub struct Piecemeal(mpsc::Receiver<Result<Bytes, BodyError>>);

pub fn piecemeal(length: Option<u64>) -> (mpsc::Sender<Result<Bytes, BodyError>>, Body) {
    let (sender, receiver) = mpsc::channel(64);
    (sender, Body::Stream { length, stream: Box::pin(Piecemeal(receiver)) })
}

impl HttpBody for Piecemeal {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll_recv(cx).map(|item| item.map(|item| item.map(Frame::data)))
    }
}
