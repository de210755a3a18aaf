//! The demo's result as text: a table for 80 columns, and one line that says it in words.
//!
//! In: what two loads came to. Out: text. Rounding never flatters: factors and percentages are rounded towards no
//! difference, and a wait that is only known to be longer than a time is marked so.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::load::Outcome;

/// The table, each line ended.
pub(super) fn table(app: &Outcome, larder: &Outcome) -> String {
    let mut rows = vec![
        ("requests/s", rate(app.rate()), rate(larder.rate())),
        ("p50", wait_at(app, 50.0), wait_at(larder, 50.0)),
        ("p99", wait_at(app, 99.0), wait_at(larder, 99.0)),
        ("longest", wait_of(app, app.longest), wait_of(larder, larder.longest)),
        ("requests answered", grouped(app.answers), grouped(larder.answers)),
        ("origin requests (renders)", grouped(app.all_renders()), grouped(larder.all_renders())),
        ("bytes to clients", bytes(app.body_bytes), bytes(larder.body_bytes)),
        ("oldest page on arrival", seconds(app.oldest), seconds(larder.oldest)),
    ];
    rows.extend(gave_up(app, larder));
    printed(&rows)
}

/// A label, and what stands in either column.
pub(super) type Row = (&'static str, String, String);

/// The row of those that gave up, where there are any.
pub(super) fn gave_up(app: &Outcome, larder: &Outcome) -> Option<Row> {
    let row = ("gave up waiting", grouped(app.unanswered), grouped(larder.unanswered));
    (app.unanswered + larder.unanswered > 0).then_some(row)
}

/// Rows as text, under the heads of the columns.
pub(super) fn printed(rows: &[Row]) -> String {
    let mut text = format!("  {:<28}{:>18}{:>20}\n  {}\n", "", "app alone", "through larder", "-".repeat(66));
    for (label, app, larder) in rows {
        let _ = writeln!(text, "  {label:<28}{app:>18}{larder:>20}");
    }
    text
}

/// What it comes to, in words.
pub(super) fn verdict(app: &Outcome, larder: &Outcome) -> String {
    format!(
        "larder: {}x the requests per second, {}",
        factor(app, larder),
        renders(app.all_renders(), larder.all_renders())
    )
}

/// How many times as many requests were answered, rounded down.
pub(super) fn factor(app: &Outcome, larder: &Outcome) -> String {
    let factor = larder.rate() / app.rate();
    if factor >= 10.0 { grouped(factor as u64) } else { format!("{:.1}", (factor * 10.0).floor() / 10.0) }
}

fn renders(app: u64, larder: u64) -> String {
    let percent = |part: u64| u128::from(part) * 100 / u128::from(app.max(1));
    match (app.saturating_sub(larder), larder.saturating_sub(app)) {
        (0, 0) => "as many renders".to_owned(),
        (0, more) => format!("{} % more renders", percent(more)),
        (fewer, _) => format!("{} % fewer renders", percent(fewer)),
    }
}

/// The wait that `percentile` of all requests did not exceed. Only the longest is kept exactly, the others in three
/// digits, rounded up.
pub(super) fn wait_at(outcome: &Outcome, percentile: f64) -> String {
    at(outcome, &outcome.waits, percentile)
}

/// The same of the waits for first bytes.
pub(super) fn first_at(outcome: &Outcome, percentile: f64) -> String {
    at(outcome, &outcome.first_bytes, percentile)
}

fn at(outcome: &Outcome, waits: &Histogram<u64>, percentile: f64) -> String {
    let wait = Duration::from_micros(waits.value_at_percentile(percentile));
    wait_of(outcome, wait.min(outcome.longest))
}

pub(super) fn wait_of(outcome: &Outcome, wait: Duration) -> String {
    let is_bound = outcome.bound_from.is_some_and(|bound| wait >= bound);
    format!("{}{}", if is_bound { "> " } else { "" }, milliseconds(wait))
}

fn milliseconds(wait: Duration) -> String {
    match wait.as_secs_f64() * 1000.0 {
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms => format!("{} ms", grouped(ms.round() as u64)),
    }
}

pub(super) fn seconds(age: Duration) -> String {
    format!("{:.2} s", age.as_secs_f64())
}

/// Per second; one decimal where that says something.
pub(super) fn rate(rate: f64) -> String {
    if rate < 99.95 { format!("{rate:.1}") } else { grouped(rate as u64) }
}

/// Bytes in decimal units, as networks and disks count.
fn bytes(bytes: u64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let bytes_f64 = bytes as f64;
    match UNITS.iter().find(|(unit, _)| bytes_f64 >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes_f64 / unit),
        None => format!("{bytes} B"),
    }
}

/// A number with its thousands set apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(answers: u64, renders: u64, waits_ms: &[u64]) -> Outcome {
        let mut outcome = Outcome::new(Duration::from_secs(8));
        outcome.answers = answers;
        outcome.renders = vec![renders];
        outcome.body_bytes = answers * 57_000;
        waits_ms.iter().map(|ms| Duration::from_millis(*ms)).for_each(|wait| outcome.waited(wait, wait));
        outcome
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn figures_have_as_many_digits_as_they_are_worth() {
        let check = |found: String, expected| assert_eq!(found, expected);
        check(milliseconds(Duration::from_micros(42)), "0.04 ms");
        check(milliseconds(Duration::from_micros(9_994)), "9.99 ms");
        check(milliseconds(Duration::from_micros(9_996)), "10.0 ms");
        check(milliseconds(Duration::from_micros(1_802_400)), "1,802 ms");
        check(rate(5.55), "5.5");
        check(rate(12_345.9), "12,345");
        check(bytes(12), "12 B");
        check(bytes(57_000), "57.0 kB");
        check(bytes(5_340_000_000), "5.3 GB");
    }

    #[test]
    fn the_verdict_rounds_towards_no_difference() {
        let check = |app: (u64, u64), larder: (u64, u64), expected: &str| {
            let verdict = verdict(&outcome(app.0, app.1, &[]), &outcome(larder.0, larder.1, &[]));
            assert_eq!(verdict, format!("larder: {expected}"));
        };
        check((44, 44), (18_170, 7), "412x the requests per second, 84 % fewer renders");
        check((44, 44), (85, 43), "1.9x the requests per second, 2 % fewer renders");
        check((44, 44), (44, 44), "1.0x the requests per second, as many renders");
        check((44, 44), (40, 66), "0.9x the requests per second, 50 % more renders");
        check((1000, 1000), (2_500_000, 1), "2,500x the requests per second, 99 % fewer renders");
    }

    #[test]
    fn the_table_fits_80_columns_and_marks_waits_that_are_lower_bounds() {
        let mut app = outcome(44, 44, &[180, 1800, 4000, 5000]);
        app.unanswered = 2;
        app.bound_from = Some(Duration::from_millis(4000));
        let larder = outcome(4_000_000_000, 7, &[1]);
        let table = table(&app, &larder);
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        let row = |label: &str| {
            let row = table.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
            row.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("requests/s"), "5.5 500,000,000");
        assert_eq!(row("p50"), "1,800 ms 1.00 ms");
        assert_eq!(row("p99"), "> 5,000 ms 1.00 ms");
        assert_eq!(row("gave up waiting"), "2 0");
    }
}
