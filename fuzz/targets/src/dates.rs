//! HTTP-dates: what is read and written again in any of the three forms is the same instant, and whatever another
//! parser reads, larder reads as the same.

use std::time::{Duration, UNIX_EPOCH};

use larder_http::fields::date;
use larder_http::time::WallTime;

/// Two-digit years are read relative to now.
const NOWS: [WallTime; 4] = [
    WallTime::from_secs(0),
    WallTime::from_secs(1_767_225_600),
    WallTime::from_secs(LAST),
    WallTime(u64::MAX),
];
/// 9999-12-31T23:59:59Z: four digits of a year are all that the forms have room for.
const LAST: u64 = 253_402_300_799;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    for now in NOWS {
        if let Some(time) = date::parse(input, now) {
            every_form_says_the_same(time, now);
        }
    }
    hypers_parser_agrees(input);
}

fn every_form_says_the_same(time: WallTime, now: WallTime) {
    if time > WallTime::from_secs(LAST) {
        return;
    }
    let fixdate = date::write(time);
    assert_eq!(date::parse(&fixdate, now), Some(time), "IMF-fixdate");
    assert_eq!(date::format(time).as_bytes(), fixdate);
    let text = std::str::from_utf8(&fixdate).expect("a written date is ASCII");
    let (weekday, day, month, year, clock) =
        (&text[..3], &text[5..7], &text[8..11], &text[12..16], &text[17..25]);
    let blank_day = day.strip_prefix('0').map_or_else(|| day.to_owned(), |digit| format!(" {digit}"));
    let asctime = format!("{weekday} {month} {blank_day} {clock} {year}");
    assert_eq!(date::parse(asctime.as_bytes(), now), Some(time), "{asctime}");
    // The century is a guess, everything else is not. 29 February does not exist in every century.
    let rfc850 = format!("Sunday, {day}-{month}-{} {clock} GMT", &year[2..]);
    if let Some(guessed) = date::parse(rfc850.as_bytes(), now)
        && (1..=LAST).contains(&guessed.secs())
    {
        let guessed = date::write(guessed);
        assert_eq!((&guessed[5..11], &guessed[14..25]), (&fixdate[5..11], &fixdate[14..25]), "{rfc850}");
    }
}

/// httpdate, which hyper uses, is stricter than larder on letter case and weekdays. With two-digit years it is laxer, and
/// has a fixed century for them.
fn hypers_parser_agrees(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(theirs) = httpdate::parse_http_date(text) else { return };
    // It drops blanks on both sides; in a field value there are none.
    let text = text.trim();
    if text.contains("day, ") {
        return;
    }
    let ours = date::parse(text.as_bytes(), NOWS[1]);
    let theirs = theirs.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    assert_eq!(ours, Some(WallTime::from_secs(theirs.as_secs())), "{text:?}");
}
