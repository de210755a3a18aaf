//! HTTP-date (RFC 9110 5.6.7): three exact layouts in, IMF-fixdate out.
//!
//! Lenient on letter case and on a weekday that does not fit the date, because real servers get both wrong and the
//! instant is clear all the same. Strict on everything else, because a date that has to be guessed would become a
//! lifetime that has to be guessed. General-purpose date parsers fail one side or the other.
//! A second of 60 is accepted and counts as the next minute. Instants before 1970 are 1970.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::time::WallTime;

/// What a date field says, over all its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateField {
    /// No line at all.
    Absent,
    /// Not a date, or several lines.
    Invalid,
    /// An instant.
    At(WallTime),
}

impl DateField {
    /// Reads the field `name`. `now` is needed for two-digit years only.
    pub fn read(fields: &HeaderMap, name: &HeaderName, now: WallTime) -> Self {
        let mut lines = fields.get_all(name).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => parse(value.as_bytes(), now).map_or(Self::Invalid, Self::At),
            (Some(_), Some(_)) => Self::Invalid,
        }
    }

    /// The instant, where there is one.
    pub const fn at(self) -> Option<WallTime> {
        match self {
            Self::At(time) => Some(time),
            Self::Absent | Self::Invalid => None,
        }
    }
}

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
const DAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
const DAY_SECONDS: i64 = 86_400;
/// Fifty Gregorian years: how far in the future a two-digit year may lie.
const FIFTY_YEARS: i64 = 50 * 31_556_952;

