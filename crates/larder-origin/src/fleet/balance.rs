//! Choosing one of several endpoints that can all be asked.
//!
//! In: candidates with their weight and load. Out: one of them. Three ways:
//! - by turns: smooth weighted round robin, so that a weight of 3 beside 1 is a a b a and not a a a b; each worker
//!   has turns of its own, which need no lock shared by cores;
//! - least requests: two are drawn by weight and the one with fewer requests in flight for its weight is taken (the
//!   power of two choices); with nothing in flight that is the share of the weights;
//! - by hash: weighted rendezvous. Each endpoint draws a number from the request's hash and its own tag, and the
//!   highest wins; when one leaves, its requests alone move, and they spread over all others. Nothing is kept, so it
//!   is the same on every worker and after a restart.
//!
//! Deliberately absent: who can be asked, which `fleet` says.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::tag::{ServerTag, mix};
use crate::settings::Balance;

/// An endpoint as a choice sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Where it stands in the caller's list.
    pub(crate) index: usize,
    /// The same as long as the endpoint lives.
    pub(crate) id: u64,
    /// The same after a restart.
    pub(crate) tag: ServerTag,
    /// In thousandths, slow start applied; at least 1.
    pub(crate) weight: u64,
    pub(crate) in_flight: u64,
}

/// What one worker needs for its choices.
#[derive(Debug)]
pub(crate) struct Chooser {
    /// By endpoint; see smooth weighted round robin. Held for one choice.
    turns: Mutex<HashMap<u64, i64>>,
    dice: AtomicU64,
}

impl Chooser {
    pub(crate) fn new() -> Self {
        Self { turns: Mutex::default(), dice: AtomicU64::new(RandomState::new().hash_one(0_u8)) }
    }

    /// One of `candidates`; `None` where there are none.
    pub(crate) fn choose(
        &self,
        balance: Balance,
        hash: Option<u64>,
        candidates: &[Candidate],
    ) -> Option<Candidate> {
        match (balance, hash) {
            (_, _) if candidates.len() <= 1 => candidates.first().copied(),
            (Balance::LeastRequests, _) => self.least_requests(candidates),
            (Balance::Hash, Some(hash)) => rendezvous(hash, candidates),
            (Balance::RoundRobin, _) | (Balance::Hash, None) => self.turn(candidates),
        }
    }

    fn turn(&self, candidates: &[Candidate]) -> Option<Candidate> {
        let mut turns = self.turns.lock();
        let mut total = 0_i64;
        let mut best: Option<(Candidate, i64)> = None;
        for candidate in candidates {
            let weight = i64::try_from(candidate.weight).unwrap_or(i64::MAX);
            let credit = turns.entry(candidate.id).or_insert(0);
            *credit = credit.saturating_add(weight);
            total = total.saturating_add(weight);
            if best.is_none_or(|(_, most)| *credit > most) {
                best = Some((*candidate, *credit));
            }
        }
        let (best, _) = best?;
        if let Some(credit) = turns.get_mut(&best.id) {
            *credit = credit.saturating_sub(total);
        }
        if turns.len() > candidates.len() {
            // Who cannot be asked now begins anew when it can.
            turns.retain(|id, _| candidates.iter().any(|candidate| candidate.id == *id));
        }
        Some(best)
    }

    fn least_requests(&self, candidates: &[Candidate]) -> Option<Candidate> {
        let one = self.draw(candidates, None)?;
        let Some(two) = self.draw(candidates, Some(one.id)) else {
            return Some(one);
        };
        // in_flight / weight, without dividing.
        let load = |of: &Candidate, other: &Candidate| u128::from(of.in_flight) * u128::from(other.weight);
        Some(if load(&two, &one) < load(&one, &two) { two } else { one })
    }

