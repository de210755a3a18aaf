//! One exchange over cleartext HTTP/2 with prior knowledge (RFC 9113 3.3), by the `h2` crate.
//!
//! In: a [`Request`], whose Host becomes `:authority`. Out: a [`Response`] as HTTP/1 would give it, with version
//! `HTTP/2`. A connection carries one exchange and is then closed.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use tokio::net::TcpStream;

use super::{Content, End, InterimResponse, Progress, Request, Response};
use crate::Error;
use crate::wire::{Fields, latin1, to_bytes};

/// Sends `request` on a connection of its own and reads the answer.
///
/// # Errors
/// [`Error::Http2`] where no final head comes, [`Error::Malformed`] for a request that HTTP/2 cannot say,
/// [`Error::TimedOut`] after `limit` for all of it.
pub async fn exchange_http2(
    addr: SocketAddr,
    request: &Request,
    progress: &Progress,
    limit: Duration,
) -> Result<Response, Error> {
    tokio::time::timeout(limit, exchange(addr, request, progress))
        .await
        .map_err(|_| Error::TimedOut("HTTP/2 exchange"))?
}

async fn exchange(addr: SocketAddr, request: &Request, progress: &Progress) -> Result<Response, Error> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = h2::client::handshake(stream).await?;
    // The connection's own error reaches the stream too, and is reported there.
    let driver = tokio::spawn(async move { drop(connection.await) });
    let answer = exchange_on(sender, request, progress).await;
    driver.abort();
    answer
}

async fn exchange_on(
    sender: h2::client::SendRequest<Bytes>,
    request: &Request,
    progress: &Progress,
) -> Result<Response, Error> {
    let mut sender = sender.ready().await?;
    let body = match &request.content {
        Content::None => None,
        Content::Length(body) | Content::Chunked(body) | Content::Chunks(body, _) => Some(body.clone()),
    };
    let (mut answer, mut stream) = sender.send_request(head_of(request)?, body.is_none())?;
    if let Some(body) = body {
        stream.send_data(body, request.trailers.is_empty())?;
        if !request.trailers.is_empty() {
            stream.send_trailers(trailers_of(request)?)?;
        }
    }
    let mut interim = Vec::new();
    while let Some(head) = poll_fn(|cx| answer.poll_informational(cx)).await {
        let head = head?;
        interim.push(InterimResponse { status: head.status().as_u16(), fields: fields_of(head.headers()) });
    }
    let (head, mut body) = answer.await?.into_parts();
    progress.begin();
    let mut end = End::Complete;
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                // Room is given back at once: only what is held here would be lost.
                let _ = body.flow_control().release_capacity(piece.len());
                progress.take(&piece).await;
            }
            Err(error) => {
                end = End::Broken(error.to_string());
                break;
            }
        }
    }
    let trailers = match end {
        End::Complete => body.trailers().await?.map(|map| fields_of(&map)).unwrap_or_default(),
        End::Broken(_) => Fields::default(),
    };
    Ok(Response {
        version: "HTTP/2".to_owned(),
        status: head.status.as_u16(),
        reason: String::new(),
        fields: fields_of(&head.headers),
        body: progress.body(),
        trailers,
        interim,
        end,
    })
}

fn head_of(request: &Request) -> Result<http::Request<()>, Error> {
    let wrong = |found: &str| Error::malformed("request for HTTP/2", found.as_bytes());
    let authority = request.host.as_deref().unwrap_or_default();
    let uri: Uri =
        format!("http://{authority}{}", request.target).parse().map_err(|_| wrong(&request.target))?;
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| wrong(&request.method))?;
    let mut head = http::Request::builder().method(method).uri(uri).version(http::Version::HTTP_2);
    for (name, value) in &request.fields {
        head = head.header(name.as_str(), to_bytes(value));
    }
    head.body(()).map_err(|error| wrong(&error.to_string()))
}

fn trailers_of(request: &Request) -> Result<HeaderMap, Error> {
    let mut map = HeaderMap::new();
    for (name, value) in &request.trailers {
        let wrong = || Error::malformed("trailer for HTTP/2", name.as_bytes());
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let value = HeaderValue::from_bytes(&to_bytes(value)).map_err(|_| wrong())?;
        map.append(name, value);
    }
    Ok(map)
}

fn fields_of(map: &HeaderMap) -> Fields {
    Fields(map.iter().map(|(name, value)| (name.as_str().to_owned(), latin1(value.as_bytes()))).collect())
}
