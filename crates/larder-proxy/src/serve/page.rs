//! From a template on its way to a client to the page that the client gets.
//!
//! In: a reply with a [`Sheet`](crate::assemble::Sheet). Out: the page. It is *whole* where every part is in memory when its head is
//! written: then it has a length and an entity tag of its own, and conditions and ranges are answered from it as from any
//! representation. Else it is *open*: it is sent while parts of it are on their way, without either. The head leaves with the first
//! byte of content, so a page whose first content is a failure is a 502.

use std::sync::Arc;

use http::header::{ETAG, SET_COOKIE};
use http::{HeaderMap, Method, StatusCode};
use larder_cache::page::{PageControl, PageSaid, PartSaid, page_control};
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Forward, Outcome};
use larder_http::message::{Response, ResponseHead};
use larder_http::time::Now;
use larder_observe::PageHow;
use larder_store::StoredResponse;
use parking_lot::Mutex;

use super::context::RequestContext;
use super::fragment::{LookRecord, ServedFragments, age_of, is_private};
use super::kept::{self, KeptPage, Made, NotKept};
use super::page_answer::{page_answer, sized};
use super::reply;
use super::serving::Serving;
use super::used::{Used, answered};
use crate::assemble::{
    Begins, GOOD_BYTES, Page, PageRequest, PageStream, PartBody, WholePage, page_head_fields,
};
use crate::detail::ASSEMBLED;
use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::respond;
use crate::worker::Worker;

/// A page that is being put together, and how its template was answered.
struct Assembly {
    worker: Arc<Worker>,
    page: Box<Page>,
    /// The stored template and what look-ups have found, where the page is to be kept.
    record: Option<(Arc<StoredResponse>, LookRecord)>,
    head: ResponseHead,
    status: CacheStatus,
    /// The template is short, and waited for: then its includes are known when the head is written.
    waits_for_template: bool,
}

/// What is known of pages of the same template.
#[derive(Default)]
struct Known {
    /// The stored template, and room for what look-ups find, where the page is to be kept.
    record: Option<(Arc<StoredResponse>, LookRecord)>,
    /// A page that is kept for other requests.
    other: Option<Arc<KeptPage>>,
}

/// Answers from a stored template. Gives the exchange back where that is not there any more.
#[inline(never)]
#[expect(clippy::result_large_err, reason = "it is given back where it lay, which is rare")]
pub(super) fn serve(
    worker: &Arc<Worker>,
    mut exchange: Exchange,
    origin: usize,
    (used, now): (Used, Now),
) -> Result<Serving, Exchange> {
    let (mut record, mut other) = (None, None);
    if let Used::Stored { stored, detail: None, .. } = &used {
        match kept::find(worker, &exchange, stored, now) {
            Ok(reply) => {
                worker.metrics.page(exchange.site().settings.route, PageHow::Kept);
                return Ok(Serving::Answered(Some(exchange.close(worker, reply))));
            }
            Err(NotKept { is_wanted: true, .. }) => {
                record = Some((Arc::clone(stored), LookRecord::new(Mutex::new(Some(Vec::new())))));
            }
            Err(not_kept) => other = not_kept.other,
        }
    }
    let context = RequestContext {
        worker,
        worker_plan: exchange.asked.route.worker_plan(),
        origin,
        content: Default::default(),
    };
    // It lay on a disk, and went with its segment a moment later.
    let Some(reply) = answered(&context, &exchange, (used, now)) else { return Err(exchange) };
    match begin(worker, &mut exchange, reply, Known { record, other }) {
        Ok(reply) => Ok(Serving::Answered(Some(exchange.close(worker, reply)))),
        Err(assembly) => {
            exchange.asked.route = exchange.asked.route.for_long();
            let worker = Arc::clone(worker);
            Ok(Serving::Underway(Box::pin(async move {
                let reply = assembly.finish(&exchange).await;
                exchange.close(&worker, reply)
            })))
        }
    }
}

/// Makes a page of a template; any other reply stays as it is.
///
/// # Cancel safety
/// Dropped, its fragments are given up; what others wait for goes on.
pub(super) async fn assembled(worker: &Arc<Worker>, exchange: &mut Exchange, reply: Reply) -> Reply {
    match begin(worker, exchange, reply, Known::default()) {
        Ok(reply) => reply,
        Err(assembly) => assembly.finish(exchange).await,
    }
}

