//! A request in a line, and where its time went in another; an event of larder itself in a line.
//!
//! In: an object with the keys of a sample, as far as they are there. Out: text without its line feeds, columns two blanks apart.
//! Whatever comes from the network is printed without anything that a terminal could take for a command, or that would order
//! the characters of the line anew. Lines have no largest width: what reads them may be a program.

use serde_json::Value;

use crate::cli::output::printable;
use crate::cli::table::{bytes, counted};

/// Stands for what is not known.
const UNKNOWN: &str = "-";
const BETWEEN_COLUMNS: &str = "  ";
const BETWEEN_STEPS: &str = " | ";
const STEPS_INDENT: &str = "   ";

/// The line of a request.
pub(super) fn request_line(of: &Value) -> String {
    let first = [
        time_of_day(of).as_str(),
        text(of, "method").unwrap_or(UNKNOWN),
        text(of, "host").unwrap_or(UNKNOWN),
        &target(of),
    ]
    .join(" ");
    let mut columns =
        vec![first, number(of, "status").map_or_else(|| UNKNOWN.to_owned(), |of| of.to_string())];
    columns.push(text(of, "result").unwrap_or(UNKNOWN).to_owned());
    columns.extend(why(of));
    columns.push(time(of, "time").unwrap_or_else(|| UNKNOWN.to_owned()));
    columns.extend(number(of, "bytes").map(bytes));
    columns.extend(text(of, "rule").map(|rule| format!("rule {rule}")));
    columns.extend(number(of, "weight").filter(|&weight| weight > 1).map(|weight| format!("x{weight}")));
    printable(&columns.join(BETWEEN_COLUMNS))
}

/// Where the time of a request went, as far as that is known.
pub(super) fn steps_line(of: &Value) -> Option<String> {
    let not_known = || number(of, "origin_status").filter(|&status| Some(status) != number(of, "status"));
    let steps = [
        time(of, "wait").map(|wait| format!("waited {wait}")),
        time(of, "queue").map(|queue| format!("queue {queue}")),
        connect(of),
        origin(of),
        not_known().map(|status| format!("origin said {status}")),
        text(of, "error").map(|error| format!("no answer: {error}")),
        number(of, "attempts").filter(|&attempts| attempts > 1).map(|of| counted(of, "attempt", "attempts")),
        text(of, "not_stored").map(|reason| format!("not stored: {reason}")),
    ];
    let steps: Vec<String> = steps.into_iter().flatten().collect();
    (!steps.is_empty()).then(|| STEPS_INDENT.to_owned() + &printable(&steps.join(BETWEEN_STEPS)))
}

/// The line of something that happened to larder itself.
pub(super) fn event_line(of: &Value) -> String {
    let mut columns = vec![format!("{} {}", time_of_day(of), text(of, "kind").unwrap_or(UNKNOWN))];
    columns.extend(["subject", "text"].into_iter().filter_map(|name| text(of, name)).map(str::to_owned));
    printable(&columns.join(BETWEEN_COLUMNS))
}

/// A member that is a text, and not an empty one.
pub(in crate::cli) fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// A member that is a whole number.
pub(in crate::cli) fn number(of: &Value, name: &str) -> Option<u64> {
    of.get(name)?.as_u64()
}

/// Path and query as they were asked for.
pub(in crate::cli) fn target(of: &Value) -> String {
    match (text(of, "path"), text(of, "query")) {
        (None, None) => UNKNOWN.to_owned(),
        (path, None) => path.unwrap_or_default().to_owned(),
        (path, Some(query)) => format!("{}?{query}", path.unwrap_or_default()),
    }
}

/// Why it was forwarded, why there was nothing stored, and why the answer is not stored either.
pub(in crate::cli) fn why(of: &Value) -> Option<String> {
    let mut words: Vec<String> = text(of, "reason").map(str::to_owned).into_iter().collect();
    words.extend(text(of, "before").map(|before| format!("before={before}")));
    let detail = text(of, "detail");
    words.extend(detail.map(str::to_owned));
    words.extend(text(of, "not_stored").filter(|&reason| Some(reason) != detail).map(str::to_owned));
    (!words.is_empty()).then(|| words.join(" "))
}

fn connect(of: &Value) -> Option<String> {
    match of.get("reused").and_then(Value::as_bool) {
        Some(true) => Some("connect kept".to_owned()),
        _ => time(of, "connect").map(|connect| format!("connect {connect}")),
    }
}

/// How long an origin took to begin its answer, and which one it was.
fn origin(of: &Value) -> Option<String> {
    let names: Vec<&str> = ["origin", "server"].into_iter().filter_map(|name| text(of, name)).collect();
    let names = names.join(" ");
    match time(of, "first_byte") {
        Some(first_byte) => Some(format!("first byte {first_byte} {names}").trim_end().to_owned()),
        None => (!names.is_empty()).then_some(names),
    }
}