    /// One at random by weight, `but` one.
    fn draw(&self, candidates: &[Candidate], but: Option<u64>) -> Option<Candidate> {
        let others = || candidates.iter().filter(|candidate| Some(candidate.id) != but);
        let total: u64 = others().map(|candidate| candidate.weight).sum();
        let mut left = self.roll().checked_rem(total)?;
        others()
            .find(|candidate| match left.checked_sub(candidate.weight) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            })
            .copied()
    }

    /// SplitMix64: good enough to spread load, and cheap.
    fn roll(&self) -> u64 {
        mix(self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

/// The candidate with the highest `weight / -ln(u)`, u in (0, 1) drawn from both hashes; that makes each win in the
/// proportion of its weight.
fn rendezvous(hash: u64, candidates: &[Candidate]) -> Option<Candidate> {
    let score = |candidate: &Candidate| {
        let drawn = mix(hash ^ mix(candidate.tag.0)) >> 11;
        let unit = (drawn as f64 + 0.5) / (1_u64 << 53) as f64;
        candidate.weight as f64 / -unit.ln()
    };
    candidates
        .iter()
        .map(|candidate| (score(candidate), candidate))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| *candidate)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Candidates by weight and requests in flight.
    fn candidates(of: &[(u64, u64)]) -> Vec<Candidate> {
        let candidate = |(index, (weight, in_flight)): (usize, &(u64, u64))| {
            let id = index as u64 + 1;
            let tag = ServerTag(mix(id));
            Candidate { index, id, tag, weight: weight * 1000, in_flight: *in_flight }
        };
        of.iter().enumerate().map(candidate).collect()
    }

    fn counts(balance: Balance, times: u64, candidates: &[Candidate]) -> Vec<u64> {
        let chooser = Chooser::new();
        let mut counts = vec![0; candidates.len()];
        for round in 0..times {
            counts[chooser.choose(balance, Some(mix(round)), candidates).unwrap().index] += 1;
        }
        counts
    }

    #[test]
    fn turns_are_spread_smoothly_and_keep_the_weights_exactly() {
        let chooser = Chooser::new();
        let three = candidates(&[(5, 0), (1, 0), (1, 0)]);
        let order: Vec<_> =
            (0..7).map(|_| chooser.choose(Balance::RoundRobin, None, &three).unwrap().index).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
        let many = candidates(&[(1, 0), (2, 0), (7, 9), (1000, 0)]);
        assert_eq!(counts(Balance::RoundRobin, 10_100, &many), [10, 20, 70, 10_000]);
    }

    #[test]
    fn turns_go_on_when_endpoints_come_and_go() {
        let chooser = Chooser::new();
        let three = candidates(&[(1, 0), (1, 0), (1, 0)]);
        for _ in 0..100 {
            chooser.choose(Balance::RoundRobin, None, &three);
            chooser.choose(Balance::RoundRobin, None, &three[1..]);
        }
        assert_eq!(chooser.turns.lock().len(), 2);
        assert!(chooser.choose(Balance::RoundRobin, None, &[]).is_none());
    }

    #[test]
    fn least_requests_are_shared_by_weight_while_nothing_is_in_flight() {
        let counts = counts(Balance::LeastRequests, 40_000, &candidates(&[(3, 0), (1, 0)]));
        assert!((29_000..31_000).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn the_less_busy_of_two_is_taken() {
        // Of two all go to the idle one, whatever the order of drawing.
        assert_eq!(counts(Balance::LeastRequests, 1000, &candidates(&[(1, 1), (1, 0)])), [0, 1000]);
        assert_eq!(counts(Balance::LeastRequests, 1000, &candidates(&[(10, 9), (1, 1)])), [1000, 0]);
        // Of many, the busiest is only met where it is drawn against itself, which it cannot be.
        let counts = counts(Balance::LeastRequests, 3000, &candidates(&[(1, 0), (1, 0), (1, 5), (1, 0)]));
        assert_eq!(counts[2], 0);
    }

    #[test]
    fn a_hash_keeps_its_endpoint_and_weights_hold() {
        let four = candidates(&[(1, 0), (1, 0), (2, 0), (4, 0)]);
        let counts = counts(Balance::Hash, 80_000, &four);
        for (count, weight) in counts.iter().zip([1, 1, 2, 4]) {
            let expected = weight * 10_000;
            assert!(count.abs_diff(expected) < expected / 20 + 300, "{counts:?}");
        }
        let (one, another) = (Chooser::new(), Chooser::new());
        let mut reversed = four.clone();
        reversed.reverse();
        for hash in 0..1000 {
            let here = one.choose(Balance::Hash, Some(hash), &four).unwrap();
            let there = another.choose(Balance::Hash, Some(hash), &reversed).unwrap();
            assert_eq!(here.id, there.id);
        }
    }

    #[test]
    fn only_requests_of_an_endpoint_that_left_move_and_they_spread() {
        let four = candidates(&[(1, 0), (1, 0), (1, 0), (1, 0)]);
        let three: Vec<_> = four.iter().filter(|candidate| candidate.id != 2).copied().collect();
        let chooser = Chooser::new();
        let mut moved = HashMap::new();
        for hash in 0..9000 {
            let before = chooser.choose(Balance::Hash, Some(hash), &four).unwrap().id;
            let after = chooser.choose(Balance::Hash, Some(hash), &three).unwrap().id;
            match before {
                2 => *moved.entry(after).or_insert(0) += 1,
                _ => assert_eq!(before, after),
            }
        }
        assert!(moved.len() == 3 && moved.values().all(|count| (600..900).contains(count)), "{moved:?}");
    }

    #[test]
    fn a_request_without_a_hash_is_sent_by_turns() {
        let chooser = Chooser::new();
        let two = candidates(&[(1, 0), (1, 0)]);
        let order: Vec<_> =
            (0..4).map(|_| chooser.choose(Balance::Hash, None, &two).unwrap().index).collect();
        assert_eq!(order, [0, 1, 0, 1]);
    }
}
