//! Which rules have series of their own: the busiest.
//!
//! In: how many requests each rule had in the last second. Out: whether a rule is one of the [`KEPT_MAX`] that are kept, and which ones give
//! their places away. The first ones that come have a place. Later, each minute, a rule takes the place of the least busy one if it had twice
//! as many requests lately; so two that are nearly as busy do not take turns. A rule that has had none for a minute gives way to any other, as
//! those do that a reload has removed.

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
    /// Whether it has had any since the last look.
    is_asked: bool,
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
            self.rules.insert(rule.clone(), Busy { requests: 0.0, is_asked: false, is_kept });
        }
        let Some(busy) = self.rules.get_mut(rule) else { return false };
        busy.requests = busy.requests * LEFT + requests as f64;
        busy.is_asked |= requests > 0;
        busy.is_kept
    }

    /// A second is over. Returns the rules that are not kept any more, because others have taken their places.
    pub(super) fn second(&mut self) -> Vec<RuleKey> {
        self.seconds += 1;
        if self.seconds < LOOK {
            return Vec::new();
        }
        self.seconds = 0;
        // One that gives way is not asked for, or half as busy as the one that comes: none does so twice.
        let given = std::iter::from_fn(|| self.give_way()).take(KEPT_MAX).collect();
        self.rules.values_mut().for_each(|busy| busy.is_asked = false);
        given
    }

    fn give_way(&mut self) -> Option<RuleKey> {
        let of = |is_kept: bool| self.rules.iter().filter(move |(_, busy)| busy.is_kept == is_kept);
        let order = |a: &(&RuleKey, &Busy), b: &(&RuleKey, &Busy)| {
            (a.1.is_asked.cmp(&b.1.is_asked)).then(a.1.requests.total_cmp(&b.1.requests))
        };
        let (least, less) = of(true).min_by(order)?;
        let (most, more) = of(false).max_by(order)?;
        let is_idle = more.is_asked && !less.is_asked;
        if !is_idle && (more.requests <= 2.0 * less.requests || less.is_asked && !more.is_asked) {
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
        let minute = |busiest: &mut Busiest| (0..LOOK).flat_map(|_| busiest.second()).collect::<Vec<_>>();
        assert_eq!(minute(&mut busiest), [], "not twice as busy");
        (0..KEPT_MAX).for_each(|number| assert!(busiest.note(&rule(number), 1)));
        assert!(!busiest.note(&rule(KEPT_MAX), 60));
        assert_eq!(minute(&mut busiest), [rule(0)]);
        assert!(busiest.note(&rule(KEPT_MAX), 1) && !busiest.note(&rule(0), 1));
        (1..KEPT_MAX).for_each(|number| assert!(busiest.note(&rule(number), 1)));
        assert_eq!(minute(&mut busiest), []);
        // Of two that have had no request for a minute each gives way to one that has, however busy it was.
        for number in 3..=KEPT_MAX {
            busiest.note(&rule(number), 1);
        }
        for number in 100..103 {
            assert!(!busiest.note(&rule(number), 1));
        }
        assert_eq!(minute(&mut busiest), [rule(1), rule(2)]);
        assert_eq!((100..103).filter(|number| busiest.note(&rule(*number), 1)).count(), 2);
    }
}
