//! Numbers and rows as people read them, for commands that print tables.
//!
//! In: cells. Out: lines, columns two spaces apart, each as wide as its widest cell; numbers to the right. What came over the
//! network is printed without anything that a terminal could take for a command.

use std::time::Duration;

use super::output::printable;

/// Which way a column leans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lean {
    Left,
    Right,
}

/// Rows under a head.
pub(super) struct Table {
    leans: Vec<Lean>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub(super) fn new(columns: &[(&str, Lean)]) -> Self {
        let head = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { leans: columns.iter().map(|(_, lean)| *lean).collect(), rows: vec![head] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// Whether there is nothing under the head.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The lines, each after `indent` spaces.
    pub(super) fn text(&self, indent: usize) -> String {
        let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        let width = |column| self.rows.iter().map(|row| cell(row, column)).max().unwrap_or_default();
        let widths: Vec<usize> = (0..self.leans.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).zip(&self.leans).map(|((cell, width), lean)| match lean {
                Lean::Left => format!("{cell:<width$}"),
                Lean::Right => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(&" ".repeat(indent));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A number of bytes, in three digits or so.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        None => format!("{bytes} B"),
        Some((unit, shift)) => {
            let count = bytes as f64 / (1_u64 << shift) as f64;
            if count < 100.0 { format!("{count:.1} {unit}") } else { format!("{count:.0} {unit}") }
        }
    }
}

/// A count, its digits in groups of three.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: "1 response", "2 responses".
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A length of time in its largest unit, rounded down.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("min", 60)];
    match units.into_iter().find(|(_, length)| seconds >= 2 * length) {
        Some((unit, length)) => format!("{} {unit}", seconds / length),
        None => format!("{seconds} s"),
    }
}

/// The same of what may be negative.
pub(super) fn signed_time(seconds: i64) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    format!("{sign}{}", time(Duration::from_secs(seconds.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_say_their_unit() {
        let sizes =
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (12_595, "12.3 KiB"), (200 << 20, "200 MiB")];
        for (size, expected) in sizes {
            assert_eq!(bytes(size), expected);
        }
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(count(number), expected);
        }
        for (number, expected) in [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1000, "1 000 files")] {
            assert_eq!(counted(number, "file", "files"), expected);
        }
        for (seconds, expected) in
            [(0, "0 s"), (119, "119 s"), (-120, "-2 min"), (7200, "2 h"), (200_000, "2 d"), (-1, "-1 s")]
        {
            assert_eq!(signed_time(seconds), expected);
        }
    }

    #[test]
    fn columns_are_as_wide_as_they_need_and_nothing_steers_the_terminal() {
        let mut table = Table::new(&[("NAME", Lean::Left), ("N", Lean::Right), ("URL", Lean::Left)]);
        assert!(table.is_empty());
        table.row(["a".to_owned(), "10".to_owned(), "\u{1b}x".to_owned()]);
        table.row(["longer".to_owned(), "7".to_owned(), String::new()]);
        assert_eq!(table.text(1), " NAME     N  URL\n a       10  \\u{1b}x\n longer   7\n");
    }
}
