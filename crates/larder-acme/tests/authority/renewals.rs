//! When certificates are renewed.

use std::time::Duration;

use larder_acme::{Event, Why};
use larder_tls::{Connector, TlsSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::business::{Business, HOUR, Larder};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Has the authority answer with `answer` when it is asked about the certificate that is stored for `name`.
fn suggest(business: &Business, name: &str, answer: &str) {
    let chain = std::fs::read_to_string(business.file(&format!("certs/{name}/chain.pem"))).unwrap();
    let body = serde_json::json!({ "certificate": chain, "ariResponse": answer }).to_string();
    let settings = TlsSettings { ca_file: Some(business.pebble.ca_file()), ..TlsSettings::default() };
    let port = business.pebble.management_port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut stream = Connector::new(settings).unwrap().connect("localhost", socket).await.unwrap();
        let request = format!(
            "POST /set-renewal-info/ HTTP/1.0\r\nHost: localhost\r\nUser-Agent: test\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    });
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
}

#[track_caller]
fn suggested(larder: &Larder) -> Why {
    larder.until(|event| match event {
        Event::Suggested { next, .. } => Some(next.why),
        _ => None,
    })
}

#[test]
fn the_authority_wants_an_early_renewal_and_knows_what_it_replaces() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    assert_eq!(suggested(&larder), Why::Suggested);
    let first = larder.served.of("a.example");
    let window = r#"{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}"#;
    suggest(&business, "a.example", window);
    // It is asked again after six hours, as it said, and not before. The certificate is too new then to be replaced at once.
    larder.advance(&business, 5 * HOUR);
    assert_eq!(larder.status("a.example").next.unwrap().why, Why::Suggested);
    larder.advance(&business, HOUR);
    assert_eq!(suggested(&larder), Why::TooNew);
    larder.advance(&business, DAY);
    assert!(larder.issued("a.example"), "the authority knows what it replaces");
    assert!(business.pebble.log().contains("is a replacement of"), "{}", business.pebble.log());
    assert_ne!(larder.served.of("a.example"), first);
    // The new one has a window of its own.
    assert_eq!(suggested(&larder), Why::Suggested);
}

#[test]
fn garbage_in_place_of_a_window_leaves_what_was_known() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    suggested(&larder);
    let before = larder.status("a.example").next;
    for garbage in ["{", "[]", r#"{"suggestedWindow":{"start":"2020-01-01","end":7}}"#] {
        suggest(&business, "a.example", garbage);
        larder.advance(&business, 6 * HOUR);
        larder.until(|event| matches!(event, Event::NotSuggested { .. }).then_some(()));
        assert_eq!(larder.status("a.example").next, before);
        assert_eq!(larder.status("a.example").failing(), None);
    }
    // A window without length counts as none: two thirds of the lifetime.
    let none = r#"{"suggestedWindow":{"start":"2020-01-02T00:00:00Z","end":"2020-01-01T00:00:00Z"}}"#;
    suggest(&business, "a.example", none);
    larder.advance(&business, 6 * HOUR);
    assert_eq!(suggested(&larder), Why::Lifetime);
    larder.advance(&business, 58 * DAY);
    larder.until(|event| matches!(event, Event::Suggested { .. }).then_some(()));
    assert_eq!(business.pebble.issued(), 1);
    larder.advance(&business, 2 * DAY);
    larder.issued("a.example");
}

#[test]
fn another_authority_is_asked_at_once_and_not_told_of_what_is_replaced() {
    let (Some(first), Some(second)) = (Business::open(|_| ()), Business::open(|_| ())) else { return };
    let larder = first.larder(&["a.example"]);
    larder.issued("a.example");
    let certificate = larder.served.of("a.example");
    let mut settings = first.settings(&["a.example"], &[]);
    settings.directory_url = second.pebble.directory_url();
    settings.ca_file = Some(second.pebble.ca_file());
    drop(larder);
    // Its proofs are looked for at other ports.
    let business = Business { pebble: second.pebble, proofs: second.proofs, ..first };
    let larder = business.start(settings);
    assert_eq!(larder.served.of("a.example"), certificate, "the old one until then");
    assert!(!larder.issued("a.example"));
    assert_ne!(larder.served.of("a.example"), certificate);
}