/// The time of day in UTC, with milliseconds.
pub(in crate::cli) fn time_of_day(of: &Value) -> String {
    let Some(at) = of.get("at").and_then(Value::as_f64) else { return UNKNOWN.to_owned() };
    let milliseconds = (at * 1e3).round() as u64 % 86_400_000;
    let (seconds, milliseconds) = (milliseconds / 1000, milliseconds % 1000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{milliseconds:03}", seconds % 60)
}

/// A length of time, in as few digits as tell it.
fn time(of: &Value, name: &str) -> Option<String> {
    of.get(name)?.as_f64().map(length_of_time)
}

/// The same of seconds.
pub(in crate::cli) fn length_of_time(seconds: f64) -> String {
    match seconds * 1e3 {
        of if of < 0.995 => {
            let digits = format!("{of:.2}");
            format!("{} ms", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        of if of < 9.95 => format!("{of:.1} ms"),
        of if of < 999.5 => format!("{of:.0} ms"),
        of => format!("{:.2} s", of / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked() -> Value {
        json!({
            "at": 1_764_252_131.482, "weight": 1, "method": "GET", "host": "shop.example", "path": "/blog/a",
            "query": "utm_source=x", "rule": "/blog/*", "result": "asked", "reason": "uri-miss", "before": "not-stored",
            "not_stored": "set-cookie", "stored": false, "status": 200, "time": 0.183, "wait": 0.012, "origin": "app",
            "server": "10.0.0.11:3000", "attempts": 2, "reused": true, "queue": 0.000_1, "connect": 0.0, "first_byte": 0.164,
            "origin_status": 200,
        })
    }

    /// The object with some members in place of others.
    fn with(changes: Value) -> Value {
        let mut of = asked();
        for (name, value) in changes.as_object().into_iter().flatten() {
            of[name] = value.clone();
        }
        of
    }

    #[test]
    fn a_line_says_what_came_how_it_was_answered_why_and_in_which_time() {
        assert_eq!(
            request_line(&asked()),
            "14:02:11.482 GET shop.example /blog/a?utm_source=x  200  asked  uri-miss before=not-stored set-cookie  183 ms  \
             rule /blog/*"
        );
        let hit = json!({"at": 0.0005, "weight": 64, "method": "GET", "host": "a", "path": "/", "result": "memory",
                         "status": 200, "time": 0.000_051, "bytes": 12_595});
        assert_eq!(request_line(&hit), "00:00:00.001 GET a /  200  memory  0.05 ms  12.3 KiB  x64");
        let failed = with(json!({"detail": "set-cookie", "rule": "", "query": "", "time": 2}));
        assert_eq!(
            request_line(&failed),
            "14:02:11.482 GET shop.example /blog/a  200  asked  uri-miss before=not-stored set-cookie  2.00 s"
        );
    }

    #[test]
    fn a_line_needs_no_member_at_all() {
        for nothing in
            [json!({}), json!([]), json!(null), json!("x"), json!({"at": "x", "status": -1, "time": []})]
        {
            assert_eq!(request_line(&nothing), "- - - -  -  -  -");
            assert_eq!(steps_line(&nothing), None);
            assert_eq!(event_line(&nothing), "- -");
        }
        for at in [-5.0, 1e300] {
            assert!(request_line(&json!({"at": at})).contains(':'));
        }
    }

    #[test]
    fn steps_are_the_parts_of_the_time_that_are_known() {
        assert_eq!(
            steps_line(&asked()).unwrap(),
            "   waited 12 ms | queue 0.1 ms | connect kept | first byte 164 ms app 10.0.0.11:3000 | 2 attempts | \
             not stored: set-cookie"
        );
        assert_eq!(
            steps_line(
                &json!({"status": 502, "origin": "app", "connect": 0.0012, "error": "closed", "attempts": 1})
            )
            .unwrap(),
            "   connect 1.2 ms | app | no answer: closed"
        );
        assert_eq!(steps_line(&json!({"status": 200, "origin_status": 304})).unwrap(), "   origin said 304");
        assert_eq!(steps_line(&json!({"status": 200, "first_byte": 0.01})).unwrap(), "   first byte 10 ms");
        assert_eq!(steps_line(&json!({"status": 200, "result": "memory", "time": 0.1})), None);
    }

    #[test]
    fn an_event_is_a_line() {
        let event =
            json!({"at": 1.5, "kind": "reload", "subject": "larder.toml", "text": "2 sites\nand more"});
        assert_eq!(event_line(&event), "00:00:01.500 reload  larder.toml  2 sites\\nand more");
    }

    #[test]
    fn nothing_from_the_network_steers_a_terminal_or_orders_a_line_anew() {
        let hostile = "\u{1b}]0;x\u{7}\r\n\u{9b}2J\u{202e}\u{2066}\u{200f}\u{feff}\u{2028}\u{7f}\0";
        let names = [
            "method",
            "host",
            "path",
            "query",
            "rule",
            "result",
            "reason",
            "before",
            "detail",
            "not_stored",
            "origin",
            "server",
            "error",
            "kind",
            "subject",
            "text",
        ];
        let of: Value = names.into_iter().map(|name| (name.to_owned(), json!(hostile))).collect();
        for line in [request_line(&of), steps_line(&of).unwrap(), event_line(&of)] {
            assert!(line.contains("\\u{1b}]0;x") && line.contains("\\u{202e}"), "{line}");
            assert!(
                line.chars().all(|c| !c.is_control() && !hostile.contains(c) || "]0;x2J".contains(c)),
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_long_target_is_not_cut() {
        let path = format!("/{}", "é".repeat(4096));
        assert!(request_line(&with(json!({"path": path}))).contains(&format!(" {path}?utm_source=x  200  ")));
    }

    #[test]
    fn times_are_short_and_say_their_unit() {
        for (seconds, expected) in [
            (0.0, "0 ms"),
            (0.000_05, "0.05 ms"),
            (0.000_1, "0.1 ms"),
            (0.000_999, "1.0 ms"),
            (0.009_94, "9.9 ms"),
            (0.009_96, "10 ms"),
            (0.1, "100 ms"),
            (0.999_4, "999 ms"),
            (0.999_6, "1.00 s"),
            (90.0, "90.00 s"),
        ] {
            assert_eq!(time(&json!({"x": seconds}), "x").as_deref(), Some(expected), "{seconds}");
        }
    }
}
