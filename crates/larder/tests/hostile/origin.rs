//! Hostile origins behind a whole larder in this process: raw bytes as answers, and what every client made of them.
//!
//! Every row of the tables (`origin/{heads,bodies}.rs`) is an answer that four clients wait for at once over
//! HTTP/1.1, HTTP/1.0 and HTTP/2. It has to reach all of them in the same, right way, a broken one as broken; to be
//! stored only if it was whole; to leave no byte for the next response and nothing open. `walks.rs` holds what takes
//! steps: uploads, kept connections, clients that vanish or do not read, ranges, validation.
//! `HOSTILE=part-of-a-name` runs some of them. Deliberately absent: TLS, and hostile clients.

mod bodies;
mod fixture;
mod heads;
mod judge;
mod walks;

use crate::hostile::suite::{Run, run_all};

#[test]
fn no_hostile_answer_gets_through() {
    run_all(runs);
}

fn runs() -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for cases in [heads::cases(), bodies::cases()] {
        runs.extend(cases.into_iter().map(judge::Case::into_run));
    }
    runs.extend(walks::runs());
    runs
}
