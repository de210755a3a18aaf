//! Hostile HTTP/1 clients against a whole larder in this process: raw bytes in, and what came of them on both sides.
//!
//! Every case starts an origin that records each byte and a larder of its own, writes its bytes with a harmless request
//! pipelined behind them, and then looks at three things: what the client got and whether its connection was closed,
//! what exactly the origin received, and that nothing is left open. Tables hold what one write can show
//! (`hostile/http1/{request_line,hosts,fields,framing,chunks,connection,limits}.rs`), `slow.rs` and `walks.rs` what takes
//! time and steps, `poison.rs` and `poison_answers.rs` what a second client is served after an attack.
//! Deliberately absent: HTTP/2, and answers of hostile origins.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "hostile/http1/chunks.rs"]
mod chunks;
#[path = "hostile/http1/connection.rs"]
mod connection;
#[path = "hostile/http1/fields.rs"]
mod fields;
#[path = "hostile/http1/framing.rs"]
mod framing;
#[path = "hostile/http1/hosts.rs"]
mod hosts;
#[path = "hostile/http1/judge.rs"]
mod judge;
#[path = "hostile/http1/limits.rs"]
mod limits;
#[path = "hostile/http1/poison.rs"]
mod poison;
#[path = "hostile/http1/poison_answers.rs"]
mod poison_answers;
#[path = "hostile/http1/request_line.rs"]
mod request_line;
#[path = "hostile/http1/slow.rs"]
mod slow;
#[path = "hostile/http1/stage.rs"]
mod stage;
#[path = "hostile/suite.rs"]
mod suite;
#[path = "hostile/http1/table.rs"]
mod table;
#[path = "hostile/http1/walks.rs"]
mod walks;

use suite::{Run, run_all};

#[test]
fn no_hostile_request_gets_through() {
    let mut runs: Vec<Run> = Vec::new();
    for cases in [
        request_line::cases(),
        hosts::cases(),
        fields::cases(),
        framing::cases(),
        chunks::cases(),
        connection::cases(),
        limits::cases(),
    ] {
        runs.extend(cases.into_iter().flat_map(judge::runs));
    }
    runs.extend(walks::runs());
    runs.extend(slow::runs());
    runs.extend(poison::runs());
    runs.extend(poison_answers::runs());
    run_all(runs);
}
