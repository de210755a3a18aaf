//! Measurements beside the peers, on one machine, in one run.
//!
//! In: the release binary and the peers as packaged. Out: a table on the terminal and bench/results/NAME.{json,md}.
//! Servers share one core in turns and the load has another, so that CPU time per request is comparable.

pub(crate) mod hit;
