//! Wall time as the two formats write it, always in UTC.

use larder_http::time::WallTime;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// The date by the Gregorian calendar, counted in years that begin in March so that the leap day comes last.
fn civil(time: WallTime) -> Civil {
    let (days, second_of_day) = (time.secs() / 86_400, time.secs() % 86_400);
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

/// RFC 3339 with milliseconds: `2026-11-21T09:21:00.250Z`.
pub(super) fn rfc3339(time: WallTime) -> String {
    let Civil { year, month, day, hour, minute, second } = civil(time);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", time.0 % 1000)
}

/// The time of the combined format: `21/Nov/2026:09:21:00 +0000`.
pub(super) fn common(time: WallTime) -> String {
    let Civil { year, month, day, hour, minute, second } = civil(time);
    let month = MONTHS[(month as usize - 1) % 12];
    format!("{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z", "01/Jan/1970:00:00:00 +0000"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z", "29/Feb/2000:00:00:00 +0000"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z", "29/Feb/2000:23:59:59 +0000"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z", "01/Mar/2000:00:00:00 +0000"),
            (1_798_761_599_007, "2026-12-31T23:59:59.007Z", "31/Dec/2026:23:59:59 +0000"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z", "01/Mar/2100:00:00:00 +0000"),
        ];
        for (ms, iso, clf) in cases {
            assert_eq!(rfc3339(WallTime(ms)), iso);
            assert_eq!(common(WallTime(ms)), clf);
        }
    }

    #[test]
    fn no_time_panics() {
        rfc3339(WallTime(u64::MAX));
        common(WallTime(u64::MAX));
    }
}
