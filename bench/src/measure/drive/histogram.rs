//! The waits that clients of wrk had, out of the histogram that wrk tells.
//!
//! wrk "corrects" its histogram before a script sees it, for requests that might have been sent during a wait. To
//! each wait of at least twice the mean interval between two requests of a connection it adds images, one interval
//! shorter each, down to the interval. A closed loop sends none meanwhile, so these are waits of nobody; and the
//! faster a server is otherwise, the more of them it gets for the same pause of the machine.
//! In: histogram, requests, connections and duration of a run. Out: the waits of exactly as many requests, or a refusal.
//! Why it can be undone: only waits that were had cast images, so above the interval each count is that of the waits had
//! and of all of them that are whole intervals longer. The count one interval above has those longer ones: the
//! difference is what was had.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// Waits in microseconds, and how many requests had each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Waits {
    counts: BTreeMap<u64, u64>,
    requests: u64,
}

impl Waits {
    /// Takes the images out of `told` (wait and count), the histogram of so many requests over so many connections
    /// within `us` microseconds.
    ///
    /// # Errors
    /// What is left is not one wait for each request: then this wrk reckons otherwise.
    pub(super) fn had(told: &[(u64, u64)], requests: u64, connections: u64, us: u64) -> Result<Self> {
        let told: BTreeMap<u64, u64> = told.iter().copied().collect();
        let counts = match interval(requests, connections, us) {
            None => told,
            Some(interval) => without_images(&told, interval)?,
        };
        let sum: u64 = counts.values().sum();
        ensure!(sum == requests && sum > 0, "{sum} waits of {requests} requests");
        Ok(Self { counts, requests })
    }

    /// The wait that `share` (in 0..=1) of the requests did not exceed.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let wanted = share * self.requests as f64;
        let mut reached = 0;
        for (wait, count) in &self.counts {
            reached += count;
            if reached as f64 >= wanted {
                return *wait as f64;
            }
        }
        f64::NAN
    }
}

/// Microseconds between two requests of a connection as wrk reckons them, in whole numbers; `None` where it adds nothing.
fn interval(requests: u64, connections: u64, us: u64) -> Option<u64> {
    us.checked_div(requests.checked_div(connections)?)
}

fn without_images(told: &BTreeMap<u64, u64>, interval: u64) -> Result<BTreeMap<u64, u64>> {
    let mut had = BTreeMap::new();
    for (wait, count) in told {
        let longer = if *wait > interval { told.get(&(wait + interval)).copied().unwrap_or(0) } else { 0 };
        let count =
            count.checked_sub(longer).with_context(|| format!("fewer waits of {wait} us than images"))?;
        if count > 0 {
            had.insert(*wait, count);
        }
    }
    Ok(had)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What wrk does, told as it does it: upward over the waits, each count cast downward.
    fn corrected(had: &BTreeMap<u64, u64>, interval: u64) -> Vec<(u64, u64)> {
        let mut told = had.clone();
        for (wait, count) in had.range(interval * 2..) {
            let mut image = wait - interval;
            while image > interval {
                *told.entry(image).or_default() += count;
                image -= interval;
            }
        }
        told.into_iter().collect()
    }

    fn requests(had: &BTreeMap<u64, u64>) -> u64 {
        had.values().sum()
    }

    #[test]
    fn what_wrk_adds_is_taken_out_again() {
        // Numbers from a fixed generator: dense and sparse waits, pauses of many intervals, waits that fall on images.
        let mut state: u64 = 20_231;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..300 {
            let (interval, span) = (draw(40) + 1, draw(2000) + 1);
            let mut had = BTreeMap::new();
            for _ in 0..draw(400) + 1 {
                had.insert(draw(span), draw(9) + 1);
            }
            let (told, all) = (corrected(&had, interval), requests(&had));
            // One connection, and so long a run that wrk reckons with this interval.
            let waits = Waits::had(&told, all, 1, interval * all).unwrap();
            assert_eq!(waits, Waits { counts: had, requests: all }, "round {round}, interval {interval}");
        }
    }

    #[test]
    fn a_pause_counts_once_for_each_client_that_waited() {
        // 99 short waits, and one of 16 ms: 44 images, every 340 us.
        let had = BTreeMap::from([(300, 99), (16_000, 1)]);
        let told = corrected(&had, 340);
        assert_eq!(told.iter().map(|(_, count)| count).sum::<u64>(), 100 + 46);
        let waits = Waits::had(&told, 100, 1, 34_000).unwrap();
        assert_eq!(waits.percentile(0.5).to_bits(), 300.0_f64.to_bits());
        assert_eq!(waits.percentile(0.99).to_bits(), 300.0_f64.to_bits());
        assert_eq!(waits.percentile(0.999).to_bits(), 16_000.0_f64.to_bits());
    }

    #[test]
    fn a_histogram_of_another_kind_is_refused() {
        let check = |told: &[(u64, u64)], requests, right: bool| {
            assert_eq!(Waits::had(told, requests, 1, 100 * requests).is_ok(), right, "{told:?} {requests}");
        };
        check(&[(50, 3), (70, 1)], 4, true);
        check(&[(50, 3), (70, 1)], 5, false);
        check(&[(50, 3), (250, 1), (350, 2)], 4, false);
        check(&[], 0, false);
        // Fewer requests than connections: nothing was added.
        assert!(Waits::had(&[(90_000, 3)], 3, 64, 100_000).is_ok());
    }
}
