//! Hostile origins behind a whole larder in this process: raw bytes as answers, and what every client made of them.
//!
//! Every row of the tables (`hostile/origin/{heads,bodies}.rs`) is an answer that four clients wait for at once over
//! HTTP/1.1, HTTP/1.0 and HTTP/2. It has to reach all of them in the same, right way, a broken one as broken; to be
//! stored only if it was whole; to leave no byte for the next response and nothing open. `walks.rs` holds what takes
//! steps: uploads, kept connections, clients that vanish or do not read, ranges, validation.
//! `HOSTILE=part-of-a-name` runs some of them. Deliberately absent: TLS, and hostile clients.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(unreachable_pub, reason = "the modules of a test target have no outside")]

#[path = "hostile/origin/bodies.rs"]
mod bodies;
#[path = "hostile/origin/heads.rs"]
mod heads;
#[path = "hostile/origin/house.rs"]
mod house;
#[path = "hostile/origin/judge.rs"]
mod judge;
#[path = "hostile/origin/raw.rs"]
mod raw;
#[path = "hostile/http1/stage.rs"]
#[allow(dead_code, reason = "each suite uses its own part")]
mod stage;
#[path = "hostile/suite.rs"]
mod suite;
#[path = "hostile/origin/walks.rs"]
mod walks;

#[test]
fn no_hostile_answer_gets_through() {
    let mut runs: Vec<suite::Run> = Vec::new();
    for cases in [heads::cases(), bodies::cases()] {
        runs.extend(cases.into_iter().map(judge::Case::into_run));
    }
    runs.extend(walks::runs());
    suite::run_all(runs);
}
