//! Field lines (RFC 9112 5, RFC 9110 5): names, values, line ends, folding, and lengths at which integers wrap.

use crate::hostile::http1::table::{Case, get};

const ROOMY: &str = "[limits]\nhead_size = \"1MiB\"\nfield_size = \"256KiB\"\n";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, lines) in [
        ("space before the colon", "X : y\r\n"),
        ("tab before the colon", "X\t: y\r\n"),
        ("empty name", ": y\r\n"),
        ("empty name before more fields", ": y\r\nX: z\r\n"),
        ("a colon alone", ":\r\n"),
        ("no colon", "X\r\n"),
        ("no colon, a value", "X y\r\n"),
        ("space in the name", "X Y: z\r\n"),
        ("space alone", " \r\n"),
        ("tab alone", "\t\r\n"),
        ("folded by space", "X: y\r\n z\r\n"),
        ("folded by tab", "X: y\r\n\tz\r\n"),
        ("folded, empty", "X: y\r\n \r\n"),
        ("folded into a name", "X: y\r\n Content-Length: 5\r\n"),
        ("( in the name", "X(: y\r\n"),
        ("\" in the name", "X\": y\r\n"),
        ("/ in the name", "X/Y: z\r\n"),
        ("[ in the name", "X[0]: y\r\n"),
        ("@ in the name", "X@: y\r\n"),
        ("; in the name", "X;: y\r\n"),
        (", in the name", "X,Y: z\r\n"),
        ("= in the name", "X=Y: z\r\n"),
        ("{ in the name", "X{: z\r\n"),
        ("\\ in the name", "X\\: z\r\n"),
        ("NUL in the name", "X\0: y\r\n"),
        ("a control in the name", "X\u{1}: y\r\n"),
        ("vertical tab before the colon", "X\u{b}: y\r\n"),
        ("DEL in the name", "X\u{7f}: y\r\n"),
        ("a byte above 0x7f in the name", "X\u{e9}: y\r\n"),
        ("no-break space before the colon", "X\u{a0}: y\r\n"),
        ("NUL in the value", "X: y\0z\r\n"),
        ("NUL at the end of the value", "X: y\0\r\n"),
        ("SOH in the value", "X: \u{1}\r\n"),
        ("BEL in the value", "X: \u{7}\r\n"),
        ("backspace in the value", "X: y\u{8}\r\n"),
        ("vertical tab in the value", "X: \u{b}y\r\n"),
        ("form feed in the value", "X: \u{c}y\r\n"),
        ("escape in the value", "X: \u{1b}[31m\r\n"),
        ("unit separator in the value", "X: \u{1f}\r\n"),
        ("DEL in the value", "X: \u{7f}\r\n"),
        ("bare CR in the value", "X: y\rz\r\n"),
        ("bare CR before the value", "X:\ry\r\n"),
        ("bare CR before the end", "X: y\r\r\n"),
        ("bare LF in the value", "X: y\nz\r\n"),
        ("bare LF as the end", "X: y\n"),
        ("bare LF and a field", "X: y\nContent-Length: 5\r\n"),
        ("bare CR and a field", "X: y\rContent-Length: 5\r\n"),
        ("bare CR and an end", "X: y\r\rGET /smuggled HTTP/1.1\r\n"),
        ("LF LF as the end of the head", "X: y\n\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n"),
        ("LF CR LF", "X: y\n\r\n"),
        ("a NUL line", "\0\r\n"),
        ("a request line among the fields", "GET /smuggled HTTP/1.1\r\n"),
    ] {
        cases.push(Case::refused(&format!("field: {name}"), 400, get(lines)));
    }
    for (name, lines, fields) in [
        ("empty value", "X:\r\n", &["x: "][..]),
        ("spaces for a value", "X:   \t \r\n", &["x: "]),
        ("spaces around the value", "X:  \t y \t\r\n", &["x: y"]),
        ("tab in the value", "X: y\tz\r\n", &["x: y\tz"]),
        ("bytes above 0x7f", "X: \u{e9}\u{80}\u{ff}\r\n", &["x: \u{e9}\u{80}\u{ff}"]),
        ("colons", "X:: y: z:\r\n", &["x: : y: z:"]),
        ("the same name twice", "X: 1\r\nx: 2\r\nX: 1\r\n", &["x: 1", "x: 2", "x: 1"]),
        ("escaped CRLF", "X: y%0d%0aZ: 1\r\n", &["x: y%0d%0aZ: 1"]),
        ("all token characters", "!#$%&'*+-.^_`|~09azAZ: y\r\n", &["!#$%&'*+-.^_`|~09azaz: y"]),
        ("UTF-8", "X: \u{2603}\r\n", &["x: \u{e2}\u{98}\u{83}"]),
        ("a bad Range", "Range: bytes=9-1, x-\r\n", &["range: bytes=9-1, x-"]),
        ("a bad Accept-Encoding", "Accept-Encoding: ;;,,=;q=9\r\n", &["accept-encoding: ;;,,=;q=9"]),
    ] {
        cases.push(Case::sent(&format!("field: {name}"), get(lines), "GET / HTTP/1.1").fields(fields));
    }
    for length in [255_usize, 256, 257] {
        lengths(&mut cases, length, "");
    }
    // A name that the field types cannot hold is refused; a value of any length goes through where limits allow.
    for length in [32_767_usize, 32_768, 65_534, 65_535, 65_536, 65_537] {
        lengths(&mut cases, length, ROOMY);
    }
    cases
}

fn lengths(cases: &mut Vec<Case>, length: usize, config: &'static str) {
    let name = "n".repeat(length);
    let send = get(&format!("{name}: y\r\n"));
    let case = if length < 65_536 {
        Case::sent(&format!("name of {length} bytes"), send, "GET / HTTP/1.1")
            .fields(&[&format!("{name}: y")])
    } else {
        Case::refused(&format!("name of {length} bytes"), 400, send)
    };
    cases.push(case.config(config));
    // The same as a framing field in an 8 or 16 bit length.
    let prefix = "content-length";
    let wrapped = format!("{prefix}{}", "x".repeat(length - prefix.len()));
    if length < 65_535 {
        let send = get(&format!("{wrapped}: 33\r\n"));
        let case = Case::sent(&format!("content-length… of {length} bytes"), send, "GET / HTTP/1.1");
        cases.push(case.fields(&[&format!("{wrapped}: 33")]).config(config));
    }
    let value = "v".repeat(length);
    let send = get(&format!("X: {value}\r\n"));
    let case = Case::sent(&format!("value of {length} bytes"), send, "GET / HTTP/1.1");
    cases.push(case.fields(&[&format!("x: {value}")]).config(config));
}
