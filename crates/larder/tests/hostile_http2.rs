//! Hostile HTTP/2 clients against a whole larder in this process: raw frames in, and what came of them on both sides.
//!
//! Every case starts an origin that records each byte and a larder of its own, speaks HTTP/2 with prior knowledge,
//! and then looks at three things: what the client got (a response, a reset, GOAWAY) and whether its connection is
//! still in step, what exactly the origin received over HTTP/1, and that nothing is left open. Tables hold what one
//! write can show (`hostile/http2/{pseudo,fields,content,blocks,connection}.rs`), `walks.rs` what takes steps and time.
//! `HOSTILE=part-of-a-name` runs some of them. Deliberately absent: TLS, and answers of hostile origins.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "the modules of a test target have no outside")]

#[path = "hostile/http2/blocks.rs"]
mod blocks;
#[path = "hostile/http2/connection.rs"]
mod connection;
#[path = "hostile/http2/content.rs"]
mod content;
#[path = "hostile/http2/fields.rs"]
mod fields;
#[path = "hostile/http2/frames.rs"]
mod frames;
#[path = "hostile/http2/judge.rs"]
mod judge;
#[path = "hostile/http2/peer.rs"]
mod peer;
#[path = "hostile/http2/pseudo.rs"]
mod pseudo;
#[path = "hostile/http1/stage.rs"]
#[allow(dead_code, reason = "each suite uses its own part")]
mod stage;
#[path = "hostile/suite.rs"]
mod suite;
#[path = "hostile/http2/walks.rs"]
mod walks;

#[test]
fn no_hostile_frame_gets_through() {
    let mut runs: Vec<suite::Run> = Vec::new();
    for cases in [pseudo::cases(), fields::cases(), content::cases(), blocks::cases(), connection::cases()] {
        runs.extend(cases.into_iter().map(judge::Case::into_run));
    }
    runs.extend(walks::runs());
    suite::run_all(runs);
}
