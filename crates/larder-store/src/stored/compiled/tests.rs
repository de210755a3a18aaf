//! What is kept beside a body, what that counts, and that it is made once.
#![allow(clippy::unwrap_used)]

use larder_assemble::{Compiler, compile};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;

use super::*;
use crate::memory::{MemoryStore, MemoryStoreSettings};
use crate::stored::PIECE_OVERHEAD_BYTES;

const TEXT: &[u8] = b"<p><!--#include virtual=\"/a\" --></p>";

fn store(memory: u64) -> Arc<MemoryStore> {
    MemoryStore::new(&MemoryStoreSettings { memory, max_object: memory })
}

fn uri() -> DocumentUri {
    DocumentUri {
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"h"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(b"/")).unwrap(),
    }
}

fn program(text: &[u8]) -> Arc<Program> {
    compile(Language::Ssi, uri(), text)
}

fn body(store: &MemoryStore, pieces: &[&[u8]]) -> StoredBody {
    let pieces: Vec<Bytes> = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
    let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64 + PIECE_OVERHEAD_BYTES).sum();
    StoredBody::new(pieces, store.reserve_free(bytes).unwrap())
}

#[test]
fn a_program_is_kept_with_its_body_and_counts_as_long() {
    let store = store(1 << 20);
    let (body, program) = (body(&store, &[TEXT]), program(TEXT));
    let (before, weight) = (store.usage().bytes, StoredBody::program_bytes(&program));
    assert!(weight > program.weight() as u64);
    body.keep_program(Arc::clone(&program), store.reserve(weight));
    assert!(Arc::ptr_eq(body.program().unwrap(), &program));
    assert_eq!(store.usage().bytes, before + weight);
    // The first one stays.
    body.keep_program(self::program(TEXT), store.reserve(weight));
    assert!(Arc::ptr_eq(body.program().unwrap(), &program));
    let again = body.compiled(|_| unreachable!("it is compiled already"));
    assert!(Arc::ptr_eq(&again.unwrap(), &program));
    assert_eq!(store.usage().bytes, before + weight);
    drop(body);
    assert_eq!(store.usage().bytes, 0);
}

#[test]
fn nothing_is_kept_without_room_and_nothing_unfinished_or_too_large() {
    let store = store(8 << 20);
    let room = || store.reserve(100_000);
    let small = body(&store, &[TEXT]);
    small.keep_program(program(TEXT), None);
    let mut compiler = Compiler::new(Language::Ssi, uri());
    compiler.feed(TEXT);
    small.keep_program(Arc::clone(compiler.program()), room());
    let large = body(&store, &[&vec![b' '; COMPILED_BYTES_MAX as usize + 1]]);
    large.keep_program(program(TEXT), room());
    assert!(small.program().is_none() && large.program().is_none());
    assert!(large.compiled(|_| unreachable!("it is too large")).is_none());
    assert!(StoredBody::empty().compiled(|_| program(b"")).is_some_and(|program| program.is_complete()));
}

#[test]
fn what_has_no_program_is_compiled_from_its_pieces_and_kept_where_there_is_room() {
    for memory in [1 << 20, 700] {
        let store = store(memory);
        let (first, second) = TEXT.split_at(7);
        let body = body(&store, &[first, second]);
        let compile = |pieces: &[Bytes]| program(&pieces.concat());
        let made = body.compiled(compile).unwrap();
        assert!(made.is_complete() && made.compiled_bytes() == TEXT.len() as u64);
        let is_kept = body.program().is_some_and(|kept| Arc::ptr_eq(kept, &made));
        assert_eq!(is_kept, memory > 700, "{} of {memory}", store.usage().bytes);
        assert!(store.usage().high_water_bytes <= memory);
    }
}

#[test]
fn a_digest_is_of_all_bytes_however_they_are_cut() {
    let store = store(1 << 20);
    let digest = body(&store, &[b"abc"]).digest().unwrap();
    assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf], "the example of FIPS 180-2");
    let cut = body(&store, &[b"a", b"", b"bc"]);
    let before = store.usage().bytes;
    assert_eq!((cut.digest(), cut.digest()), (Some(digest), Some(digest)));
    assert_eq!(store.usage().bytes, before + BOX_BYTES, "it is made once");
    assert_eq!(StoredBody::empty().digest().unwrap()[..4], [0xe3, 0xb0, 0xc4, 0x42]);
    let full = self::store(3 + PIECE_OVERHEAD_BYTES);
    assert_eq!(body(&full, &[b"abc"]).digest(), Some(digest), "also without room for it");
}

#[test]
fn a_body_is_hardly_larger_for_it() {
    assert!(size_of::<StoredBody>() <= 13 * size_of::<usize>(), "{}", size_of::<StoredBody>());
    const { assert!(BOX_BYTES <= 128) };
}
