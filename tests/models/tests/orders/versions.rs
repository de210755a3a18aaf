//! Every order of reads, changes that are told, ends of connections, and looks.

use models::versions;

#[test]
fn a_change_that_is_told_leaves_nothing_older_known() {
    versions::a_change_that_is_told_leaves_nothing_older_known();
}

#[test]
fn a_key_that_is_in_use_is_not_let_go_of() {
    versions::a_key_that_is_in_use_is_not_let_go_of();
}

#[test]
fn a_key_that_is_being_read_is_not_let_go_of() {
    versions::a_key_that_is_being_read_is_not_let_go_of();
}

#[test]
fn what_was_lost_is_not_known() {
    versions::what_was_lost_is_not_known();
}

#[test]
fn what_one_connection_has_read_is_not_known_by_the_next() {
    versions::what_one_connection_has_read_is_not_known_by_the_next();
}
