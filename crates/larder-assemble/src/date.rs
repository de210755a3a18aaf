//! Dates as a template asks for them: `strftime` in the C locale, in UTC, and `%s`.
//!
//! In: an instant and a format. Out: text. A conversion that is unknown stays as it is written. The modifiers `E` and `O`
//! mean nothing in the C locale. Deliberately absent: time zones; larder knows none.

use larder_http::time::WallTime;

/// What nginx and Apache use where no format is set.
pub(crate) const DEFAULT_FORMAT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The last day that is written, in the year 9999; formats have four digits.
const DAYS_MAX: i64 = 2_932_896;

/// An instant, taken apart.
struct Civil {
    year: i64,
    /// From 0.
    month: usize,
    day: i64,
    /// From 0.
    day_of_year: i64,
    /// Sunday is 0.
    weekday: usize,
    hour: i64,
    minute: i64,
    second: i64,
    seconds: i64,
}

impl Civil {
    fn of(instant: WallTime) -> Self {
        let seconds = i64::try_from(instant.secs()).unwrap_or(i64::MAX).min((DAYS_MAX + 1) * 86_400 - 1);
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        // Years that begin in March, as Hinnant counts them.
        let era_days = days + 719_468;
        let (era, of_era) = (era_days / 146_097, era_days % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before_march = 59 + i64::from(is_leap);
        let day_of_year = if month < 2 { of_year - 306 } else { of_year + before_march };
        Self {
            year,
            month: usize::try_from(month).unwrap_or(0),
            day,
            day_of_year,
            weekday: usize::try_from((days + 4) % 7).unwrap_or(0),
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            seconds,
        }
    }

    fn weekday_name(&self) -> &'static str {
        DAYS.get(self.weekday).copied().unwrap_or_default()
    }

    fn month_name(&self) -> &'static str {
        MONTHS.get(self.month).copied().unwrap_or_default()
    }

    /// Monday is 0.
    fn weekday_after_monday(&self) -> i64 {
        (self.weekday as i64 + 6) % 7
    }

    /// Year and week of ISO 8601.
    fn iso_week(&self) -> (i64, i64) {
        let weeks_of = |year: i64| {
            let shift = |year: i64| (year + year / 4 - year / 100 + year / 400) % 7;
            52 + i64::from(shift(year) == 4 || shift(year - 1) == 3)
        };
        match (self.day_of_year - self.weekday_after_monday() + 10) / 7 {
            0 => (self.year - 1, weeks_of(self.year - 1)),
            week if week > weeks_of(self.year) => (self.year + 1, 1),
            week => (self.year, week),
        }
    }
}

/// Writes `instant` in `format`.
pub(crate) fn format(instant: WallTime, format: &[u8]) -> Vec<u8> {
    let civil = Civil::of(instant);
    let mut out = Vec::with_capacity(format.len() * 2);
    write(&civil, format, &mut out);
    out
}

fn write(civil: &Civil, format: &[u8], out: &mut Vec<u8>) {
    let mut rest = format;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let (conversion, after) = match after {
            [b'E' | b'O', conversion, after @ ..] | [conversion, after @ ..] => (*conversion, after),
            [] => {
                out.push(b'%');
                return;
            }
        };
        rest = after;
        convert(civil, conversion, out);
    }
}

