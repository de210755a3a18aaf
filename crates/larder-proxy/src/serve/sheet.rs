//! Responses that are templates, before a page is made of them.
//!
//! In: what a request is answered with. Out: a [`Reply`] with a [`Sheet`]: all fields of the response, its whole body, and its program.
//! Conditions and ranges are not answered here, because they are the page's. A template without a directive is an ordinary
//! response, and comes back as it was.

use std::sync::Arc;
use std::time::Duration;

use http::header::LAST_MODIFIED;
use http::{HeaderMap, StatusCode};
use larder_assemble::{Compiler, Program};
use larder_cache::StoredHead;
use larder_http::body::Body;
use larder_http::fields::cache_status::CacheStatus;
use larder_http::fields::date::DateField;
use larder_http::message::{RequestHead, Response, ResponseHead};
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::WallTime;
use larder_store::Held;
use larder_store::stored::COMPILED_BYTES_MAX;

use crate::assemble::Sheet;
use crate::collapse::SharedResponse;
use crate::exchange::{Exchange, Reply};
use crate::fill::{as_stream, compiled};
use crate::root::StaticFile;

/// The URI by which a document is asked for.
pub(super) fn uri_of(head: &RequestHead) -> DocumentUri {
    DocumentUri { scheme: head.scheme, authority: head.authority.clone(), target: head.target.clone() }
}

/// Whether a page is made of it: it has a directive, or may have one yet.
fn is_template(program: &Program) -> bool {
    program.has_operations() || !program.is_complete()
}

/// What is made of a stored response.
#[expect(clippy::large_enum_variant, reason = "one at a time, taken apart at once")]
pub(super) enum Sheeted {
    /// It is a template: this is what a page is made of.
    Template(Reply),
    /// It is none.
    Plain(Held),
    /// It is one that cannot be read any more.
    Gone,
}

/// A stored response, as what it is.
// Not inlined: a hit on anything else comes by.
#[inline(never)]
pub(super) fn from_stored(exchange: &Exchange, stored: Held, age: Duration, status: CacheStatus) -> Sheeted {
    if !exchange.settings().policy.templates.is_on() {
        return Sheeted::Plain(stored);
    }
    let Some(language) = stored.head.template.as_ref().map(|template| template.language) else {
        return Sheeted::Plain(stored);
    };
    let known = stored.body.compiled(|pieces| {
        let mut compiler = Compiler::new(language, uri_of(&exchange.asked.head));
        pieces.iter().for_each(|piece| compiler.feed(piece));
        compiler.finish()
    });
    if known.as_ref().is_some_and(|program| !is_template(program)) {
        return Sheeted::Plain(stored);
    }
    let head = ResponseHead::from_stored(stored.head.status, Some(stored.fields()), HeaderMap::new());
    let last_modified = stored.head.validators.last_modified.as_ref().map(|(_, at)| *at);
    let length = stored.body.length();
    let Some(body) = stored.clone().into_body(0..length) else { return Sheeted::Gone };
    let (program, body) = match known {
        Some(program) => (program, body),
        None => arriving(exchange, language, body),
    };
    let mut response = Response::new(head, body);
    response.head.age = Some(age.as_secs());
    let sheet = Some(Box::new(Sheet { program, last_modified }));
    Sheeted::Template(Reply { response, status, sheet })
}

/// A template that is stored while it arrives; the response is without what only this client is told. `None` where it is none; `Some(None)`
/// where its body takes no new readers.
pub(super) fn from_shared(shared: &SharedResponse) -> Option<Option<(Response, Box<Sheet>)>> {
    let head: &Arc<StoredHead> = &shared.head;
    head.template.as_ref()?;
    let program = shared.program.as_ref().filter(|program| is_template(program))?;
    let Some(reader) = shared.body.reader(None) else { return Some(None) };
    let body = Body::Stream { length: shared.body.complete_length(), stream: Box::pin(reader) };
    let fields = Arc::clone(&head.fields) as Arc<_>;
    let response =
        Response::new(ResponseHead::from_stored(head.status, Some(fields), HeaderMap::new()), body);
    let (program, last_modified) =
        (Arc::clone(program), head.validators.last_modified.as_ref().map(|(_, at)| *at));
    Some(Some((response, Box::new(Sheet { program, last_modified }))))
}

/// A template whose answer is for one client.
pub(super) fn from_passed(
    program: Option<Arc<Program>>,
    fields: &HeaderMap,
    now: WallTime,
) -> Option<Box<Sheet>> {
    let program = program.filter(|program| is_template(program))?;
    Some(Box::new(Sheet { program, last_modified: DateField::read(fields, &LAST_MODIFIED, now).at() }))
}

/// A file below the site's root, where the rule makes files of its type templates.
pub(super) fn from_file(
    exchange: &Exchange,
    fields: &HeaderMap,
    file: &StaticFile,
) -> Option<(Response, Box<Sheet>)> {
    let policy = &exchange.settings().policy;
    let language = larder_cache::template::language(policy, StatusCode::OK, fields)?;
    let (program, body) = arriving(exchange, language, file.body(0..file.size()));
    let sheet = from_passed(Some(program), fields, exchange.started.wall)?;
    Some((Response::new(ResponseHead::new(StatusCode::OK, fields.clone()), body), sheet))
}

/// A template that is compiled while it is read.
fn arriving(exchange: &Exchange, language: Language, body: Body) -> (Arc<Program>, Body) {
    let mut compiler = Compiler::new(language, uri_of(&exchange.asked.head));
    let store = &exchange.settings().store;
    match body {
        Body::Stream { length, stream } => {
            let (program, stream) = compiled(stream, compiler, store);
            (program, Body::Stream { length, stream })
        }
        // Longer than what is compiled in one go.
        long @ (Body::Full(_) | Body::Pieces { .. }) if long.length() > Some(COMPILED_BYTES_MAX) => {
            let length = long.length();
            let (program, stream) = compiled(as_stream(long), compiler, store);
            (program, Body::Stream { length, stream })
        }
        Body::Full(bytes) => {
            compiler.feed(&bytes);
            (compiler.finish(), Body::Full(bytes))
        }
        Body::Pieces { owner, range } => {
            let (mut at, end) = (range.start, range.end);
            for piece in owner.pieces() {
                let of_piece = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(piece.len());
                compiler.feed(piece.get(..of_piece).unwrap_or_default());
                at += of_piece as u64;
            }
            (compiler.finish(), Body::Pieces { owner, range })
        }
        Body::Empty => (compiler.finish(), Body::Empty),
    }
}