/// The page, where it can be answered at once.
fn begin(
    worker: &Arc<Worker>,
    exchange: &mut Exchange,
    reply: Reply,
    Known { record, other }: Known,
) -> Result<Reply, Box<Assembly>> {
    let Reply { response, status, sheet } = reply;
    let Some(sheet) = sheet else { return Ok(Reply { response, status, sheet: None }) };
    let Response { head, body, .. } = response;
    let settings = exchange.settings();
    let is_short = body.length().is_some_and(|length| length <= GOOD_BYTES as u64);
    let body = PartBody::new(body);
    let waits_for_template = is_short && !body.is_whole();
    let said = PartSaid::of(
        &fields_of(&head),
        age_of(&head),
        status.ttl_seconds,
        is_private(exchange, &status),
        exchange.started.wall,
    );
    let request = Arc::new(PageRequest {
        head: exchange.asked.head.clone(),
        client: exchange.asker.client,
        now: exchange.started.wall,
        // Of a page that may be made of what is stored alone, all has to be known before anything is said.
        fetches: !is_head(exchange) || wants_cached_only(exchange),
    });
    let fragments = Box::new(ServedFragments::new(
        worker,
        exchange,
        record.as_ref().map(|(_, record)| Arc::clone(record)),
        other,
    ));
    let manner = (Arc::clone(&settings.fragments), settings.policy.templates.escapes_html);
    let page = Box::new(Page::new(fragments, request, (*sheet, body, said), manner));
    exchange.page = Some(Arc::clone(page.told()));
    let worker = Arc::clone(worker);
    Box::new(Assembly { worker, page, record, head, status, waits_for_template }).answer(exchange)
}

impl Assembly {
    /// Waits for what is needed to answer.
    async fn finish(mut self: Box<Self>, exchange: &Exchange) -> Reply {
        if self.waits_for_template {
            self.page.read_template().await;
            self.waits_for_template = false;
        }
        let mut assembly = match self.answer(exchange) {
            Ok(reply) => return reply,
            Err(assembly) => assembly,
        };
        if !wants_cached_only(exchange) || assembly.page.settles().await {
            assembly.page.begins().await;
        }
        // Now it is known how it begins.
        let answer = assembly.answer(exchange);
        answer.unwrap_or_else(|_| reply::failed(Outcome::Own, Failure::FRAGMENT_FAILED))
    }

    /// The answer, where it is known.
    fn answer(mut self: Box<Self>, exchange: &Exchange) -> Result<Reply, Box<Self>> {
        if self.waits_for_template {
            return Err(self);
        }
        if let Some(chunks) = self.page.plain() {
            let mut page = WholePage::default();
            chunks.into_iter().for_each(|chunk| page.push(chunk));
            let Self { head, status, .. } = *self;
            let (age, code) = (head.age, head.status);
            let fields = ResponseHead { age: None, ..head }.into_fields();
            let response = sized(&exchange.asked.head, (code, fields), exchange.started.wall, Arc::new(page));
            return Ok(with_age(response, age, status));
        }
        let is_strict = exchange.settings().policy.templates.strict;
        if is_strict
            && self.page.program().and_then(|program| program.problems()).is_some_and(|list| !list.is_empty())
        {
            return Ok(reply::failed(self.status.outcome, Failure::TEMPLATE_INVALID));
        }
        if let Some(page) = self.page.whole() {
            return Ok(match self.page.may_be(&page) {
                true => self.whole(exchange, page),
                false => reply::failed(Outcome::Own, Failure::PAGE_TOO_LARGE),
            });
        }
        if wants_cached_only(exchange) {
            match self.page.is_stored() {
                // What lies on disks is on its way.
                None => return Err(self),
                Some(false) => return Ok(reply::failed(Outcome::Own, Failure::ONLY_IF_CACHED)),
                // Some of it is too long for memory.
                Some(true) => {}
            }
        }
        if is_head(exchange) {
            return Ok(self.open(exchange, respond::unsent(None)));
        }
        match self.page.begins_now() {
            None => Err(self),
            Some(Begins::Failed(_)) => Ok(reply::failed(self.status.outcome, Failure::FRAGMENT_FAILED)),
            Some(Begins::Content | Begins::Empty) => Ok(self.open(exchange, Body::Empty)),
        }
    }

