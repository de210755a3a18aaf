//! Every order of purges, looks, fetches and walks.

use models::invalidation;

#[test]
fn a_host_that_was_purged_is_never_good_again() {
    invalidation::a_host_that_was_purged_is_never_good_again();
}

#[test]
fn a_tag_that_was_purged_is_never_good_again() {
    invalidation::a_tag_that_was_purged_is_never_good_again();
}

#[test]
fn a_url_that_was_purged_is_never_good_again() {
    invalidation::a_url_that_was_purged_is_never_good_again();
}

#[test]
fn a_tag_that_was_purged_beside_a_url_is_never_good_again() {
    invalidation::a_tag_that_was_purged_beside_a_url_is_never_good_again();
}

#[test]
fn what_made_room_for_others_is_never_good_again() {
    invalidation::what_made_room_for_others_is_never_good_again();
}

#[test]
fn a_fetch_is_older_or_newer_than_a_purge() {
    invalidation::a_fetch_is_older_or_newer_than_a_purge();
}

#[test]
fn numbers_go_on_above_those_of_a_store() {
    invalidation::numbers_go_on_above_those_of_a_store();
}

#[test]
fn a_purge_of_a_tag_is_lost_by_no_walk() {
    invalidation::a_purge_of_a_tag_is_lost_by_no_walk();
}

#[test]
fn a_purge_of_any_tag_is_lost_by_no_walk() {
    invalidation::a_purge_of_any_tag_is_lost_by_no_walk();
}

#[test]
fn a_soft_purge_is_lost_by_no_walk() {
    invalidation::a_soft_purge_is_lost_by_no_walk();
}

#[test]
fn a_purge_is_not_lost_for_a_fetch_from_before_it() {
    invalidation::a_purge_is_not_lost_for_a_fetch_from_before_it();
}
