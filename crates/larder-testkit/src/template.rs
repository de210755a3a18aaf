//! Placeholders in scripts and scenarios: dates relative to the scenario's clock, and what the request said.
//!
//! `{now}`, `{now+60s}`, `{now-1d}` are HTTP dates by the clock that `advance` moves; `{start-1d}` counts from the
//! beginning of the scenario, so that it is the same text in every step. In an origin's answer there are also
//! `{n}` (the number of this request among those for its path), `{target}`, `{method}`, `{body}` and
//! `{field:name}`.
//! Anything else in braces stays as it is: it may be JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use larder_http::time::Clock;

use crate::origin::Seen;

/// What placeholders stand for.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The clock that the scenario moves.
    pub clock: &'a Clock,
    /// When the scenario began.
    pub start: SystemTime,
    /// The request that is answered, and its number for its path, from 1.
    pub request: Option<(&'a Seen, u64)>,
}

/// Puts values in the place of placeholders.
pub fn expand(text: &str, context: &Context<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let value = from.find('}').and_then(|close| Some((close, value_of(from.get(1..close)?, context)?)));
        match value {
            Some((close, value)) => {
                out.push_str(&value);
                rest = from.get(close + 1..).unwrap_or_default();
            }
            None => {
                out.push('{');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn value_of(name: &str, context: &Context<'_>) -> Option<String> {
    if let Some(shift) = name.strip_prefix("now") {
        let now = UNIX_EPOCH + Duration::from_millis(context.clock.now().wall.0);
        return date(now, shift);
    }
    if let Some(shift) = name.strip_prefix("start") {
        return date(context.start, shift);
    }
    let (seen, number) = context.request?;
    match name {
        "n" => Some(number.to_string()),
        "target" => Some(seen.target.clone()),
        "method" => Some(seen.method.clone()),
        "body" => Some(crate::wire::latin1(&seen.body)),
        _ => {
            let field = name.strip_prefix("field:")?;
            Some(seen.fields.first(field).unwrap_or_default().to_owned())
        }
    }
}

fn date(base: SystemTime, shift: &str) -> Option<String> {
    let at = match shift.split_at_checked(1) {
        None => base,
        Some(("+", by)) => base.checked_add(duration(by)?)?,
        Some(("-", by)) => base.checked_sub(duration(by)?)?,
        Some(_) => return None,
    };
    (at >= UNIX_EPOCH).then(|| httpdate::fmt_http_date(at))
}

/// Reads `250ms`, `3s`, `10m`, `24h` or `1d`.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let factor_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor_ms).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let clock = Clock::default();
        let start = UNIX_EPOCH + Duration::from_secs(86_400);
        assert_eq!(expand(text, &Context { clock: &clock, start, request: None }), expected, "{text}");
    }

    #[test]
    fn dates_count_from_the_start_of_the_scenario() {
        check("Expires: {start}", "Expires: Fri, 02 Jan 1970 00:00:00 GMT");
        check("{start-1d} {start+90s}", "Thu, 01 Jan 1970 00:00:00 GMT Fri, 02 Jan 1970 00:01:30 GMT");
    }

    #[test]
    fn unknown_braces_stay() {
        check(r#"{"a": {}} { {now*2} {start"#, r#"{"a": {}} { {now*2} {start"#);
    }

    #[test]
    fn durations_need_a_known_unit() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Some(Duration::from_secs(7200)));
        for bad in ["", "3", "s", "3 s", "-3s", "3w", "99999999999999999999s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
