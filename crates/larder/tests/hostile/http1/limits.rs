//! Limits on a head, at the limit and one beyond it; what larder adds never makes an exchange fail.

use crate::hostile::http1::table::{Case, get, post};

const LINE: &str = "GET / HTTP/1.1";
const FIELD_BYTES: usize = 16 * 1024;
const HEAD_BYTES: usize = 32 * 1024;
const TARGET_BYTES: usize = 8 * 1024;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let target = |bytes: usize| format!("/{}", "t".repeat(bytes - 1));
    let asked = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let longest = target(TARGET_BYTES);
    cases.push(Case::sent("target of 8 KiB", asked(&longest), &format!("GET {longest} HTTP/1.1")));
    for bytes in [TARGET_BYTES + 1, TARGET_BYTES + 100, 65_535, 65_536, 65_537] {
        cases.push(Case::refused(&format!("target of {bytes} bytes"), 414, asked(&target(bytes))));
    }
    cases.push(Case::refused("a request line without an end", 414, "x".repeat(100_000)));
    cases.push(Case::refused("a request line of spaces", 414, " ".repeat(100_000)));

    let field = |bytes: usize| format!("X: {}", "v".repeat(bytes - 3));
    let lower = |line: &str| line.replacen('X', "x", 1);
    let largest = field(FIELD_BYTES);
    cases.push(
        Case::sent("field of 16 KiB", get(&format!("{largest}\r\n")), LINE).fields(&[&lower(&largest)]),
    );
    for bytes in [FIELD_BYTES + 1, 65_535, 65_536, 65_537, 1_000_000] {
        cases.push(Case::refused(
            &format!("field of {bytes} bytes"),
            431,
            get(&format!("{}\r\n", field(bytes))),
        ));
    }
    cases.push(Case::refused("a name without an end", 431, format!("{LINE}\r\n{}", "n".repeat(100_000))));

    // Host and others count; two of them fill most of the head, the third is fitted.
    let empty = get("A: \r\nB: \r\nC: \r\n").len();
    let head = |bytes: usize| {
        let left = bytes - empty;
        let (a, b) = ("a".repeat(FIELD_BYTES - 3), "b".repeat(FIELD_BYTES - 100));
        let c = "c".repeat(left - a.len() - b.len());
        (
            get(&format!("A: {a}\r\nB: {b}\r\nC: {c}\r\n")),
            [format!("a: {a}"), format!("b: {b}"), format!("c: {c}")],
        )
    };
    let (send, [a, b, c]) = head(HEAD_BYTES);
    cases.push(Case::sent("head of 32 KiB", send, LINE).fields(&[&a, &b, &c]));
    cases.push(Case::refused("head of 32 KiB and a byte", 431, head(HEAD_BYTES + 1).0));
    cases.push(Case::refused(
        "a head without an end",
        431,
        get("")[..30].to_owned() + &"X: y\r\n".repeat(20_000),
    ));

    let fields = |count: usize| -> Vec<String> { (1..count).map(|n| format!("x-{n}: y")).collect() };
    let lines = |fields: &[String]| get(&fields.iter().map(|line| format!("{line}\r\n")).collect::<String>());
    let most = fields(100);
    let expected: Vec<&str> = most.iter().map(String::as_str).collect();
    cases.push(Case::sent("a hundred fields, and what larder adds", lines(&most), LINE).fields(&expected));
    cases.push(Case::refused("a hundred and one fields", 431, lines(&fields(101))));
    cases.push(Case::refused("a thousand fields", 431, lines(&fields(1001))));
    cases.push(Case::refused(
        "a hundred and one fields that are dropped",
        431,
        get(&"TE: x\r\n".repeat(100)),
    ));
    let cookies = "Cookie: a\r\n".repeat(99);
    let expected = ["cookie: a"; 99];
    cases.push(Case::sent("ninety-nine Cookie lines", get(&cookies), LINE).fields(&expected));

    // At every limit at once: the origin's request is larger than the client's was, and goes through.
    let path = target(TARGET_BYTES);
    let mut full = fields(100);
    let room = HEAD_BYTES - format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").len();
    let taken: usize = full.iter().map(|line| line.len() + 2).sum();
    if let Some(last) = full.last_mut() {
        last.push_str(&"z".repeat((room - taken).min(FIELD_BYTES - 10)));
    }
    let all: String = full.iter().map(|line| format!("{line}\r\n")).collect();
    let expected: Vec<&str> = full.iter().map(String::as_str).collect();
    let send = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{all}\r\n");
    cases.push(Case::sent("every limit at once", send, &format!("GET {path} HTTP/1.1")).fields(&expected));

    let small = "[limits]\nbody_size = \"10B\"\n";
    cases.extend([
        Case::sent("content at the limit", post("Content-Length: 10\r\n", "0123456789"), "POST / HTTP/1.1")
            .length("0123456789")
            .config(small),
        Case::refused("content beyond the limit", 413, post("Content-Length: 11\r\n", "0123456789a"))
            .config(small),
        Case::refused(
            "content far beyond the limit",
            413,
            post("Content-Length: 9223372036854775807\r\n", "x"),
        )
        .config(small),
        Case::broken(
            "chunks beyond the limit",
            413,
            post("Transfer-Encoding: chunked\r\n", "6\r\n012345\r\n6\r\n678901\r\n0\r\n\r\n"),
        )
        .config(small),
        Case::refused("a third of a limit: fields", 431, get(&"X: y\r\n".repeat(40)))
            .config("[limits]\nfields = 20\n"),
        Case::refused("a smaller limit: field", 431, get(&format!("{}\r\n", field(300))))
            .config("[limits]\nfield_size = \"256B\"\n"),
        Case::refused("a smaller limit: target", 414, asked(&target(300)))
            .config("[limits]\ntarget_size = \"256B\"\n"),
        Case::refused("a smaller limit: head", 431, get(&format!("{}\r\n{}\r\n", field(600), field(600))))
            .config("[limits]\nhead_size = \"1KiB\"\nfield_size = \"1KiB\"\ntarget_size = \"1KiB\"\n"),
    ]);
    cases
}
