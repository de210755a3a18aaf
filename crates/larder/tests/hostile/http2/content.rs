//! Content: its length, its end, its trailers (RFC 9113 8.1.1).

use crate::hostile::http2::frames::{
    END_HEADERS, HEADERS, PROTOCOL_ERROR, STREAM, WHOLE, block, data, frame, headers, post, request,
};
use crate::hostile::http2::judge::Case;

pub fn cases() -> Vec<Case> {
    let mut cases = lengths();
    cases.extend(ends());
    cases
}

fn lengths() -> Vec<Case> {
    let length = |value: &str, pieces: &[&str]| post(&[("content-length", value)], pieces);
    let whole = |value: &str| headers(WHOLE, &request("POST", "/", &[("content-length", value)]));
    let mut cases = vec![
        Case::sent("content of the announced length", "POST / HTTP/1.1", length("5", &["he", "llo"]))
            .content("hello"),
        Case::sent("content of no announced length", "POST / HTTP/1.1", post(&[], &["he", "llo"]))
            .content("hello"),
        Case::sent("no content, announced", "POST / HTTP/1.1", whole("0")).content(""),
        Case::reset("less content than announced", PROTOCOL_ERROR, length("6", &["hello"])),
        Case::reset("less content, then an empty end", PROTOCOL_ERROR, length("6", &["hello", ""])),
        Case::reset("more content than announced", PROTOCOL_ERROR, length("4", &["hello"])),
        Case::reset(
            "more content than announced, in the second piece",
            PROTOCOL_ERROR,
            length("4", &["hell", "GET /evil HTTP/1.1\r\n\r\n"]),
        ),
        Case::reset("content where none was announced", PROTOCOL_ERROR, length("0", &["hello"])),
        Case::reset("a length and no content", PROTOCOL_ERROR, whole("5")),
        Case::reset(
            "a length and trailers at once",
            PROTOCOL_ERROR,
            [length("5", &[]), headers(WHOLE, &block(&[("x", "y")]))].concat(),
        ),
        Case::status(
            "two lengths that differ",
            400,
            post(&[("content-length", "5"), ("content-length", "6")], &["hello"]),
        ),
        Case::status(
            "two lengths that agree",
            400,
            post(&[("content-length", "5"), ("content-length", "5")], &["hello"]),
        ),
    ];
    for value in
        ["", "+5", "-5", "5,5", "5, 5", "0x5", "5 5", "five", "99999999999999999999", "18446744073709551616"]
    {
        cases.push(Case::status(format!("length {value:?}"), 400, length(value, &["hello"])));
    }
    cases
}

fn ends() -> Vec<Case> {
    let trailers =
        |fields: &[(&str, &str)]| [post(&[], &[]), data(0, "hello"), headers(WHOLE, &block(fields))].concat();
    vec![
        Case::sent("trailers are dropped", "POST / HTTP/1.1", trailers(&[("x", "y")])).content("hello"),
        Case::sent(
            "trailers cannot say what a request is",
            "POST / HTTP/1.1",
            trailers(&[("host", "evil.test"), ("content-length", "1"), ("authorization", "x")]),
        )
        .content("hello"),
        Case::reset("pseudo-fields in trailers", PROTOCOL_ERROR, trailers(&[(":path", "/evil")])),
        Case::reset(
            "transfer-encoding in trailers",
            PROTOCOL_ERROR,
            trailers(&[("transfer-encoding", "chunked")]),
        ),
        Case::reset(
            "trailers that do not end the stream",
            PROTOCOL_ERROR,
            [post(&[], &[]), data(0, "hello"), frame(HEADERS, END_HEADERS, STREAM, &block(&[("x", "y")]))]
                .concat(),
        ),
        Case::reset(
            "a second head in place of content",
            PROTOCOL_ERROR,
            [post(&[], &[]), headers(END_HEADERS, &request("GET", "/evil", &[]))].concat(),
        ),
    ]
}
