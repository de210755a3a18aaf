//! Pages of a template in one language, with fragments in both: a program does not depend on how its body was cut, and a page not on
//! the order in which its parts come. What running it allocates has a limit.
//!
//! An input is cut at lines of `====`: the value of the request's Cookie, the template, the fragment `/t` in the same language, the
//! fragment `/x` in the other one. `/a` and `/b` are bodies, `/bad` fails, and `/u` is `/t`, but breaks off at its end. The first byte
//! chooses the order and the size of pieces.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use larder_assemble::delivery::{Delivered, Delivery, Given};
use larder_assemble::{Compiler, IncludeFailure, RequestFacts, RunSettings, compile};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::WallTime;

use crate::allocated::at_most;

/// Sections of an input.
const SECTIONS: usize = 4;
/// For two pages: their values, their slots, and their output.
const ALLOCATED_MAX: usize = 768 << 20;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(language: Language, input: &[u8]) {
    let (choice, input) = input.split_first().unwrap_or((&0, &[]));
    let mut sections = Vec::new();
    let mut rest = input;
    while sections.len() + 1 < SECTIONS {
        let Some(end) = rest.windows(6).position(|window| window == b"\n====\n") else { break };
        sections.push(&rest[..end]);
        rest = &rest[end + 6..];
    }
    sections.push(rest);
    let section = |index: usize| sections.get(index).copied().unwrap_or_default();
    let (cookie, body) = match sections.len() {
        1 => (&b""[..], section(0)),
        _ => (section(0), section(1)),
    };
    let other = if language == Language::Ssi { Language::Esi } else { Language::Ssi };
    let fragments = |name: &str| match name {
        "/a" => Given::Body(b"A".to_vec()),
        "/b" => Given::Body(Vec::new()),
        "/t" => Given::Template(language, section(2).to_vec()),
        "/x" => Given::Template(other, section(3).to_vec()),
        "/u" => Given::Broken(language, section(2).to_vec()),
        _ => Given::Failed(IncludeFailure::Status),
    };
    let mut fields = HeaderMap::new();
    if let Ok(cookie) = HeaderValue::from_bytes(cookie) {
        fields.insert(header::COOKIE, cookie);
    }
    at_most(ALLOCATED_MAX, || {
        cut(language, body, usize::from(*choice));
        let whole = delivered(language, body, &fields, &fragments, 0, 0);
        let pieces = usize::from(choice % 16) + 1;
        let other = delivered(language, body, &fields, &fragments, pieces * pieces, usize::from(*choice));
        // Which include is one too many depends on which comes first.
        let is_limited = |page: &Delivered| {
            page.refused.iter().any(|reason| ["count", "budget", "too-large"].contains(reason))
        };
        if !is_limited(&whole) && !is_limited(&other) {
            assert_eq!(String::from_utf8_lossy(&whole.output), String::from_utf8_lossy(&other.output));
            assert_eq!(whole.failed.is_some(), other.failed.is_some());
        }
    });
}

fn uri() -> DocumentUri {
    DocumentUri {
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"own.example"), Scheme::Http).expect("a host"),
        target: Target::parse(Bytes::from_static(b"/p?q=1")).expect("a target"),
    }
}

/// Compiles `body` whole and in pieces.
fn cut(language: Language, body: &[u8], choice: usize) {
    let whole = compile(language, uri(), body);
    let mut compiler = Compiler::new(language, uri());
    for piece in body.chunks(choice % 7 + 1) {
        compiler.feed(piece);
    }
    let cut = compiler.finish();
    assert_eq!(whole.compiled_bytes(), body.len() as u64);
    assert_eq!(format!("{whole:?}"), format!("{cut:?}"), "it depends on how it was cut");
}

fn delivered(
    language: Language,
    body: &[u8],
    fields: &HeaderMap,
    fragments: &dyn Fn(&str) -> Given,
    piece_bytes: usize,
    choice: usize,
) -> Delivered {
    let facts = RequestFacts {
        fields,
        method: &Method::GET,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        scheme: Scheme::Http,
        version: Version::HTTP_11,
        now: WallTime::from_secs(1_770_613_567),
    };
    let settings = RunSettings::default();
    let breaks = false;
    let delivery = Delivery { language, uri: uri(), settings, facts, fragments, piece_bytes, breaks };
    let mut turn = 0_usize;
    let mut choose = |count: usize| {
        turn += choice;
        turn % count
    };
    delivery.deliver(body, &mut choose)
}
