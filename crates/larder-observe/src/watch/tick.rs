//! A second as it is handed to all who look on: the same bytes for each of them.
//!
//! In: a second with its figures. Out: one JSON object, `at` and `values`. Numbers have four significant digits: pictures show no more, and exact figures
//! are those of `/metrics`.

use super::history::Second;
use crate::access_log::escape;
use larder_http::time::WallTime;

/// A second as JSON.
#[derive(Debug)]
pub struct Tick {
    /// Its end.
    pub at: WallTime,
    json: Box<[u8]>,
}

impl Tick {
    pub(super) fn new(second: &Second) -> Self {
        let mut json = Vec::with_capacity(64 + 32 * second.values.len());
        json.extend_from_slice(b"{\"at\":");
        number(second.at.0 as f64 / 1e3, 16, &mut json);
        json.extend_from_slice(b",\"values\":");
        values(second.values.iter().map(|(name, value)| (&**name, f64::from(*value))), &mut json);
        json.push(b'}');
        Self { at: second.at, json: json.into() }
    }

    /// `{"at":…,"values":{…}}`, in one line.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// So much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.json.len()
    }
}

/// Appends an object of figures by name.
pub fn values<'a>(values: impl IntoIterator<Item = (&'a str, f64)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (place, (name, value)) in values.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.push(b'"');
        escape::json(name.as_bytes(), out);
        out.extend_from_slice(b"\":");
        number(value, 4, out);
    }
    out.push(b'}');
}

/// Appends a number with so many significant digits, and all that it has before the point. What is no number is `null`.
pub fn number(value: f64, digits: usize, out: &mut Vec<u8>) {
    if !value.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    let before = value.abs().max(1e-9).log10().floor() as i32 + 1;
    let after = usize::try_from(digits as i32 - before).unwrap_or_default().min(12);
    let mut text = format!("{value:.after$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_all_before_the_point() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.000_123_456, "0.0001235"),
            (1.234_56, "1.235"),
            (12_345_678.9, "12345679"),
            (99.999, "100"),
            (-2.5, "-2.5"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
            (1e-15, "0"),
        ] {
            let mut out = Vec::new();
            number(value, 4, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text, "{value}");
        }
    }

    #[test]
    fn a_second_is_one_line_of_json_whatever_names_hold() {
        let values = vec![("a\n\"b".into(), 1.5), ("requests".into(), 2.0)];
        let tick = Tick::new(&Second { at: WallTime(1_700_000_000_042), values });
        let text = std::str::from_utf8(tick.json()).unwrap();
        assert_eq!(text, "{\"at\":1700000000.042,\"values\":{\"a\\u000a\\\"b\":1.5,\"requests\":2}}");
    }
}
