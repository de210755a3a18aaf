//! What the fuzz targets hold, as functions that any test can call: a file for each target, with a function `check`.
//!
//! In: bytes. Out: nothing, or a panic that says what does not hold.
//!
//! Whole connections are read by two servers, larder's and hyper's ([`ours`], [`hypers`]), and the difference is judged
//! ([`judge`]). larder may be stricter than hyper, as far as DIFFERENCES.md lists it. A request that larder reads in
//! another way, or where hyper reads none, is a finding. Time jumps when nothing else can happen, so time limits cost
//! nothing. Targets for field values take their input for the lines of a field. Targets for disk formats correct the
//! checksums of their input ([`signed`]), so that it gets behind them, and limit what reading may allocate
//! ([`allocated`]).
//! Deliberately absent: libFuzzer, so that every test of the workspace can replay what it found.

pub mod allocated;
pub mod cache_control;
pub mod chunked;
pub mod client_hello;
pub mod condition;
pub mod dates;
pub mod decoded;
pub mod disk_folder;
pub mod disk_identity;
pub mod disk_journal;
pub mod disk_record;
pub mod disk_toc;
pub mod esi;
pub mod esi_expression;
pub mod fields;
pub mod file_journal;
pub mod file_meta;
pub mod file_name;
pub mod filter;
pub mod fleet_log;
pub mod h2_frames;
pub mod hpack;
pub mod hypers;
pub mod judge;
pub mod memcached_replies;
pub mod ours;
pub mod page;
pub mod purge_dialects;
pub mod purge_note;
pub mod purge_pattern;
pub mod purge_tags;
pub mod ranges;
pub mod redis_places;
pub mod redis_record;
pub mod redis_replies;
pub mod request_head;
pub mod seen;
pub mod signed;
pub mod sitemap;
pub mod ssi;
pub mod ssi_expression;
pub mod stored_head;
pub mod structured;
pub mod value_message;
pub mod vary;

use std::future::Future;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A target. It panics where what has to hold does not.
pub type Check = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: &[(&str, Check)] = &[
    ("cache_control", cache_control::check),
    ("chunked", chunked::check),
    ("client_hello", client_hello::check),
    ("dates", dates::check),
    ("decoded", decoded::check),
    ("disk_folder", disk_folder::check),
    ("disk_identity", disk_identity::check),
    ("disk_journal", disk_journal::check),
    ("disk_record", disk_record::check),
    ("disk_toc", disk_toc::check),
    ("esi", esi::check),
    ("esi_expression", esi_expression::check),
    ("fields", fields::check),
    ("file_journal", file_journal::check),
    ("file_meta", file_meta::check),
    ("file_name", file_name::check),
    ("filter", filter::check),
    ("fleet_log", fleet_log::check),
    ("h2_frames", h2_frames::check),
    ("hpack", hpack::check),
    ("memcached_replies", memcached_replies::check),
    ("purge_dialects", purge_dialects::check),
    ("purge_note", purge_note::check),
    ("purge_pattern", purge_pattern::check),
    ("purge_tags", purge_tags::check),
    ("redis_record", redis_record::check),
    ("redis_places", redis_places::check),
    ("redis_replies", redis_replies::check),
    ("ranges", ranges::check),
    ("request_head", request_head::check),
    ("sitemap", sitemap::check),
    ("ssi", ssi::check),
    ("ssi_expression", ssi_expression::check),
    ("stored_head", stored_head::check),
    ("structured", structured::check),
    ("value_message", value_message::check),
    ("vary", vary::check),
];

/// More than either side buffers at once, so that nobody waits for a reader.
const PIPE_BYTES: usize = 1 << 20;

/// Runs `server` on one end of a pipe while `input` is written into the other and then closed for writing. Returns
/// what the server wrote.
pub fn converse<F: Future<Output = ()>>(input: &[u8], server: impl FnOnce(DuplexStream) -> F) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs no resources");
    runtime.block_on(async {
        let (mut client, served) = tokio::io::duplex(PIPE_BYTES);
        let talk = async {
            let mut answers = Vec::new();
            // Either fails only when the server has closed, which is its right.
            let _ = client.write_all(input).await;
            let _ = client.shutdown().await;
            let _ = client.read_to_end(&mut answers).await;
            answers
        };
        tokio::join!(talk, server(served)).0
    })
}

/// Lines beyond which an input is cut.
const LINES_MAX: usize = 8;

/// The lines of a field that `input` holds, one to a line, without those that no head can contain.
pub fn lines(input: &[u8]) -> Vec<HeaderValue> {
    let lines = input.split(|byte| *byte == b'\n').take(LINES_MAX);
    lines.filter_map(|line| HeaderValue::from_bytes(line).ok()).collect()
}

/// Fields of which all have the same name.
pub fn named<'a>(name: &HeaderName, lines: impl IntoIterator<Item = &'a HeaderValue>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for line in lines {
        fields.append(name, line.clone());
    }
    fields
}
