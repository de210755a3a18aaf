//! Samples of exchanges, for those who look on.
//!
//! In: a request and its answer, when the answer has its head, and later how its delivery went. Out: a sample for the tap. It waits until
//! it is known whether the response is stored, as a line of the log does.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::{REFERER, USER_AGENT};
use larder_http::fields::cache_status::CacheStatus;
use larder_http::message::{Delivery, RequestHead, Response, TlsVersion};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_observe::RuleId;
use larder_observe::tap::{PendingSample, SampleEnd, SampleHead, SampleTexts, Weight};

use crate::collapse::Storing;
use crate::worker::Worker;

/// A sample that lacks its end.
pub(crate) struct Sampled {
    pub(crate) sample: PendingSample,
    /// Whether the response was stored, as far as its head told.
    pub(crate) stored: bool,
    /// The same from the end of its body, and why it was not, where it was still arriving.
    pub(crate) storing: Option<Arc<Storing>>,
}

impl Sampled {
    /// Hands it to the tap, with its end.
    #[inline(never)]
    pub(crate) fn close(self, worker: &Worker, delivery: &Delivery, took: Duration) {
        let Self { sample, stored, storing } = self;
        let end = SampleEnd { took, body_bytes: delivery.body_bytes, stored, not_stored: None };
        let (tap, index) = (&worker.tap, worker.index);
        let Some(storing) = storing else { return sample.end(tap, index, end) };
        let tap = Arc::clone(tap);
        storing.when_settled(move |outcome| {
            let (stored, not_stored) = (outcome.is_ok(), outcome.err());
            sample.end(&tap, index, SampleEnd { stored, not_stored, ..end });
        });
    }
}

/// Whose request it is, and when it came.
#[derive(Clone, Copy)]
pub(crate) struct SampledClient {
    pub(crate) started: Now,
    /// As far as trusted peers tell.
    pub(crate) client: IpAddr,
    /// Of the connection.
    pub(crate) tls: Option<TlsVersion>,
}

/// What is known of a request that was answered, for those who look on.
pub(crate) fn sample_head(
    head: &RequestHead,
    SampledClient { started, client, tls }: SampledClient,
    weight: Weight,
    (response, status): (&Response, &CacheStatus),
) -> SampleHead {
    SampleHead {
        time: started.wall,
        weight,
        rule: RuleId::default(),
        result: status.result(),
        forward: None,
        detail: status.detail,
        not_stored: None,
        stored: status.stored,
        before: None,
        status: response.head.status,
        scheme: head.scheme,
        version: head.version,
        tls,
        client,
        body_bytes: 0,
        took: Duration::ZERO,
        collapse_wait: None,
        fetched: None,
        trace: None,
    }
}

/// The texts of a request, for those who look on.
pub(crate) fn sample_texts<'a>(head: &'a RequestHead, target: &'a Target) -> SampleTexts<'a> {
    let field = |name| head.fields.get(name).map_or(&[][..], HeaderValue::as_bytes);
    SampleTexts {
        method: head.method.as_str().as_bytes(),
        host: head.authority.as_str().as_bytes(),
        target: target.as_bytes(),
        user_agent: field(USER_AGENT),
        referer: field(REFERER),
        content_type: &[],
    }
}

/// A sample of a request that was no exchange: what larder answers before there is a rule.
pub(crate) fn sample_own(
    worker: &Worker,
    head: &RequestHead,
    client: SampledClient,
    answered: (&Response, &CacheStatus),
) -> Option<Sampled> {
    let weight = worker.tap.weigh(worker.index, false)?;
    let sample_head = sample_head(head, client, weight, answered);
    let sample = PendingSample::new(sample_head, &sample_texts(head, &head.target));
    Some(Sampled { sample, stored: false, storing: None })
}
