//! What a client is told when there is nothing better: a status and the fixed word for its reason.
//!
//! The word goes into `Cache-Status` (detail), the log and the metrics; the page says no more than the status does.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use larder_http::body::BodyError;
use larder_origin::OriginError;

/// An outcome that is not a response of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    /// A fixed token.
    pub(crate) detail: &'static str,
    /// No final head came: what is stale may be served where nothing forbids it.
    pub(crate) dead: bool,
    /// There was no room for the request: it was never sent.
    pub(crate) queued: bool,
}

impl Failure {
    pub(crate) const fn new(status: StatusCode, detail: &'static str) -> Self {
        Self { status, detail, dead: false, queued: false }
    }

    /// A client's content that broke off before it was passed on.
    pub(crate) fn of_content(error: BodyError) -> Self {
        let error = OriginError::ClientBody(error);
        Self::new(error.status(), error.token())
    }

    /// The fetch task ended without a word, twice.
    pub(crate) const FETCH_LOST: Self = Self::new(StatusCode::BAD_GATEWAY, "fetch-lost");
    /// The content broke off before this client was sent a byte.
    pub(crate) const BODY_BROKEN: Self = Self::new(StatusCode::BAD_GATEWAY, "body-broken");
    /// A template in a content coding that is not decoded here, or in several.
    pub(crate) const TEMPLATE_CODING: Self = Self::new(StatusCode::BAD_GATEWAY, "template-coding");
    /// A part of a template, although all of it was asked for.
    pub(crate) const TEMPLATE_PART: Self = Self::new(StatusCode::BAD_GATEWAY, "template-part");
    /// A 304 to a request without conditions.
    pub(crate) const UNASKED_NOT_MODIFIED: Self = Self::new(StatusCode::BAD_GATEWAY, "unasked-not-modified");
    /// As many clients wait for this key as may.
    pub(crate) const WAITERS_FULL: Self = Self::new(StatusCode::SERVICE_UNAVAILABLE, "waiters-full");
    /// `only-if-cached`, and it is not (RFC 9111 5.2.1.7).
    pub(crate) const ONLY_IF_CACHED: Self = Self::new(StatusCode::GATEWAY_TIMEOUT, "only-if-cached");
    /// What a page begins with is a fragment that failed, and nothing stands in for it.
    pub(crate) const FRAGMENT_FAILED: Self = Self::new(StatusCode::BAD_GATEWAY, "fragment-failed");
    /// All of a page is known, and it is longer than a page may be.
    pub(crate) const PAGE_TOO_LARGE: Self = Self::new(StatusCode::BAD_GATEWAY, "page-too-large");
    /// A template has a problem, on a rule that takes none.
    pub(crate) const TEMPLATE_INVALID: Self = Self::new(StatusCode::BAD_GATEWAY, "template-invalid");
    /// No site takes the host (RFC 9110 15.5.20).
    pub(crate) const UNKNOWN_HOST: Self = Self::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host");
    /// The site is served over TLS alone (RFC 9110 15.4.9).
    pub(crate) const HTTPS: Self = Self::new(StatusCode::PERMANENT_REDIRECT, "https");
    /// The connection was accepted under another policy for client certificates (RFC 9110 15.5.20).
    pub(crate) const TLS_POLICY: Self = Self::new(StatusCode::MISDIRECTED_REQUEST, "tls-policy");
    /// The site is to be served over TLS, and its first certificate is still being ordered.
    pub(crate) const CERTIFICATE_PENDING: Self =
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "certificate-pending");
    /// The path climbs above the root.
    pub(crate) const CLIMBING_PATH: Self = Self::new(StatusCode::BAD_REQUEST, "climbing-path");
    /// The request has passed through here too often (RFC 9110 7.6.3).
    pub(crate) const LOOP: Self = Self::new(StatusCode::LOOP_DETECTED, "loop");
    /// A site of files alone has no such file.
    pub(crate) const NO_SUCH_FILE: Self = Self::new(StatusCode::NOT_FOUND, "no-such-file");
    /// A site of files alone answers GET and HEAD.
    pub(crate) const METHOD: Self = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method");
}

/// How often requests were turned away before they had a site and a rule, by word. Rare, so one count for all workers.
#[derive(Debug, Default)]
pub(crate) struct TurnedAway([AtomicU64; Self::ALL.len()]);

impl TurnedAway {
    const ALL: [Failure; 6] = [
        Failure::UNKNOWN_HOST,
        Failure::CLIMBING_PATH,
        Failure::LOOP,
        Failure::HTTPS,
        Failure::TLS_POLICY,
        Failure::CERTIFICATE_PENDING,
    ];

    pub(crate) fn note(&self, detail: &str) {
        let mut counts = Self::ALL.iter().zip(&self.0);
        if let Some((_, count)) = counts.find(|(failure, _)| failure.detail == detail) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&'static str, u64)) {
        for (failure, count) in Self::ALL.iter().zip(&self.0) {
            visit(failure.detail, count.load(Ordering::Relaxed));
        }
    }
}
