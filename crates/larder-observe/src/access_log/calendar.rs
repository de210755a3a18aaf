//! Wall time as the two formats write it, always in UTC.
//!
//! In: milliseconds since 1970. Out: the text of their second, which each thread keeps until it asks for another: lines
//! come by the thousand per second, and the calendar costs more than all their digits.

use std::cell::Cell;
use std::thread::LocalKey;

use larder_http::time::WallTime;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The last second of the year 9999; a later one would not fit its text.
const SECOND_MAX: u64 = 253_402_300_799;

/// A second and its text.
type Stamp<const N: usize> = Cell<(u64, [u8; N])>;

thread_local! {
    static RFC3339: Stamp<19> = const { Cell::new((u64::MAX, [b' '; 19])) };
    static COMMON: Stamp<26> = const { Cell::new((u64::MAX, [b' '; 26])) };
}

/// RFC 3339 up to the second: `2026-11-21T09:21:00`.
#[inline]
pub(super) fn rfc3339(time: WallTime) -> [u8; 19] {
    stamp(&RFC3339, time, |Civil { year, month, day, hour, minute, second }| {
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    })
}

/// The time of the combined format: `21/Nov/2026:09:21:00 +0000`.
#[inline]
pub(super) fn common(time: WallTime) -> [u8; 26] {
    stamp(&COMMON, time, |Civil { year, month, day, hour, minute, second }| {
        let month = MONTHS[(month as usize - 1) % 12];
        format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
    })
}

#[inline(always)]
fn stamp<const N: usize>(
    last: &'static LocalKey<Stamp<N>>,
    time: WallTime,
    write: fn(Civil) -> String,
) -> [u8; N] {
    let second = time.secs();
    let (known, text) = last.get();
    if known == second {
        return text;
    }
    let written = write(civil(second.min(SECOND_MAX)));
    let mut text = [b' '; N];
    text.iter_mut().zip(written.bytes()).for_each(|(to, from)| *to = from);
    last.set((second, text));
    text
}

struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// The date by the Gregorian calendar, counted in years that begin in March so that the leap day comes last.
fn civil(second: u64) -> Civil {
    let (days, second_of_day) = (second / 86_400, second % 86_400);
    let since_march_0 = days + 719_468;
    let (era, day_of_era) = (since_march_0 / 146_097, since_march_0 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    Civil {
        year: era * 400 + year_of_era + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * march_month + 2) / 5 + 1,
        hour: second_of_day / 3600,
        minute: second_of_day / 60 % 60,
        second: second_of_day % 60,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00", "01/Jan/1970:00:00:00 +0000"),
            (951_782_400, "2000-02-29T00:00:00", "29/Feb/2000:00:00:00 +0000"),
            (951_868_799, "2000-02-29T23:59:59", "29/Feb/2000:23:59:59 +0000"),
            (951_868_800, "2000-03-01T00:00:00", "01/Mar/2000:00:00:00 +0000"),
            (1_798_761_599, "2026-12-31T23:59:59", "31/Dec/2026:23:59:59 +0000"),
            (4_107_542_400, "2100-03-01T00:00:00", "01/Mar/2100:00:00:00 +0000"),
        ];
        for (second, iso, clf) in cases {
            let time = WallTime(second * 1000);
            assert_eq!(str::from_utf8(&rfc3339(time)), Ok(iso));
            assert_eq!(str::from_utf8(&common(time)), Ok(clf));
        }
    }

    #[test]
    fn a_stamp_follows_time_back_and_forth() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00"),
            (999, "1970-01-01T00:00:00"),
            (1000, "1970-01-01T00:00:01"),
            (500, "1970-01-01T00:00:00"),
        ] {
            assert_eq!(str::from_utf8(&rfc3339(WallTime(ms))), Ok(expected));
        }
    }

    #[test]
    fn no_time_is_longer_than_its_place() {
        assert_eq!(&rfc3339(WallTime(u64::MAX)), b"9999-12-31T23:59:59");
        assert_eq!(&common(WallTime(u64::MAX)), b"31/Dec/9999:23:59:59 +0000");
    }
}
