//! Who may use stored responses, as one member knows it.
//!
//! In: the rows that the server shows, and when. Out: who holds a lease still, and since when nobody else does.
//! A lease is counted from the moment at which its renewal was seen, and is taken for a hundredth longer than it is, because clocks
//! run at different speeds. The holder counts it from the moment at which the renewal was sent, which is earlier.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{Epoch, Incarnation, MemberState, Row};

/// By which part of itself a lease is taken for longer.
const CLOCKS_DIFFER: u32 = 100;

/// When a lease that was seen at a moment is over for certain; `None` where it never is.
pub(crate) fn over_at(seen: Duration, lease: Option<Duration>) -> Option<Duration> {
    lease.map(|lease| seen + lease + lease / CLOCKS_DIFFER)
}

/// Another member.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    pub(crate) name: Arc<str>,
    lease: Option<Duration>,
    /// The log that its row was seen in last.
    epoch: Epoch,
    beat: u64,
    /// When this beat was seen first.
    seen: Duration,
    pub(crate) applied: u64,
    /// When it was known first that it holds no lease any more.
    pub(crate) ended: Option<Duration>,
}

impl Other {
    /// Whether it has applied an entry of this log.
    pub(crate) fn has_applied(&self, epoch: Epoch, sequence: u64) -> bool {
        self.epoch == epoch && self.applied >= sequence
    }

    /// How long it may hold its lease still.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        over_at(self.seen, self.lease).map(|over| over.saturating_sub(now))
    }

    fn is_over(&self, now: Duration) -> bool {
        over_at(self.seen, self.lease).is_some_and(|over| over <= now)
    }
}

/// All other members that may hold a lease, and those that have ended since a purge was entered that is not complete.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<Incarnation, Other>);

impl Known {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Other> {
        self.0.values()
    }

    /// How all others stand to a purge with this place, as they were at `looked`, by name and in the order of their runs.
    pub(crate) fn standings(
        &self,
        place: Option<(Epoch, u64)>,
        looked: Duration,
        now: Duration,
    ) -> Vec<(Arc<str>, MemberState)> {
        let standing = |other: &Other| match (other.ended, place) {
            (Some(at), _) if at <= looked => MemberState::Away,
            (Some(_), _) => MemberState::Silent { left: Some(Duration::ZERO) },
            (None, Some((epoch, sequence))) if other.has_applied(epoch, sequence) => MemberState::Applied,
            (None, _) => MemberState::Silent { left: other.left(now) },
        };
        self.0.values().map(|other| (Arc::clone(&other.name), standing(other))).collect()
    }

    /// Takes in all rows but that of `own`, which the server had at some time between `sent` and `now`.
    pub(crate) fn observe(&mut self, own: Incarnation, epoch: Epoch, rows: &[Row], now: Duration) {
        for row in rows.iter().filter(|row| row.incarnation != own) {
            let seen =
                |other: &Other| other.epoch == epoch && other.beat == row.beat && other.ended.is_none();
            let since =
                self.0.get(&row.incarnation).filter(|other| seen(other)).map_or(now, |other| other.seen);
            let other = Other {
                name: Arc::clone(&row.name),
                lease: row.lease,
                epoch,
                beat: row.beat,
                seen: since,
                applied: row.applied,
                ended: None,
            };
            self.0.insert(row.incarnation, other);
        }
        // A name has one run at a time.
        for other in self.0.values_mut().filter(|other| other.epoch != epoch && other.ended.is_none()) {
            if rows.iter().any(|row| row.name == other.name) {
                other.ended = Some(now);
            }
        }
        // Who was in this log and is not any more has left, or was taken away by one who had waited for its lease.
        for (incarnation, other) in &mut self.0 {
            let is_there = rows.iter().any(|row| row.incarnation == *incarnation);
            if !is_there && other.epoch == epoch && other.ended.is_none() {
                other.ended = Some(now);
            }
        }
    }

    /// A new log has begun: who renewed a lease in the old one may have done so until now.
    pub(crate) fn move_on(&mut self, now: Duration) {
        self.0.values_mut().filter(|other| other.ended.is_none()).for_each(|other| other.seen = now);
    }

    /// Who was in an older log only, and whose lease is over.
    pub(crate) fn end_former(&mut self, epoch: Epoch, now: Duration) {
        let over = self.0.values_mut().filter(|other| other.epoch != epoch && other.ended.is_none());
        over.filter(|other| other.is_over(now)).for_each(|other| other.ended = Some(now));
    }

    /// Who is in this log, and whose lease is over for certain.
    pub(crate) fn overdue(&self, epoch: Epoch, now: Duration) -> Option<(Incarnation, u64)> {
        let mut there = self.0.iter().filter(|(_, other)| other.epoch == epoch && other.ended.is_none());
        there.find(|(_, other)| other.is_over(now)).map(|(incarnation, other)| (*incarnation, other.beat))
    }

    /// Forgets those that hold no lease any more.
    pub(crate) fn forget_ended(&mut self) {
        self.0.retain(|_, other| other.ended.is_none());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LEASE: Duration = Duration::from_secs(100);
    const OWN: Incarnation = Incarnation(0);
    const OTHER: Incarnation = Incarnation(1);

    fn row(beat: u64) -> Row {
        Row { incarnation: OTHER, name: "web-1".into(), beat, lease: Some(LEASE), applied: 0 }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_over_a_hundredth_later_than_its_holder_thinks() {
        let mut known = Known::default();
        known.observe(OWN, Epoch(1), &[row(7)], at(1000));
        known.observe(OWN, Epoch(1), &[row(7)], at(1090));
        assert_eq!(known.overdue(Epoch(1), at(1100)), None);
        assert_eq!(known.overdue(Epoch(1), at(1101)), Some((OTHER, 7)));
        assert_eq!(known.all().next().and_then(|other| other.left(at(1100))), Some(at(1)));
        known.observe(OWN, Epoch(1), &[row(8)], at(1100));
        assert_eq!(known.overdue(Epoch(1), at(1200)), None, "it was renewed");
        assert_eq!(over_at(at(1), None), None, "this one never is");
    }

    #[test]
    fn a_member_of_a_former_log_may_have_renewed_its_lease_until_the_new_one_was_found() {
        let mut known = Known::default();
        known.observe(OWN, Epoch(1), &[row(7)], at(1000));
        known.move_on(at(1050));
        known.observe(OWN, Epoch(2), &[], at(1050));
        known.end_former(Epoch(2), at(1150));
        assert!(known.all().all(|other| other.ended.is_none()), "it is in no row, and is waited for");
        known.end_former(Epoch(2), at(1151));
        assert!(known.all().all(|other| other.ended == Some(at(1151))));
        known.forget_ended();
        assert_eq!(known.all().count(), 0);
    }

    #[test]
    fn who_has_left_its_log_holds_nothing_and_who_is_back_is_waited_for() {
        let mut known = Known::default();
        known.observe(OWN, Epoch(1), &[row(7)], at(1000));
        known.observe(OWN, Epoch(1), &[], at(1001));
        assert_eq!(known.all().next().map(|other| other.ended), Some(Some(at(1001))));
        known.observe(OWN, Epoch(1), &[row(9)], at(1002));
        let other = known.all().next().unwrap();
        assert_eq!((other.ended, other.has_applied(Epoch(1), 0)), (None, true));
        assert!(!other.has_applied(Epoch(2), 0), "of another log it says nothing");
    }
}