/// Parses an HTTP-date. `now` decides the century of a two-digit year: never more than fifty years ahead.
pub fn parse(value: &[u8], now: WallTime) -> Option<WallTime> {
    match value.len() {
        29 => imf_fixdate(value),
        24 => asctime(value),
        30..=33 => rfc850(value, now),
        _ => None,
    }
    .map(|seconds| WallTime::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(v: &[u8]) -> Option<i64> {
    short_weekday(v.get(..3)?)?;
    literal(v, 3, b", ")?;
    let day = digits(v, 5, 2)?;
    literal(v, 7, b" ")?;
    let month = month(v.get(8..11)?)?;
    literal(v, 11, b" ")?;
    let year = digits(v, 12, 4)?;
    literal(v, 16, b" ")?;
    let time = time_of_day(v, 17)?;
    zone(v, 25)?;
    Some(days(year, month, day)? * DAY_SECONDS + time)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(v: &[u8]) -> Option<i64> {
    short_weekday(v.get(..3)?)?;
    literal(v, 3, b" ")?;
    let month = month(v.get(4..7)?)?;
    literal(v, 7, b" ")?;
    let day = if v.get(8) == Some(&b' ') { digits(v, 9, 1)? } else { digits(v, 8, 2)? };
    literal(v, 10, b" ")?;
    let time = time_of_day(v, 11)?;
    literal(v, 19, b" ")?;
    let year = digits(v, 20, 4)?;
    Some(days(year, month, day)? * DAY_SECONDS + time)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(value: &[u8], now: WallTime) -> Option<i64> {
    let comma = value.iter().position(|b| *b == b',')?;
    let (weekday, v) = value.split_at(comma);
    DAYS.iter().find(|name| name.eq_ignore_ascii_case(weekday))?;
    if v.len() != 24 {
        return None;
    }
    literal(v, 0, b", ")?;
    let day = digits(v, 2, 2)?;
    literal(v, 4, b"-")?;
    let month = month(v.get(5..8)?)?;
    literal(v, 8, b"-")?;
    let short = digits(v, 9, 2)?;
    literal(v, 11, b" ")?;
    let time = time_of_day(v, 12)?;
    zone(v, 20)?;

    let now = i64::try_from(now.secs()).ok()?;
    let (this_year, ..) = civil(now.div_euclid(DAY_SECONDS));
    let century = this_year - this_year.rem_euclid(100);
    // The latest of the years with these two digits that is not more than fifty years ahead.
    let in_century = |century: i64| Some(days(century + short, month, day)? * DAY_SECONDS + time);
    [century + 100, century, century - 100]
        .into_iter()
        .filter_map(in_century)
        .find(|instant| *instant <= now.saturating_add(FIFTY_YEARS))
}

fn literal(v: &[u8], at: usize, expected: &[u8]) -> Option<()> {
    (v.get(at..at + expected.len())? == expected).then_some(())
}

fn digits(v: &[u8], at: usize, count: usize) -> Option<i64> {
    super::digits::number(v.get(at..at + count)?).and_then(|n| i64::try_from(n).ok())
}

/// ` GMT` to the end.
fn zone(v: &[u8], at: usize) -> Option<()> {
    v.get(at..)?.eq_ignore_ascii_case(b" GMT").then_some(())
}

fn short_weekday(name: &[u8]) -> Option<()> {
    DAYS.iter().find(|day| day.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(name))).map(|_| ())
}

fn month(name: &[u8]) -> Option<i64> {
    let index = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
    i64::try_from(index + 1).ok()
}

/// `08:49:37` in seconds.
fn time_of_day(v: &[u8], at: usize) -> Option<i64> {
    let (hour, minute, second) = (digits(v, at, 2)?, digits(v, at + 3, 2)?, digits(v, at + 6, 2)?);
    literal(v, at + 2, b":")?;
    literal(v, at + 5, b":")?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Days since 1970-01-01 of a date that exists in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    // Years that begin in March put the leap day last, so the days before a month follow one linear formula.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (y.div_euclid(400), y.rem_euclid(400));
    let of_year = (153 * m + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Year, month and day of a number of days since 1970-01-01; the inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let y = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * y + y / 4 - y / 100);
    let m = (5 * of_year + 2) / 153;
    let day = of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    (y + era * 400 + i64::from(month <= 2), month, day)
}

/// The last instant that four digits of year can say.
const LAST: u64 = 253_402_300_799;

/// Writes IMF-fixdate, the one form that may be generated; cut to whole seconds and to the year 9999.
pub fn write(time: WallTime) -> [u8; 29] {
    let seconds = i64::try_from(time.secs().min(LAST)).unwrap_or(0);
    let (day_number, of_day) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (year, month, day) = civil(day_number);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // 1970-01-01 was a Thursday, which is number 3 of the table.
    let weekday = usize::try_from((day_number + 3).rem_euclid(7)).unwrap_or(0);
    if let Some(short) = DAYS.get(weekday).and_then(|name| name.get(..3)) {
        out[..3].copy_from_slice(short);
    }
    if let Some(name) = usize::try_from(month - 1).ok().and_then(|index| MONTHS.get(index)) {
        out[8..11].copy_from_slice(*name);
    }
    let mut two = |at: usize, number: i64| {
        out[at] = b'0' + (number / 10 % 10) as u8;
        out[at + 1] = b'0' + (number % 10) as u8;
    };
    two(5, day);
    two(12, year / 100);
    two(14, year % 100);
    two(17, of_day / 3600);
    two(20, of_day / 60 % 60);
    two(23, of_day % 60);
    out
}

/// [`write()`] as a field value.
pub fn format(time: WallTime) -> HeaderValue {
    HeaderValue::from_bytes(&write(time)).expect("letters, digits and spaces are a field value")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const NOW: WallTime = WallTime::from_secs(1_760_000_000); // October 2025

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse(text.as_bytes(), NOW), expected.map(WallTime::from_secs), "{text:?}");
    }

    #[test]
    fn three_layouts_are_read() {
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777));
        check("Sun Nov  6 08:49:37 1994", Some(784_111_777));
        check("Wed Nov 16 08:49:37 1994", Some(784_975_777));
        check("Tue, 29 Feb 2000 23:59:60 GMT", Some(951_868_800));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(0));
        check("Fri, 01 Jan 1960 00:00:00 GMT", Some(0));
        check("Tue, 19 Jan 2038 03:14:08 GMT", Some(1 << 31));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(LAST));
    }

    #[test]
    fn letter_case_and_weekday_do_not_matter() {
        check("sun, 06 NOV 1994 08:49:37 gMt", Some(784_111_777));
        check("Mon Nov  6 08:49:37 1994", Some(784_111_777));
        check("THURSDAY, 06-nov-94 08:49:37 GMT", Some(784_111_777));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "0",
            "-1",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 AEST",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov 1994 08:49:37 GMT",
            "Sun,  06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Wed, 29 Feb 2023 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Xyz 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Someday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sun Nov 06 08:49:37 1994 ",
            "Sun Nov 006 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_two_digit_year_is_never_more_than_fifty_years_ahead() {
        assert_eq!(
            parse(b"Tuesday, 01-Mar-50 00:00:00 GMT", NOW),
            parse(b"Tue, 01 Mar 2050 00:00:00 GMT", NOW)
        );
        let late = WallTime::from_secs(4_091_000_000); // August 2099
        assert_eq!(
            parse(b"Tuesday, 01-Mar-05 00:00:00 GMT", late),
            parse(b"Tue, 01 Mar 2105 00:00:00 GMT", late)
        );
        assert_eq!(
            parse(b"Tuesday, 01-Mar-75 00:00:00 GMT", NOW),
            parse(b"Tue, 01 Mar 2075 00:00:00 GMT", NOW)
        );
        assert_eq!(
            parse(b"Tuesday, 01-Mar-76 00:00:00 GMT", NOW),
            parse(b"Tue, 01 Mar 1976 00:00:00 GMT", NOW)
        );
        assert_eq!(
            parse(b"Tuesday, 29-Feb-00 00:00:00 GMT", late),
            parse(b"Tue, 29 Feb 2000 00:00:00 GMT", late)
        );
    }

    #[test]
    fn several_lines_are_no_date() {
        let mut fields = HeaderMap::new();
        assert_eq!(DateField::read(&fields, &http::header::EXPIRES, NOW), DateField::Absent);
        fields.append(http::header::EXPIRES, format(NOW));
        assert_eq!(DateField::read(&fields, &http::header::EXPIRES, NOW), DateField::At(NOW));
        fields.append(http::header::EXPIRES, format(NOW));
        assert_eq!(DateField::read(&fields, &http::header::EXPIRES, NOW), DateField::Invalid);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in 0..=LAST) {
            let time = WallTime::from_secs(seconds);
            prop_assert_eq!(parse(&write(time), NOW), Some(time));
            prop_assert_eq!(parse(&write(WallTime(time.0 + 999)), NOW), Some(time));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40), now in any::<u64>()) {
            let _ = parse(&bytes, WallTime(now));
        }

        #[test]
        fn one_changed_byte_never_panics(
            form in 0..3_usize, at in 0..33_usize, byte in any::<u8>(), now in any::<u64>()
        ) {
            let mut text = [
                b"Sun, 06 Nov 1994 08:49:37 GMT".to_vec(),
                b"Wednesday, 06-Nov-94 08:49:37 GMT".to_vec(),
                b"Sun Nov  6 08:49:37 1994".to_vec(),
            ][form].clone();
            if let Some(slot) = text.get_mut(at) {
                *slot = byte;
            }
            let _ = parse(&text, WallTime(now));
        }
    }
}
