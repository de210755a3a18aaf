//! Hostile HTTP/1 clients against a whole larder in this process: raw bytes in, and what came of them on both sides.
//!
//! Every case starts an origin that records each byte and a larder of its own, and writes its bytes with a harmless
//! request pipelined behind them. Then it looks at three things: what the client got and whether its connection was
//! closed, what exactly the origin received, and that nothing is left open. Tables hold what one write can show
//! (`http1/{request_line,hosts,fields,framing,chunks,connection,limits}.rs`), `slow.rs` and `walks.rs` what takes
//! time and steps, `poison.rs` and `poison_answers.rs` what a second client is served after an attack. Each runs in clear text and over TLS.
//! Deliberately absent: HTTP/2, and answers of hostile origins.

mod chunks;
mod connection;
mod fields;
mod framing;
mod hosts;
mod judge;
mod limits;
mod poison;
mod poison_answers;
mod request_line;
mod slow;
mod table;
mod walks;

use crate::hostile::suite::{Run, run_all};
use crate::hostile::transport::over_both;

#[test]
fn no_hostile_request_gets_through() {
    run_all(|| over_both(runs));
}

fn runs() -> Vec<Run> {
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
    runs
}
