//! Purges by the admin address: the API, and the words of Fastly's and Cloudflare's clients.
//!
//! In: a request that the guard has let in, and its content. Out: what it wants purged ([`question`]), or everything that is wrong
//! with it; and the answer in the form that its sender expects. What is purged is the running larder's affair.
//! A browser can be made to send requests here by a page elsewhere. So a change needs what no page can send without asking first:
//! `DELETE`, JSON content, or a field with a token. One that says it comes from another site is refused always.

pub(crate) mod api;
mod cloudflare;
mod fastly;
mod json;
pub(crate) mod question;
mod wanted;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use larder_http::body::Body;
use larder_http::message::{RequestHead, Response};

use crate::answer::{JSON, Refused, content, refusal, refusal_as, words};
use api::PurgeApi;
use question::{NotPurged, PurgeReceipt};
use wanted::{Form, Problem, Wanted};

/// The longest content that is read, in bytes.
pub(crate) const CONTENT_MAX: usize = 1 << 20;
const FASTLY_KEY: HeaderName = HeaderName::from_static("fastly-key");
/// Beside X-Auth-Email, which names a person and is not read.
const CLOUDFLARE_KEY: HeaderName = HeaderName::from_static("x-auth-key");
/// Names a purge and says how many responses it has removed so far.
const RECEIPT: HeaderName = HeaderName::from_static("larder-receipt");

impl PurgeApi {
    /// The field in which clients of this API show their token, beside Authorization.
    pub(crate) fn token_field(self) -> Option<HeaderName> {
        match self {
            Self::Own => None,
            Self::Fastly => Some(FASTLY_KEY),
            Self::Cloudflare => Some(CLOUDFLARE_KEY),
        }
    }

    /// The answer to a request that is not read at all. Clients look for the reason where their API has it.
    pub(crate) fn turn_away(self, refused: Refused) -> Response {
        let (status, _, message) = words(refused);
        let problems = [Problem::new("", message)];
        match self {
            Self::Own => refusal(refused),
            Self::Fastly => refusal_as(refused, &fastly::refusal(status, &problems)),
            Self::Cloudflare => refusal_as(refused, &cloudflare::refusal(&problems)),
        }
    }

    /// Reads what is asked.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(self, head: &RequestHead, content: &[u8]) -> Result<Wanted, Vec<Problem>> {
        match self {
            Self::Own => json::read(content),
            Self::Fastly => fastly::read(head, content),
            Self::Cloudflare => cloudflare::read(head, content),
        }
    }

    /// The answer to a request that something is wrong with.
    pub(crate) fn refuse(self, problems: &[Problem]) -> Response {
        self.refuse_with(StatusCode::BAD_REQUEST, problems)
    }

    fn refuse_with(self, status: StatusCode, problems: &[Problem]) -> Response {
        let json = match self {
            Self::Own => {
                let problems: Vec<_> = problems
                    .iter()
                    .map(|problem| serde_json::json!({ "path": problem.path, "message": problem.message }))
                    .collect();
                serde_json::json!({ "error": "purge", "problems": problems })
            }
            Self::Fastly => fastly::refusal(status, problems),
            Self::Cloudflare => cloudflare::refusal(problems),
        };
        content(status, JSON, json.to_string())
    }

    /// The answer to what was asked.
    pub(crate) fn answer(self, wanted: &Wanted, made: Result<PurgeReceipt, NotPurged>) -> Response {
        let refused = |status, message: String| self.refuse_with(status, &[Problem::new("", message)]);
        match made {
            Ok(receipt) => {
                let json = match &wanted.form {
                    Form::Own => receipt.json.clone(),
                    Form::FastlyOne => fastly::done(&receipt.id).to_string().into(),
                    Form::FastlyAll => fastly::done_all().to_string().into(),
                    Form::FastlyKeys(keys) => fastly::done_keys(keys, &receipt.id).to_string().into(),
                    Form::Cloudflare => cloudflare::done(&receipt.id).to_string().into(),
                };
                with_receipt(content(StatusCode::OK, JSON, json), &receipt)
            }
            Err(NotPurged::Wrong(wrong)) => {
                let path = |number: usize| wanted.paths.get(number).cloned().unwrap_or_default();
                let problems = wrong.into_iter().map(|(number, why)| Problem::new(path(number), why));
                self.refuse(&problems.collect::<Vec<_>>())
            }
            Err(NotPurged::NoSite(site)) => {
                self.refuse(&[Problem::new("site", format!("there is no site with the host {site:?}"))])
            }
            Err(NotPurged::Busy) => {
                refused(StatusCode::TOO_MANY_REQUESTS, "too many purges are under way".to_owned())
            }
            Err(NotPurged::NotHeld { receipt, why } | NotPurged::Incomplete { receipt, why }) => {
                let response = match self {
                    Self::Own => content(StatusCode::SERVICE_UNAVAILABLE, JSON, receipt.json.clone()),
                    _ => refused(StatusCode::SERVICE_UNAVAILABLE, why),
                };
                with_receipt(response, &receipt)
            }
            Err(NotPurged::Broken(why)) => refused(StatusCode::INTERNAL_SERVER_ERROR, why),
        }
    }
}

/// Names the purge in the field that every answer to one has.
pub(crate) fn with_receipt(mut response: Response, receipt: &PurgeReceipt) -> Response {
    let text = format!("{}; removed={}", receipt.id, receipt.removed);
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.head.fields.insert(RECEIPT, value);
    }
    response
}

/// Whether a page of another site cannot have made a browser send this change: one of this address has its host and port as origin.
pub(crate) fn may_change(head: &RequestHead) -> bool {
    let fields = &head.fields;
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(head.authority.as_str()))
    };
    let has_token = fields.contains_key(AUTHORIZATION) || fields.contains_key(FASTLY_KEY);
    fields.get_all(ORIGIN).iter().all(is_own)
        && (head.method == Method::DELETE || is_json(fields) || has_token)
}

fn is_json(fields: &HeaderMap) -> bool {
    let mut types = fields.get_all(CONTENT_TYPE).iter();
    let (Some(of), None) = (types.next(), types.next()) else { return false };
    let of = of.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    of.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Reads a request's content; `None` where it is longer than [`CONTENT_MAX`] or breaks off.
///
/// # Cancel safety
/// What was read is lost, and with it the request.
pub(crate) async fn content_of(body: Body) -> Option<Bytes> {
    let mut stream = match body {
        Body::Empty => return Some(Bytes::new()),
        Body::Full(bytes) => return Some(bytes),
        Body::Pieces { .. } => return None,
        Body::Stream { stream, .. } => stream,
    };
    let mut read = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|cx| stream.as_mut().poll_frame(cx)).await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if read.len() + data.len() > CONTENT_MAX {
            return None;
        }
        read.extend_from_slice(&data);
    }
    Some(read.freeze())
}

#[cfg(test)]
mod tests;
