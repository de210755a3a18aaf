//! The Prometheus text format, version 0.0.4.
//!
//! In: families with their samples, from several sources and in any order. Out: one text in which the samples of a
//! family stand together under one HELP and TYPE, as the format demands, with everything escaped that it escapes.
//! Deliberately absent: OpenMetrics, timestamps, exemplars.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use memchr::memchr3;

use crate::family::{Family, Kind};
use crate::histogram::HistogramSnapshot;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A sample's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Printed exactly.
    Integer(u64),
    /// Printed so that it reads back as the same number.
    Float(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Integer(value as u64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

/// A scrape while it is being put together.
#[derive(Debug, Default)]
pub struct Exposition {
    groups: Vec<Group>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Group {
    name: String,
    text: String,
}

impl Exposition {
    /// The family's samples, to be added to. Asking again for the same family continues it.
    pub fn family(&mut self, family: &Family) -> Samples<'_> {
        self.group(Cow::Borrowed(family.name), family.kind, family.help)
    }

    /// The same for a family that is not declared in this crate. Bytes that a name may not have become `_`; a name
    /// that is known already keeps its first kind and help.
    pub fn foreign(&mut self, name: &str, kind: Kind, help: &str) -> Samples<'_> {
        self.group(metric_name(name), kind, help)
    }

    fn group(&mut self, name: Cow<'_, str>, kind: Kind, help: &str) -> Samples<'_> {
        let known = self.by_name.get(&*name).copied();
        let index = known.unwrap_or_else(|| {
            let mut text = String::new();
            let _ = write!(text, "# HELP {name} ");
            escape(help, false, &mut text);
            let _ = writeln!(text, "\n# TYPE {name} {}", kind.as_str());
            let name = name.into_owned();
            self.by_name.insert(name.clone(), self.groups.len());
            self.groups.push(Group { name, text });
            self.groups.len() - 1
        });
        Samples { group: &mut self.groups[index] }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        let mut text = String::with_capacity(self.groups.iter().map(|group| group.text.len()).sum());
        self.groups.iter().for_each(|group| text.push_str(&group.text));
        text
    }
}

/// One family's samples.
#[derive(Debug)]
pub struct Samples<'a> {
    group: &'a mut Group,
}

impl Samples<'_> {
    /// Adds a sample of a counter or gauge. Labels are name and value.
    pub fn value(&mut self, labels: &[(&str, &str)], value: impl Into<Value>) -> &mut Self {
        self.line("", labels, None, value.into());
        self
    }

    /// Adds a histogram: its buckets, sum and count, in seconds.
    pub fn histogram(&mut self, labels: &[(&str, &str)], histogram: &HistogramSnapshot) -> &mut Self {
        let count = histogram.count();
        for (bound, below) in histogram.cumulative() {
            self.line("_bucket", labels, Some(&bound.to_string()), below.into());
        }
        self.line("_bucket", labels, Some("+Inf"), count.into());
        self.line("_sum", labels, None, histogram.sum_seconds().into());
        self.line("_count", labels, None, count.into());
        self
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], bound: Option<&str>, value: Value) {
        let Group { name, text } = &mut *self.group;
        let _ = write!(text, "{name}{suffix}");
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(text, "{separator}{}=\"", label_name(label));
            escape(value, true, text);
            text.push('"');
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        let _ = match value {
            Value::Integer(n) => writeln!(text, " {n}"),
            Value::Float(f) if f.is_nan() => writeln!(text, " NaN"),
            Value::Float(f) if f.is_infinite() => writeln!(text, " {}Inf", if f > 0.0 { '+' } else { '-' }),
            Value::Float(f) => writeln!(text, " {f}"),
        };
    }
}

