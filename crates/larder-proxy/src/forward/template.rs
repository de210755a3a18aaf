//! Templates on their way from an origin: decoded, compiled while they arrive, and stored with their program.
//!
//! In: an answer, before anything of its head is taken away. Out: the same answer with a body that compiles itself as it is read, and
//! its program. A content coding is taken off first: what is stored, and what pages are made of, has none. So the fields
//! that describe the coded bytes go with it. A template is stored whole or not at all; its program is put beside the body.
//! Deliberately absent: which responses are templates (larder-cache), and what becomes of them (`serve`).

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use larder_assemble::{Compiler, Program};
use larder_cache::StoredHead;
use larder_cache::template::{language, would_be};
use larder_http::body::Body;
use larder_http::message::RequestHead;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_origin::OriginResponse;
use larder_store::stored::COMPILED_BYTES_MAX;
use larder_store::{Store, StoredBody, StoredResponse};

use crate::fill::{Coding, UnknownCoding, as_stream, coding_of, compiled, decoded};
use crate::labels::{FaultLabel, LanguageLabel};
use crate::settings::RuleSettings;
use crate::worker::Worker;

/// Fields that say what the coded bytes hash to (RFC 9530, RFC 3230, RFC 2616 14.15).
const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Whether an answer is a template.
pub(super) fn is_template(settings: &RuleSettings, answer: &OriginResponse) -> bool {
    language(&settings.policy, answer.status, &answer.fields).is_some()
}

/// Whether an answer is a part of a template, which is of no use: the whole has to be asked for.
pub(crate) fn is_part_of_template(settings: &RuleSettings, answer: &OriginResponse) -> bool {
    answer.status == StatusCode::PARTIAL_CONTENT && would_be(&settings.policy, &answer.fields).is_some()
}

/// The program of an answer that is a template; `None` where it is none. To be asked while the fields are as the origin sent
/// them. From then on the body is decoded, and compiled as it is read: the program is complete before the body's end shows, and
/// never where it breaks or is dropped before. That of an answer to HEAD never completes. `request` is what the origin was
/// asked.
///
/// # Errors
/// It is a template, in a content coding that is not decoded here. The answer is left as it was.
pub(crate) fn template_of(
    settings: &RuleSettings,
    request: &RequestHead,
    answer: &mut OriginResponse,
) -> Result<Option<Arc<Program>>, UnknownCoding> {
    match language(&settings.policy, answer.status, &answer.fields) {
        None => Ok(None),
        Some(language) => arriving(language, settings, request, answer).map(Some),
    }
}

/// A template that arrives.
#[inline(never)]
fn arriving(
    language: Language,
    settings: &RuleSettings,
    request: &RequestHead,
    answer: &mut OriginResponse,
) -> Result<Arc<Program>, UnknownCoding> {
    if let Some(coding) = coding_of(&answer.fields)? {
        answer.body = plain(coding, std::mem::take(&mut answer.body));
        answer.content_length = None;
        remove_coded(&mut answer.fields);
    }
    Ok(compiling(language, settings, request, answer))
}

fn plain(coding: Coding, body: Body) -> Body {
    match body {
        Body::Empty => Body::Empty,
        coded => Body::Stream { length: None, stream: decoded(coding, as_stream(coded)) },
    }
}

/// Takes away what describes the coded content.
fn remove_coded(fields: &mut HeaderMap) {
    for name in [CONTENT_ENCODING, CONTENT_LENGTH].iter().chain(&DIGESTS) {
        fields.remove(name);
    }
}

/// Has the body of an answer compiled as it is read. Which of the rule's stores it goes to is not known yet, or it goes to none: the program
/// counts in the first of them.
fn compiling(
    language: Language,
    settings: &RuleSettings,
    request: &RequestHead,
    answer: &mut OriginResponse,
) -> Arc<Program> {
    let RequestHead { scheme, authority, target, .. } = request;
    let uri = DocumentUri { scheme: *scheme, authority: authority.clone(), target: target.clone() };
    let compiler = Compiler::new(language, uri);
    if request.method == Method::HEAD {
        return Arc::clone(compiler.program());
    }
    match std::mem::take(&mut answer.body) {
        // There is nothing to wait for.
        Body::Empty => compiler.finish(),
        body => {
            let length = body.length();
            let (program, stream) = compiled(as_stream(body), compiler, &settings.store);
            answer.body = Body::Stream { length, stream };
            program
        }
    }
}

/// The program of a stored response whose content goes out once more as `answer`; `None` where it is no template.
pub(super) fn of_stored(
    settings: &RuleSettings,
    stored: &StoredResponse,
    request: &RequestHead,
    answer: &mut OriginResponse,
) -> Option<Arc<Program>> {
    let language = stored.head.language()?;
    match stored.body.program() {
        Some(program) => Some(Arc::clone(program)),
        None => Some(compiling(language, settings, request, answer)),
    }
}

/// A template was compiled to its end: its problems go into the counters, and the first of them into the log.
pub(super) fn count(worker: &Worker, request: &RequestHead, program: &Program) {
    let Some(problems) = program.problems() else { return };
    let language = LanguageLabel(program.language());
    worker.metrics.template_compiled(&language);
    for problem in problems.listed() {
        worker.metrics.template_problem(&language, &FaultLabel(problem.fault));
    }
    if let Some(first) = problems.listed().first() {
        let (host, path) = (&request.authority, request.target.path());
        let (word, line, column) = (first.fault.as_str(), first.line, first.column);
        worker.proxy.diagnostics.warn(
            "template-problem",
            word,
            format_args!("template {host}{path}: {word} at line {line}, column {column}"),
        );
    }
}

/// The head under which a template is kept whose body has come to its end. Its program is put beside the body. One without a
/// single directive is no template from then on.
pub(super) fn kept(
    program: &Arc<Program>,
    head: &Arc<StoredHead>,
    body: &StoredBody,
    store: &Store,
) -> Arc<StoredHead> {
    if program.is_complete() && !program.has_operations() {
        return Arc::new(StoredHead::clone(head).with_language(None));
    }
    if body.length() <= COMPILED_BYTES_MAX {
        body.keep_program(Arc::clone(program), store.reserve(StoredBody::program_bytes(program)));
    }
    Arc::clone(head)
}
