//! The result of the demo as text: a table for 80 columns, and one line that says it in words.
//!
//! In: what two loads came to. Out: text. Rounding never flatters, as in the other demo: what larder needs is rounded up, what it saves down.

use std::time::Duration;

use super::super::load::Outcome;
use super::super::table::{factor, first_at, gave_up, grouped, printed, rate, seconds, wait_at, wait_of};
use super::fragment::COUNT;

/// What one load came to.
pub(super) struct Side {
    pub(super) outcome: Outcome,
    /// The greatest age on arrival of each fragment.
    pub(super) oldest: [Duration; COUNT],
}

/// The labels of the fragments' rows.
const RENDERS: [&str; COUNT] = [
    "renders of news, 1 s",
    "renders of offers, 10 s",
    "renders of archive, 1 h",
    "renders of greeting, private",
];
const OLDEST: [&str; COUNT] = ["oldest news", "oldest offers", "oldest archive", "oldest greeting"];

/// The table, each line ended.
pub(super) fn table(app: &Side, larder: &Side) -> String {
    let (alone, fronted) = (&app.outcome, &larder.outcome);
    let mut rows = vec![
        ("requests/s", rate(alone.rate()), rate(fronted.rate())),
        ("first bytes, p50", first_at(alone, 50.0), first_at(fronted, 50.0)),
        ("whole page, p50", wait_at(alone, 50.0), wait_at(fronted, 50.0)),
        ("whole page, p99", wait_at(alone, 99.0), wait_at(fronted, 99.0)),
        ("whole page, longest", wait_of(alone, alone.longest), wait_of(fronted, fronted.longest)),
        ("requests answered", grouped(alone.answers), grouped(fronted.answers)),
    ];
    let renders = alone.renders.iter().zip(&fronted.renders);
    rows.extend(
        RENDERS.iter().zip(renders).map(|(label, (app, larder))| (*label, grouped(*app), grouped(*larder))),
    );
    let oldest = app.oldest.iter().zip(&larder.oldest);
    rows.extend(
        OLDEST.iter().zip(oldest).map(|(label, (app, larder))| (*label, seconds(*app), seconds(*larder))),
    );
    rows.extend(gave_up(alone, fronted));
    printed(&rows)
}

/// What it comes to, in words.
pub(super) fn verdict(app: &Side, larder: &Side) -> String {
    let (alone, fronted) = (&app.outcome, &larder.outcome);
    let per_page = |side: &Outcome| side.all_renders() as f64 / side.answers.max(1) as f64;
    format!(
        "larder: {}x the requests per second, {:.1} renders for a page in place of {:.1}",
        factor(alone, fronted),
        (per_page(fronted) * 10.0).ceil() / 10.0,
        (per_page(alone) * 10.0).floor() / 10.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(answers: u64, renders: [u64; COUNT]) -> Side {
        let mut outcome = Outcome::new(Duration::from_secs(5));
        (outcome.answers, outcome.renders) = (answers, renders.to_vec());
        Side { outcome, oldest: [Duration::from_millis(1400); COUNT] }
    }

    #[test]
    fn the_verdict_rounds_towards_no_difference() {
        let (app, larder) = (side(12, [13, 12, 12, 12]), side(47, [5, 1, 1, 48]));
        let expected = "larder: 3.9x the requests per second, 1.2 renders for a page in place of 4.0";
        assert_eq!(verdict(&app, &larder), expected);
        assert!(expected.len() <= 80);
    }

    #[test]
    fn the_table_fits_80_columns_and_has_a_row_for_each_fragment() {
        let table = table(&side(12, [13, 12, 11, 10]), &side(1_000_000_000, [5, 2, 1, 1_000_000_000]));
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        for row in ["greeting, private 10 1,000,000,000", "news, 1 s 13 5", "oldest archive 1.40 s 1.40 s"] {
            let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(row), "{row} in {table}");
        }
    }
}