/// Backslash and line feed everywhere, the quote in label values. A bare CR is no line end in this format.
fn escape(value: &str, quoted: bool, out: &mut String) {
    let mut rest = value;
    while let Some((plain, from)) =
        memchr3(b'\\', b'\n', b'"', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        out.push_str(plain);
        let mut chars = from.chars();
        match chars.next() {
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some(_) if quoted => out.push_str("\\\""),
            c => out.extend(c),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

fn metric_name(name: &str) -> Cow<'_, str> {
    plain_name(name, |byte| byte == b':')
}

fn label_name(name: &str) -> Cow<'_, str> {
    plain_name(name, |_| false)
}

/// Names are plain already, but for those of others.
fn plain_name(name: &str, also: impl Fn(u8) -> bool) -> Cow<'_, str> {
    let is_plain = |(place, byte): (usize, u8)| {
        byte.is_ascii_alphabetic() || byte == b'_' || also(byte) || (place > 0 && byte.is_ascii_digit())
    };
    if !name.is_empty() && name.bytes().enumerate().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain = |(place, c): (usize, char)| {
        let is_plain = u8::try_from(c).is_ok_and(|byte| c.is_ascii() && is_plain((place, byte)));
        if is_plain { c } else { '_' }
    };
    if name.is_empty() { "_".into() } else { name.chars().enumerate().map(plain).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use std::time::Duration;

    #[test]
    fn samples_of_a_family_stand_together_under_one_head() {
        let mut out = Exposition::default();
        out.foreign("a_total", Kind::Counter, "First.").value(&[("x", "1")], 1_u64);
        out.foreign("b", Kind::Gauge, "Second.").value(&[], 0.5);
        out.foreign("a_total", Kind::Counter, "ignored").value(&[("x", "2"), ("y", "z")], 2_u64);
        let expected = "# HELP a_total First.\n# TYPE a_total counter\na_total{x=\"1\"} 1\na_total{x=\"2\",y=\"z\"} 2\n\
                        # HELP b Second.\n# TYPE b gauge\nb 0.5\n";
        assert_eq!(out.finish(), expected);
    }

    #[test]
    fn nothing_in_a_value_ends_its_line() {
        let cases = [
            ("plain", "plain"),
            ("a\"b", "a\\\"b"),
            ("a\\b", "a\\\\b"),
            ("a\nfake 1", "a\\nfake 1"),
            ("\u{e9}", "\u{e9}"),
            ("", ""),
        ];
        for (value, escaped) in cases {
            let mut out = Exposition::default();
            out.foreign("m", Kind::Gauge, "a\\b\n\"c\"").value(&[("l", value)], 1_u64);
            let expected = format!("# HELP m a\\\\b\\n\"c\"\n# TYPE m gauge\nm{{l=\"{escaped}\"}} 1\n");
            assert_eq!(out.finish(), expected);
        }
    }

    #[test]
    fn names_are_made_valid_and_odd_numbers_named() {
        let mut out = Exposition::default();
        out.foreign("1a-b:c", Kind::Gauge, "").value(&[("9:x", "")], f64::NAN).value(&[], f64::NEG_INFINITY);
        assert_eq!(out.finish(), "# HELP _a_b:c \n# TYPE _a_b:c gauge\n_a_b:c{__x=\"\"} NaN\n_a_b:c -Inf\n");
    }

    #[test]
    fn a_histogram_ends_with_infinity_sum_and_count() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_millis(1));
        histogram.observe(Duration::from_secs(100));
        let mut snapshot = HistogramSnapshot::default();
        snapshot.add(&histogram);
        let mut out = Exposition::default();
        out.foreign("h_seconds", Kind::Histogram, "H.").histogram(&[("u", "app")], &snapshot);
        let text = out.finish();
        assert!(text.contains("h_seconds_bucket{u=\"app\",le=\"0.000512\"} 0\n"), "{text}");
        assert!(text.contains("h_seconds_bucket{u=\"app\",le=\"0.001024\"} 1\n"), "{text}");
        let end = "h_seconds_bucket{u=\"app\",le=\"+Inf\"} 2\nh_seconds_sum{u=\"app\"} 100.001\nh_seconds_count{u=\"app\"} 2\n";
        assert!(text.ends_with(end), "{text}");
    }
}
