//! Answers to an authority of certificates that looks for a proof (RFC 8555 8.3).
//!
//! In: a request in clear text, before it has a site. Out: the proof of a token that is pending, or nothing: then the request goes on, as the path may be the site's own.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Peer, RequestHead, Response, ResponseHead};

use crate::worker::Worker;

/// Below it are the tokens.
const PLACE: &str = "/.well-known/acme-challenge/";

/// The answer that is a proof.
pub(super) fn of(worker: &Worker, head: &RequestHead, peer: &Peer) -> Option<Response> {
    let proofs = worker.proxy.proofs.get()?;
    let token = head.target.path().strip_prefix(PLACE)?;
    if peer.tls.is_some() || !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    Some(answer(proofs.proof(token)?))
}

fn answer(proof: Arc<str>) -> Response {
    let mut fields = HeaderMap::with_capacity(2);
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Response::new(ResponseHead::new(StatusCode::OK, fields), Body::Full(proof.as_bytes().to_vec().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_the_content_and_nobody_stores_it() {
        let response = answer("token.key".into());
        assert_eq!(response.head.status, 200);
        assert_eq!(response.head.fields[CACHE_CONTROL], "no-store");
        assert!(matches!(&response.body, Body::Full(body) if &body[..] == b"token.key"));
    }
}
