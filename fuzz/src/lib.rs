//! What the fuzz targets share: two front doors that read the same bytes, and a judge of the difference.
//!
//! In: bytes as a client could send them. Out: what larder's front door handed to its service and what hyper's server
//! handed to its own, in one form. larder may be stricter than hyper, by the written list in DIFFERENCES.md and
//! [`judge`]; reading a request in another way, or reading one where hyper reads none, is a finding.
//! Time stands still and jumps when nothing else can happen, so time limits cost nothing. The targets for field values
//! need none of that: they take their input for the lines of a field. For what lies on disks there are checksums that
//! are made right ([`signed`]), so that a target gets behind them, and a bound on what reading may allocate ([`allocated`]).

pub mod allocated;
pub mod hypers;
pub mod judge;
pub mod ours;
pub mod seen;
pub mod signed;

use std::future::Future;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

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
