//! Every order of entries of the log, leases, fetches, purges, and the end of larder.

use models::fleet;

#[test]
fn a_lease_counts_once_the_purges_are_in_force_that_it_rests_on() {
    fleet::a_lease_counts_once_the_purges_are_in_force_that_it_rests_on();
}

#[test]
fn a_doubt_is_not_ended_by_a_lease_that_was_over_before() {
    fleet::a_doubt_is_not_ended_by_a_lease_that_was_over_before();
}

#[test]
fn a_lease_counts_once_the_floor_is_raised_that_it_rests_on() {
    fleet::a_lease_counts_once_the_floor_is_raised_that_it_rests_on();
}

#[test]
fn a_fetch_has_no_position_behind_a_purge_that_it_began_before() {
    fleet::a_fetch_has_no_position_behind_a_purge_that_it_began_before();
}

#[test]
fn a_purge_of_its_own_concerns_what_is_shared_until_it_has_a_place() {
    fleet::a_purge_of_its_own_concerns_what_is_shared_until_it_has_a_place();
}

#[test]
fn a_lease_that_was_ended_for_good_counts_never_again() {
    fleet::a_lease_that_was_ended_for_good_counts_never_again();
}
