//! What every tier must do, as behaviours that each tier's own tests run.
//!
//! In: how a tier of one kind is made, and heads that it keeps ([`Subject`]). Out: a panic where a behaviour does not hold. A
//! behaviour asks for nothing but the traits, and asks in the order in which a store does. So a tier of another kind can be
//! held against them too, behind memory or before it. All of them run in each of two lives, and each life begins with a
//! look at what the one before has left. What a store makes of its tiers is tested with the store. Behind the feature
//! `contract`, which tests alone switch on.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::expect_used, clippy::missing_panics_doc)]

mod endings;
mod fills;
mod inspection;
mod keeping;
mod life;
mod subject;

use life::{Life, Past};
pub use subject::Subject;

/// Runs all of them.
///
/// # Panics
/// One does not hold.
pub async fn run<S: Subject>(subject: &S) {
    let mut past = Past::default();
    for number in 0..2 {
        let life = Life::begin(subject, number, &mut past);
        keeping::what_was_there_is_there_again(&life, &past).await;
        endings::what_was_noted_is_told(&life, &past).await;
        inspection::a_tier_takes_what_it_keeps_and_says_where(&life);
        inspection::a_page_begins_at_the_beginning_and_at_nothing_else(&life);
        fills::what_is_taken_is_read_at_once_and_at_its_end(&life).await;
        fills::a_fill_that_is_dropped_leaves_nothing(&life);
        fills::what_is_too_large_is_not_taken(&life);
        keeping::what_is_put_is_found(&life, &mut past).await;
        keeping::what_has_the_same_identity_is_replaced(&life, &mut past).await;
        endings::a_base_without_anything_is_invalidated_without_harm(&life);
        endings::what_is_forgotten_is_gone(&life, &mut past).await;
        endings::what_is_discarded_is_gone(&life, &mut past).await;
        endings::an_invalidation_takes_every_variant_and_nothing_else(&life, &mut past).await;
        endings::a_purge_takes_what_lies_apart_as_well(&life, &mut past).await;
        inspection::a_listing_meets_everything_once(&life, &past).await;
        endings::what_is_noted_is_written(&life, &mut past).await;
        life.end();
    }
    let life = Life::begin(subject, 2, &mut past);
    keeping::what_was_there_is_there_again(&life, &past).await;
    endings::what_was_noted_is_told(&life, &past).await;
    life.end();
    // Nobody knows what it has not heard of.
    let life = Life::begin_in_doubt(subject, 3);
    keeping::nothing_is_used_that_is_not_believed(&life, &past).await;
    life.end();
}
