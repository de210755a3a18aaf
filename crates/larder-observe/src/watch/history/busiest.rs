//! Which rules have series of their own: the busiest.
//!
//! In: how many requests each rule had in the last second. Out: whether a rule is one of the [`KEPT_MAX`] that are kept, and which one gives
//! its place away. The first ones that come have a place. Later, each minute, a rule takes the place of the least busy one if it had twice
//! as many requests lately; so two that are nearly as busy do not take turns.

use std::collections::HashMap;
use std::sync::Arc;

/// So many rules have series.
pub(super) const KEPT_MAX: usize = 64;
/// Seconds between two looks at who is busier.
const LOOK: u32 = 60;
/// What is left after a second of how busy a rule was: half of it after some ten minutes.
const LEFT: f64 = 0.999;

/// A site and a rule in it.
pub(super) type RuleKey = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
struct Busy {
    requests: f64,
    is_kept: bool,
}

/// How busy rules are.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    rules: HashMap<RuleKey, Busy>,
    kept: usize,
    seconds: u32,
}

impl Busiest {
    /// A rule had so many requests in the last second. Returns whether it is kept.
    pub(super) fn note(&mut self, rule: &RuleKey, requests: u64) -> bool {
        if !self.rules.contains_key(rule) {
            if requests == 0 {
                return false;
            }
            let is_kept = self.kept < KEPT_MAX;
            self.kept += usize::from(is_kept);
            self.rules.insert(rule.clone(), Busy { requests: 0.0, is_kept });
        }
        let Some(busy) = self.rules.get_mut(rule) else { return false };
        busy.requests = busy.requests * LEFT + requests as f64;
        busy.is_kept
    }

    /// A second is over. Returns the rule that is not kept any more, where another has taken its place.
    pub(super) fn second(&mut self) -> Option<RuleKey> {
        self.seconds += 1;
        if self.seconds < LOOK {
            return None;
        }
        self.seconds = 0;
        let of = |is_kept: bool| self.rules.iter().filter(move |(_, busy)| busy.is_kept == is_kept);
        let order = |a: &(&RuleKey, &Busy), b: &(&RuleKey, &Busy)| a.1.requests.total_cmp(&b.1.requests);
        let (least, less) = of(true).min_by(order)?;
        let (most, more) = of(false).max_by(order)?;
        if more.requests <= 2.0 * less.requests {
            return None;
        }
        let (least, most) = (least.clone(), most.clone());
        for (rule, is_kept) in [(&least, false), (&most, true)] {
            if let Some(busy) = self.rules.get_mut(rule) {
                busy.is_kept = is_kept;
            }
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_twice_as_busy_takes_the_place_of_the_least_busy_one() {
        let rule = |number: usize| -> RuleKey { ("shop".into(), number.to_string().into()) };
        let mut busiest = Busiest::default();
        assert!(!busiest.note(&rule(0), 0), "it has had no request");
        for number in 0..=KEPT_MAX {
            assert_eq!(busiest.note(&rule(number), 100 + number as u64), number < KEPT_MAX);
        }
        let minute = |busiest: &mut Busiest| (0..LOOK).find_map(|_| busiest.second());
        assert_eq!(minute(&mut busiest), None, "not twice as busy");
        assert!(!busiest.note(&rule(KEPT_MAX), 60));
        assert_eq!(minute(&mut busiest), Some(rule(0)));
        assert!(busiest.note(&rule(KEPT_MAX), 1) && !busiest.note(&rule(0), 1));
        assert_eq!(minute(&mut busiest), None);
    }
}
