//! Numbers, groups, and what an answer says of its own groups.

use http::{HeaderMap, HeaderValue};
use larder_cache::GroupTags;

use super::*;

fn tags(groups: &str) -> GroupTags {
    let head = crate::testing::request("/");
    let said = HeaderValue::from_str(groups).unwrap_or_else(|error| panic!("{error}"));
    let fields = HeaderMap::from_iter([(http::HeaderName::from_static("cache-groups"), said)]);
    GroupTags::of(head.scheme, &head.authority, &fields)
}

#[test]
fn a_doubt_for_one_request_is_no_invalidation() {
    let invalidations = Invalidations::default();
    let first = invalidations.doubt_for_one();
    assert!(invalidations.doubt_for_one() > first);
    // As where nothing was invalidated since larder started.
    assert!(invalidations.continue_after(0).is_some());
    invalidations.raise_floor_to_now();
    invalidations.doubt_for_one();
    assert_eq!(invalidations.continue_after(0), None);
}

#[test]
fn numbers_go_on_above_those_of_disks_and_an_invalidation_before_that_is_noticed() {
    let invalidations = Invalidations::default();
    assert_eq!(invalidations.continue_after(7), Some(7));
    assert_eq!(invalidations.continue_after(3), Some(7));
    assert_eq!(invalidations.continue_after(9), Some(9));
    assert_eq!(invalidations.next(), 10);
    assert_eq!(invalidations.continue_after(5), None);
    assert_eq!(invalidations.current(), 10);
    assert_eq!(invalidations.continue_after(20), None, "never again in this run");
    assert_eq!(invalidations.next(), 21);
}

#[test]
fn what_was_fetched_before_its_groups_invalidation_is_not_good() {
    for (how, expected) in
        [(How::Remove, Verdict::Gone), (How::Validate(None), Verdict::Invalid { since: None })]
    {
        let invalidations = Invalidations::default();
        let (both, other) = (tags("\"a\", \"b\""), tags("\"c\""));
        assert_eq!(invalidations.predicates.of_groups(&both, 0), Verdict::Good);
        assert_eq!(
            invalidations.invalidate_groups((&tags("\"b\""), how), &GroupTags::default(), 0),
            (1, true)
        );
        for (tags, number, verdict) in [
            (&both, 0, expected),
            (&both, 1, Verdict::Good),
            (&other, 0, Verdict::Good),
            (&GroupTags::default(), 0, Verdict::Good),
            (&tags("\"B\""), 0, Verdict::Good),
        ] {
            assert_eq!(invalidations.predicates.of_groups(tags, number), verdict, "{number}");
        }
    }
}

#[test]
fn an_answer_that_invalidates_its_own_group_is_newer_than_that() {
    let invalidations = Invalidations::default();
    let own = tags("\"a\"");
    assert_eq!(invalidations.invalidate_groups((&own, How::Remove), &own, 0), (1, true));
    assert_eq!(invalidations.predicates.of_groups(&own, 1), Verdict::Good);
    assert_eq!(
        invalidations.invalidate_groups((&own, How::Remove), &own, 0),
        (2, false),
        "another came first"
    );
}

#[test]
fn all_groups_may_go_at_once() {
    let invalidations = Invalidations::default();
    let mut any = 0;
    groups::names_of(&tags("\"a\""), &mut |name| any = if any == 0 { name } else { any });
    invalidations.restore_name(any, How::Remove, 5);
    assert_eq!(invalidations.predicates.of_groups(&tags("\"a\""), 4), Verdict::Gone);
    assert_eq!(invalidations.predicates.of_groups(&tags("\"a\""), 5), Verdict::Good);
    assert_eq!(invalidations.predicates.of_groups(&GroupTags::default(), 4), Verdict::Good);
}
