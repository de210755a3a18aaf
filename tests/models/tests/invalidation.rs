//! Every order of purges and looks.

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
