//! Values that are no texts: times, bytes, plain numbers, status codes.
//!
//! In: a value as it was written, for a field. Out: what it stands for, or a fault that names what the field takes.
//! A time needs a unit, as in the config: a bare number would have to be guessed. A bare number of bytes is bytes.
//! Decimals are read exactly, down to a nanosecond or a byte; what is below is dropped.

use std::fmt;
use std::time::Duration;

use super::fault::{FilterFault, Found};

const NS_PER_S: u64 = 1_000_000_000;

/// The units of times, with their nanoseconds.
const TIMES: [(&str, u64); 6] = [
    ("h", 3600 * NS_PER_S),
    ("min", 60 * NS_PER_S),
    ("m", 60 * NS_PER_S),
    ("s", NS_PER_S),
    ("ms", 1_000_000),
    ("us", 1000),
];

/// The units of sizes, with their bytes. Case does not count.
const SIZES: [(&str, u64); 9] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("k", 1000),
    ("B", 1),
    ("", 1),
];

const TIME_EXPECTED: &str = "a number with a unit of time, such as 200ms";
const BYTES_EXPECTED: &str = "a number of bytes, such as 4096 or 64KiB";
const COUNT_EXPECTED: &str = "a whole number";
const STATUS_EXPECTED: &str = "a code such as 404 or, with = and !=, a class such as 5xx";
const BOOLEAN_EXPECTED: &str = "true or false";
const TIME_UNITS: &str = "us, ms, s, m or min, and h";
const SIZE_UNITS: &str = "B, k or kB, KiB, MB, MiB, GB and GiB";

/// Digits behind the point that count.
const DECIMALS_MAX: usize = 18;
/// So many digits are repeated in a message.
const DIGITS_SHOWN_MAX: usize = 20;

/// Reads a time.
pub(super) fn time(field: &'static str, written: &str) -> Result<Duration, FilterFault> {
    let (number, unit) = split(field, TIME_EXPECTED, written)?;
    if unit.is_empty() {
        return Err(FilterFault::UnitMissing(number.get(..DIGITS_SHOWN_MAX).unwrap_or(number).into()));
    }
    let known = TIMES.iter().find(|(name, _)| *name == unit);
    let (_, ns) = known.ok_or_else(|| unknown(field, unit, TIME_UNITS))?;
    let ns = scaled(number, *ns).ok_or_else(|| FilterFault::TooLarge(Found::new(written)))?;
    Ok(Duration::from_nanos(ns))
}

/// Reads a number of bytes.
pub(super) fn bytes(field: &'static str, written: &str) -> Result<u64, FilterFault> {
    let (number, unit) = split(field, BYTES_EXPECTED, written)?;
    let known = SIZES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let (_, bytes) = known.ok_or_else(|| unknown(field, unit, SIZE_UNITS))?;
    scaled(number, *bytes).ok_or_else(|| FilterFault::TooLarge(Found::new(written)))
}

/// Reads a plain number.
pub(super) fn count(field: &'static str, written: &str) -> Result<u64, FilterFault> {
    let wrong = || wrong(field, COUNT_EXPECTED, written);
    let is_whole = !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_whole.then_some(written).ok_or_else(wrong)?;
    scaled(number, 1).ok_or_else(|| FilterFault::TooLarge(Found::new(written)))
}

/// Reads a boolean.
pub(super) fn boolean(field: &'static str, written: &str) -> Result<bool, FilterFault> {
    let is = |words: [&str; 2]| words.iter().any(|word| word.eq_ignore_ascii_case(written));
    match (is(["true", "yes"]), is(["false", "no"])) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(wrong(field, BOOLEAN_EXPECTED, written)),
    }
}

/// A status code, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusRange {
    first: u16,
    last: u16,
}

impl StatusRange {
    /// Reads a code of three digits or, where `takes_class`, a class such as `5xx`.
    pub(super) fn read(field: &'static str, written: &str, takes_class: bool) -> Result<Self, FilterFault> {
        let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
        let read = match written.as_bytes() {
            [class @ b'1'..=b'9', b'x' | b'X', b'x' | b'X'] if takes_class => {
                digit(class).map(|class| Self { first: class * 100, last: class * 100 + 99 })
            }
            [a @ b'1'..=b'9', b, c] => digit(a).zip(digit(b)).zip(digit(c)).map(|((a, b), c)| {
                let code = a * 100 + b * 10 + c;
                Self { first: code, last: code }
            }),
            _ => None,
        };
        read.ok_or_else(|| wrong(field, STATUS_EXPECTED, written))
    }

    /// How a code stands to it: equal to a class where it is in it.
    pub(super) fn compare(self, code: u16) -> std::cmp::Ordering {
        match code {
            code if code < self.first => std::cmp::Ordering::Less,
            code if code > self.last => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}xx", self.first / 100),
        }
    }
}

/// Writes a time with the largest unit in which it is a whole number, else in microseconds.
pub(super) fn write_time(time: Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let whole =
        TIMES.iter().filter(|(unit, _)| *unit != "m").find(|(_, of)| ns.is_multiple_of(*of) && ns > 0);
    match whole {
        Some((unit, of)) => write!(f, "{}{unit}", ns / of),
        None if ns == 0 => f.write_str("0s"),
        None => write!(f, "{}.{:03}us", ns / 1000, ns % 1000),
    }
}

/// Writes a size with the largest unit in which it is a whole number.
pub(super) fn write_bytes(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let named = SIZES.iter().filter(|(unit, _)| unit.len() > 1);
    match named.clone().find(|(_, of)| bytes.is_multiple_of(*of) && bytes > 0) {
        Some((unit, of)) => write!(f, "{}{unit}", bytes / of),
        None => write!(f, "{bytes}"),
    }
}

/// Number and unit of a value.
fn split<'t>(
    field: &'static str,
    expected: &'static str,
    written: &'t str,
) -> Result<(&'t str, &'t str), FilterFault> {
    let end = written.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(written.len());
    let (number, unit) = written.split_at_checked(end).unwrap_or((written, ""));
    let is_whole = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = match number.split_once('.') {
        Some((whole, decimals)) => is_whole(whole) && is_whole(decimals),
        None => is_whole(number),
    };
    if is_number && !unit.contains(['*', '?']) {
        return Ok((number, unit));
    }
    Err(wrong(field, expected, written))
}

/// A decimal number times `scale`, rounded down.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = decimals.get(..DECIMALS_MAX).unwrap_or(decimals);
    let power = 10u128.pow(u32::try_from(decimals.len()).ok()?);
    let below = if decimals.is_empty() { 0 } else { decimals.parse::<u128>().ok()? };
    let below = below.checked_mul(scale.into())? / power;
    let all = whole.parse::<u64>().ok().map(u128::from)?.checked_mul(scale.into())?.checked_add(below)?;
    u64::try_from(all).ok()
}

fn unknown(field: &'static str, unit: &str, units: &'static str) -> FilterFault {
    FilterFault::UnknownUnit { field, found: Found::new(unit), units }
}

fn wrong(field: &'static str, expected: &'static str, written: &str) -> FilterFault {
    match written.contains(['*', '?']) {
        true => FilterFault::Wildcard { field, expected },
        false => FilterFault::WrongValue { field, expected, found: Found::new(written) },
    }
}
