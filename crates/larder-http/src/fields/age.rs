//! Age (RFC 9111 5.1): how old a response says it is.
//!
//! The first member of the first line decides, whatever follows; anything but a non-negative integer there, with or
//! without parameters behind it, makes the field absent. That errs towards fresh, on purpose and against the habit of the lifetime parsers: Age comes from
//! caches on the way, not from the origin's author, and the lifetime still bounds the response.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use super::digits::delta_seconds;

/// The Age of a response; `None` where it is absent or not usable.
pub fn parse(fields: &HeaderMap) -> Option<Duration> {
    // Age has no parameters, but a number that carries some is still a number, and the older reading is the safe one.
    let first = fields.get(header::AGE)?.as_bytes().split(|b| matches!(b, b',' | b';')).next()?;
    delta_seconds(first.trim_ascii())
}

/// Age as it is sent: whole seconds, rounded down.
pub fn format(age: Duration) -> HeaderValue {
    HeaderValue::from(age.as_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fields::digits::DELTA_MAX;

    fn check(lines: &[&str], expected: Option<u64>) {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(header::AGE, HeaderValue::from_str(line).unwrap());
        }
        assert_eq!(parse(&fields), expected.map(Duration::from_secs), "{lines:?}");
    }

    #[test]
    fn the_first_member_decides_and_an_invalid_one_is_absent() {
        check(&[], None);
        check(&["0"], Some(0));
        check(&["7200, 0"], Some(7200));
        check(&["0, 7200"], Some(0));
        check(&["7200", "0"], Some(7200));
        check(&["0", "7200"], Some(0));
        check(&["2147483647"], Some(2_147_483_647));
        check(&["99999999999999999999"], Some(DELTA_MAX.as_secs()));
        check(&["7200;foo=bar"], Some(7200));
        check(&["7200 ; foo, 0"], Some(7200));
        for invalid in ["", "abc", "-7200", "7200.0", ";7200", ",7200", "72 00"] {
            check(&[invalid], None);
        }
    }
}
