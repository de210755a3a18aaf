//! Figures of the live view: of this moment, over time, of frequent keys, and by common properties of requests.
//!
//! In: what is asked, as the parameters of a query. Out: JSON. A value that cannot be had is 400, with a sentence that names those that can.
//! The figures themselves are the watch's. Deliberately absent: what is costly. Each answer is made of what is remembered and counted already.

mod breakdown;
mod form;
mod over_time;
mod top;

pub(crate) use breakdown::breakdown;
pub(crate) use over_time::{latency, now, series};
pub(crate) use top::top;

#[cfg(test)]
mod tests;
