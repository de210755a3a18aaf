//! Hostile HTTP/2 clients against a whole larder in this process: raw frames in, and what came of them on both sides.
//!
//! Every case starts an origin that records each byte and a larder of its own, and speaks HTTP/2 with prior
//! knowledge, or over TLS. Then it looks at three things: what the client got (a response, a reset, GOAWAY) and whether its
//! connection is still in step, what exactly the origin received over HTTP/1, and that nothing is left open. Tables
//! hold what one write can show (`http2/{pseudo,fields,content,blocks,connection}.rs`), `walks.rs` and `lifecycle.rs`
//! what takes steps and time.
//! `HOSTILE=part-of-a-name` runs some of them. Deliberately absent: answers of hostile origins.

mod blocks;
mod connection;
mod content;
mod fields;
mod frames;
mod judge;
mod lifecycle;
mod peer;
mod pseudo;
mod walks;

use crate::hostile::suite::{Run, run_all};
use crate::hostile::transport::over_both;

#[test]
fn no_hostile_frame_gets_through() {
    run_all(|| over_both(runs));
}

fn runs() -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for cases in [pseudo::cases(), fields::cases(), content::cases(), blocks::cases(), connection::cases()] {
        runs.extend(cases.into_iter().map(judge::Case::into_run));
    }
    runs.extend(walks::runs());
    runs.extend(lifecycle::runs());
    runs
}
