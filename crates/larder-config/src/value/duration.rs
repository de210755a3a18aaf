//! Durations: whole numbers with units, the larger first: `"10s"`, `"1h30m"`, `"500ms"`.
//!
//! A bare number is refused: nobody should have to guess its unit. At most 36 500 days, so that no sum of a few of
//! them overflows.

use std::time::Duration;

use crate::schema::{Setting, Shape, Text, TextSetting};

const UNITS: [(&str, u64); 6] =
    [("y", YEAR_MS), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A year, for what lasts as long: 365 days. It is read, and printed as days.
const YEAR_MS: u64 = 365 * 86_400_000;

const MS_MAX: u64 = 36_500 * 86_400_000;

pub(crate) const TEXT: Text = Text {
    noun: "a duration",
    examples: r#""10s", "500ms", "5m", "24h""#,
    about: "Whole numbers with a unit each: `ms`, `s`, `m`, `h`, `d`, `y` (365 days); larger units first, as in `\"1h30m\"`. At most \
            36500 days.",
    pattern: Some("^([0-9]+y)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"),
};

/// Reads a duration as it is written in the config.
///
/// # Errors
/// A hint, where there is one.
pub fn parse(text: &str) -> Result<Duration, Option<String>> {
    let mut rest = text;
    let mut total_ms = 0u64;
    let mut smallest = u64::MAX;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Some(format!("add a unit: \"{}s\"", crate::document::source::shorten(text))));
    }
    if text.contains('.') {
        return Err(Some("write whole numbers: \"1s500ms\" for one and a half seconds".to_owned()));
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (Ok(number), Some((_, unit_ms))) = (number.parse::<u64>(), known) else {
            return Err(None);
        };
        if *unit_ms >= smallest {
            return Err(Some("larger units come first, each once: \"1h30m\"".to_owned()));
        }
        smallest = *unit_ms;
        let added = number.checked_mul(*unit_ms).and_then(|ms| total_ms.checked_add(ms));
        total_ms = added.filter(|ms| *ms <= MS_MAX).ok_or_else(|| Some("at most 36500 days".to_owned()))?;
        rest = after;
    }
    if smallest == u64::MAX { Err(None) } else { Ok(Duration::from_millis(total_ms)) }
}

/// Prints `duration` as it is written in the config; what is below a millisecond is dropped.
pub fn print_duration(duration: Duration) -> String {
    let mut rest_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, unit_ms) in UNITS.into_iter().filter(|(_, unit_ms)| *unit_ms < YEAR_MS) {
        if rest_ms >= unit_ms {
            text.push_str(&format!("{}{unit}", rest_ms / unit_ms));
            rest_ms %= unit_ms;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

impl TextSetting for Millis {
    const TEXT: Text = TEXT;

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        parse(text).map(Self)
    }
}

/// Carries the text side of [`Duration`], whose [`Setting`] adds the bounds.
struct Millis(Duration);

impl Setting for Duration {
    fn shape() -> Shape {
        Shape::Text(TEXT)
    }

    fn read(
        node: &crate::document::Node,
        at: &crate::reading::At<'_>,
        reading: &mut crate::reading::Reading<'_>,
    ) -> Option<Self> {
        let bare = match &node.value {
            crate::document::Value::Integer(number) if *number >= 0 => {
                Some(format!("add a unit: \"{number}s\""))
            }
            _ => None,
        };
        if bare.is_some() {
            reading.refuse_value(node, at, TEXT.expected(), bare);
            return None;
        }
        Millis::read(node, at, reading).map(|Millis(duration)| duration)
    }

    fn is_within(&self, low: &Self, high: &Self) -> bool {
        (low..=high).contains(&self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn units_are_needed_known_and_in_order() {
        for (text, ms) in [
            ("10s", 10_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
            ("1y1d", 366 * 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        let bad = [
            "",
            "10",
            "s",
            "5 parsecs",
            "1m1h",
            "1s1s",
            "1.5s",
            "-1s",
            "+1s",
            "1S",
            "1 s",
            "36501d",
            "101y",
            "1d1y",
            "99999999999999d",
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back(ms in 0..=MS_MAX) {
            let duration = Duration::from_millis(ms);
            proptest::prop_assert_eq!(parse(&print_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}|[0-9a-z.]{0,24}") {
            let _ = parse(&text);
        }
    }
}
