//! Why an origin gave no answer, and why a listener refused a request.
//!
//! In: a token. Out: its word. Tokens come from where failures are counted; a test sees that each has a sentence here.

use larder_origin::TlsFailure;

use super::word::{Word, whole};

/// What is said of a token that has no sentence. No token is such a one, as a test says.
const UNTOLD: &str = "";

pub(super) fn of_origin(token: &'static str) -> Word {
    if let Some(failure) = TlsFailure::ALL.into_iter().find(|failure| failure.token() == token) {
        let sentence = whole(&format!("the TLS handshake with the server failed: {}", failure.sentence()));
        return Word { sentence: sentence.into(), ..Word::new(token, "") };
    }
    let word = |sentence| Word::new(token, sentence);
    match token {
        "connect-refused" => word("Nothing listens at the address of the server.")
            .helps("Start the application, or correct servers."),
        "connect-timeout" => word("The connection to the server was not there in time.")
            .helps("connect_timeout sets the time."),
        "connect-failed" => word("The connection to the server could not be made."),
        "connection-limit" => word("As many connections to the origin are open as may be.")
            .helps("A larger limit of descriptors for larder."),
        "no-server" => word("Health checks say that no server of the origin can take requests."),
        "queue-full" => word("As many requests wait for the origin as may.")
            .helps("A larger queue or max_in_flight, if the origin can take it."),
        "queue-timeout" => word("The request waited too long for the origin to become free.")
            .helps("A larger max_in_flight, if the origin can take it."),
        "total-timeout" => word("The whole exchange took longer than total_timeout."),
        "dns" => word("The name of the server has no address."),
        "closed" => word("The server closed the connection before its response began."),
        "first-byte-timeout" => {
            word("The server did not begin its response in time.").helps("first_byte_timeout sets the time.")
        }
        "bad-response" => {
            word("The response breaks the rules of HTTP, so that two readers could read it differently.")
        }
        "head-too-large" => word("The fields of the response are larger than larder takes."),
        "unexpected-upgrade" => word("The server switched to a protocol that was not asked for."),
        "no-websocket" => word("The server speaks HTTP/2 only, and a WebSocket needs HTTP/1.1."),
        "client-body-cut" => word("The client left before its content was complete."),
        "client-body-stalled" => {
            word("The client's content did not go on in time.").helps("limits.body_idle sets the time.")
        }
        "client-body-framing" => word("The client's content was not framed as it had announced."),
        "client-body-too-large" => word("The client's content is longer than limits.body_size."),
        "client-body-lost" => word("The client's content was lost on its way."),
        "bad-request" => word("A part of the request cannot be written in the protocol of the server."),
        _ => word(UNTOLD),
    }
}

pub(super) fn refused(token: &'static str) -> Word {
    let word = |sentence, section| Word::new(token, sentence).section(section);
    match token {
        "request-line" => word("The first line is no method, target and version.", "RFC 9112 3"),
        "version" => word("Its version is neither HTTP/1.0 nor HTTP/1.1.", "RFC 9112 2.3"),
        "method" => word("CONNECT, TRACE, or a method with too long a name.", "RFC 9110 9"),
        "target" => word(
            "Its target has a form that is not served, or bytes that have to be escaped.",
            "RFC 9112 3.2",
        ),
        "target-too-long" => word("Its target is longer than limits.target_size.", "RFC 9110 15.5.15"),
        "scheme" => word("Its absolute target has another scheme than the connection.", "RFC 9110 7.4"),
        "line-end" => word("A carriage return or a line feed stands alone.", "RFC 9112 2.2"),
        "control" => word("It has a NUL or another control.", "RFC 9110 5.5"),
        "field-line" => {
            word("A field is folded, has no good name, or a blank before its colon.", "RFC 9112 5")
        }
        "field-too-large" => word("One field is larger than limits.field_size.", "RFC 6585 5"),
        "too-many-fields" => word("It has more fields than limits.fields.", "RFC 6585 5"),
        "head-too-large" => word("Its head is larger than limits.head_size.", "RFC 6585 5"),
        "host-count" => {
            word("It has no Host, two of them, or one that contradicts its target.", "RFC 9112 3.2")
        }
        "host" => word("The host that it names is malformed.", "RFC 9110 7.2"),
        "framing" => word("It leaves doubt where its content ends.", "RFC 9112 6.3"),
        "expectation" => word("It expects something other than 100-continue.", "RFC 9110 10.1.1"),
        "head-timeout" => word("Its head did not come within limits.head_time.", "RFC 9110 15.5.9"),
        "body-timeout" => word("Its content did not go on in time.", "RFC 9110 15.5.9"),
        "body-cut" => word("Its content ended before it was complete.", "RFC 9112 8"),
        "clear-text" => word("It is no TLS, on an address for TLS.", "RFC 8446 5.1"),
        "body-too-large" => word("Its content is longer than limits.body_size.", "RFC 9110 15.5.14"),
        _ => Word::new(token, UNTOLD),
    }
}