fn convert(civil: &Civil, conversion: u8, out: &mut Vec<u8>) {
    let hour_of_half = (civil.hour + 11) % 12 + 1;
    let is_afternoon = civil.hour >= 12;
    let text = match conversion {
        b'a' => civil.weekday_name().get(..3).unwrap_or_default().to_owned(),
        b'A' => civil.weekday_name().to_owned(),
        b'b' | b'h' => civil.month_name().get(..3).unwrap_or_default().to_owned(),
        b'B' => civil.month_name().to_owned(),
        b'c' => return write(civil, b"%a %b %e %H:%M:%S %Y", out),
        b'C' => format!("{:02}", civil.year / 100),
        b'd' => format!("{:02}", civil.day),
        b'D' | b'x' => return write(civil, b"%m/%d/%y", out),
        b'e' => format!("{:2}", civil.day),
        b'F' => return write(civil, b"%Y-%m-%d", out),
        b'g' => format!("{:02}", civil.iso_week().0 % 100),
        b'G' => civil.iso_week().0.to_string(),
        b'H' => format!("{:02}", civil.hour),
        b'I' => format!("{hour_of_half:02}"),
        b'j' => format!("{:03}", civil.day_of_year + 1),
        b'k' => format!("{:2}", civil.hour),
        b'l' => format!("{hour_of_half:2}"),
        b'm' => format!("{:02}", civil.month + 1),
        b'M' => format!("{:02}", civil.minute),
        b'n' => "\n".to_owned(),
        b'p' => if is_afternoon { "PM" } else { "AM" }.to_owned(),
        b'P' => if is_afternoon { "pm" } else { "am" }.to_owned(),
        b'r' => return write(civil, b"%I:%M:%S %p", out),
        b'R' => return write(civil, b"%H:%M", out),
        b's' => civil.seconds.to_string(),
        b'S' => format!("{:02}", civil.second),
        b't' => "\t".to_owned(),
        b'T' | b'X' => return write(civil, b"%H:%M:%S", out),
        b'u' => (civil.weekday_after_monday() + 1).to_string(),
        b'U' => format!("{:02}", (civil.day_of_year + 7 - civil.weekday as i64) / 7),
        b'V' => format!("{:02}", civil.iso_week().1),
        b'w' => civil.weekday.to_string(),
        b'W' => format!("{:02}", (civil.day_of_year + 7 - civil.weekday_after_monday()) / 7),
        b'y' => format!("{:02}", civil.year % 100),
        b'Y' => civil.year.to_string(),
        b'z' => "+0000".to_owned(),
        b'Z' => "GMT".to_owned(),
        b'%' => "%".to_owned(),
        other => {
            out.extend([b'%', other]);
            return;
        }
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: u64, layout: &str, expected: &str) {
        let found = format(WallTime::from_secs(seconds), layout.as_bytes());
        assert_eq!(String::from_utf8_lossy(&found), expected, "{layout} of {seconds}");
    }

    #[test]
    fn every_conversion_as_gnu_date_writes_it() {
        // 2026-02-09T05:06:07Z, a Monday.
        let all = "%a %A %b %B %C %d %D %e %F %g %G %h %H %I %j %k %l %m %M %p %P %r %R %s %S %T %u %U %V %w %W %y %Y %z %Z %%";
        check(
            1_770_613_567,
            all,
            "Mon Monday Feb February 20 09 02/09/26  9 2026-02-09 26 2026 Feb 05 05 040  5  5 02 06 AM am 05:06:07 AM 05:06 \
             1770613567 07 05:06:07 1 06 07 1 06 26 2026 +0000 GMT %",
        );
        check(1_770_613_567, "%c|%x|%X|%n%t|%Ey%Od", "Mon Feb  9 05:06:07 2026|02/09/26|05:06:07|\n\t|2609");
        check(1_770_613_567, "%Q%", "%Q%");
        check(1_770_613_567, "%A, %d-%b-%Y %H:%M:%S %Z", "Monday, 09-Feb-2026 05:06:07 GMT");
    }

    #[test]
    fn days_at_the_edges_of_years() {
        let layout = "%F %j %U %V %W %G %u";
        check(0, layout, "1970-01-01 001 00 01 00 1970 4");
        check(951_782_400, layout, "2000-02-29 060 09 09 09 2000 2");
        check(1_609_459_199, layout, "2020-12-31 366 52 53 52 2020 4");
        check(1_609_459_200, layout, "2021-01-01 001 00 53 00 2020 5");
        check(1_735_603_200, layout, "2024-12-31 366 52 01 53 2025 2");
        check(4_107_542_400, layout, "2100-03-01 060 09 09 09 2100 1");
        check(u64::MAX, "%F %T", "9999-12-31 23:59:59");
        check(43_200, "%I %p", "12 PM");
    }
}