    /// A page of which all is in memory.
    fn whole(self, exchange: &Exchange, page: WholePage) -> Reply {
        let (mut fields, control) = self.fields(exchange, false);
        if let Some(tag) = page.tag() {
            fields.insert(ETAG, tag.clone());
        }
        let Self { worker, page: assembled, record, head, mut status, .. } = self;
        worker.metrics.page(exchange.site().settings.route, PageHow::Whole);
        let page = Arc::new(page);
        let used = assembled.used();
        if let Some((template, parts, program)) = record
            .and_then(|(template, record)| Some((template, record.lock().take()?, assembled.template()?)))
        {
            let made = Made {
                template,
                program,
                parts,
                page: &page,
                fields: &fields,
                used,
                made: exchange.started,
                age_seconds: control.age_seconds,
                ttl_seconds: control.ttl_seconds,
            };
            kept::keep(&worker, exchange, made);
        }
        let mut response = page_answer(exchange, (head.status, fields), page);
        keep_cookies(&head, &mut response);
        status.ttl_seconds = control.ttl_seconds;
        status.detail = status.detail.or(assembled.detail()).or(Some(ASSEMBLED));
        with_age(response, control.age_seconds, status)
    }

    /// A page of which parts are on their way; `unsent` stands in for its content where that is not empty.
    fn open(self, exchange: &Exchange, unsent: Body) -> Reply {
        let (fields, control) = self.fields(exchange, true);
        let Self { worker, page, head, mut status, .. } = self;
        worker.metrics.page(exchange.site().settings.route, PageHow::Open);
        if status.outcome == Outcome::Hit {
            status = CacheStatus {
                detail: status.detail,
                ..CacheStatus::new(Outcome::Forwarded(Forward::Partial))
            };
        }
        status.detail = status.detail.or(Some(ASSEMBLED));
        let body = match is_head(exchange) {
            true => unsent,
            false => Body::Stream { length: None, stream: Box::pin(PageStream::new(page)) },
        };
        let response = Response::new(ResponseHead::new(head.status, fields), body);
        with_age(response, control.age_seconds, status)
    }

    /// The fields of the page, and what it says to caches behind larder.
    fn fields(&self, exchange: &Exchange, is_open: bool) -> (HeaderMap, PageControl) {
        let template = fields_of(&self.head);
        let (page, used) = (&*self.page, self.page.used());
        let said = PageSaid {
            parts: page.parts(),
            is_open,
            has_failed: page.tally().failed > 0,
            used_fields: &used.fields,
            used_client: used.client,
        };
        let control = page_control(&said, &template);
        let targets = &exchange.settings().policy.controls.targets;
        (page_head_fields(&template, &control, targets), control)
    }
}

/// Cookies that the template's answer sets for this client alone are sent with a 304 and a 416 as well.
fn keep_cookies(template: &ResponseHead, response: &mut Response) {
    if matches!(response.head.status, StatusCode::NOT_MODIFIED | StatusCode::RANGE_NOT_SATISFIABLE) {
        for cookie in template.fields.get_all(SET_COOKIE) {
            response.head.fields.append(SET_COOKIE, cookie.clone());
        }
    }
}

fn with_age(mut response: Response, age: Option<u64>, status: CacheStatus) -> Reply {
    response.head.age = age;
    Reply { response, status, sheet: None }
}

/// All fields of a head but Age and Cache-Status.
fn fields_of(head: &ResponseHead) -> HeaderMap {
    let mut all = head.stored.as_ref().map(|stored| stored.prepared().map.clone()).unwrap_or_default();
    for (name, value) in &head.fields {
        all.append(name, value.clone());
    }
    all
}

fn is_head(exchange: &Exchange) -> bool {
    exchange.asked.head.method == Method::HEAD
}

/// Whether the client takes nothing that the origin would have to be asked for.
fn wants_cached_only(exchange: &Exchange) -> bool {
    larder_cache::only_if_cached(&exchange.asked.head, &exchange.settings().policy)
}
