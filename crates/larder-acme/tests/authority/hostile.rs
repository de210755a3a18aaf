//! Authorities that answer something else than they should: each answer is an error of its kind, and larder goes on.

use std::sync::Arc;
use std::time::Duration;

use larder_acme::{AcmeSettings, ChallengeKind, Challenges, FailureKind};
use larder_http::time::Clock;
use rcgen::{CertificateParams, KeyPair};

use crate::business::{HOUR, Larder, MINUTE};
use crate::scripted::{Answer, Scripted};

/// Where `path` is answered otherwise, the first attempt ends so. How long larder waits then.
#[track_caller]
fn check(path: &'static str, answer: Answer, expected: FailureKind) -> Duration {
    let authority = Scripted::start(move |asked, port| {
        let (status, fields, content) = answer.clone();
        // PORT stands for the one that was free.
        let content = match String::from_utf8(content) {
            Ok(text) => text.replace("PORT", &port.to_string()).into_bytes(),
            Err(error) => error.into_bytes(),
        };
        (asked == path).then_some((status, fields, content))
    });
    let dir = tempfile::tempdir().unwrap();
    let settings = AcmeSettings {
        directory_url: format!("https://localhost:{}/dir", authority.port),
        ca_file: Some(authority.certificates.file("ca.pem")),
        contact: Vec::new(),
        dir: dir.path().join("acme"),
        names: vec!["a.example".to_owned()],
        challenges: vec![ChallengeKind::Http01],
        profile: None,
        external_account: None,
    };
    let challenges = Arc::new(Challenges::default());
    let larder = Larder::start(settings, &challenges, &Clock::default());
    let (failure, wait) = larder.failed("a.example");
    assert_eq!(failure.kind, expected, "{path}: {failure}");
    assert!(challenges.is_empty() && larder.served.of("a.example").is_none() && larder.acme.is_running());
    assert!(!dir.path().join("acme/certs/a.example/chain.pem").exists());
    wait
}

fn json(text: &str) -> Answer {
    (200, "Replay-Nonce: abc\r\nLocation: https://localhost:1/x\r\n".to_owned(), text.as_bytes().to_vec())
}

#[test]
fn directories_that_are_none() {
    for text in [
        "",
        "{}",
        "<html>",
        r#"{"newNonce":"\u0001","newAccount":"x","newOrder":"x"}"#,
        r#"{"newNonce":"http://localhost:PORT/nonce","newAccount":"x","newOrder":"x"}"#,
        r#"{"newNonce":"https://localhost:PORT/nonce","newAccount":"\u0001","newOrder":"x"}"#,
    ] {
        assert_eq!(check("/dir", json(text), FailureKind::Answer), MINUTE);
    }
    check("/dir", json(&"[".repeat(200_000)), FailureKind::Answer);
    check("/dir", json(&" ".repeat(300_000)), FailureKind::Answer);
}

#[test]
fn refusals_without_words_of_the_protocol() {
    for (status, after, kind, wait) in [
        (404, "3600", FailureKind::Answer, HOUR),
        (429, "3600", FailureKind::RateLimited, HOUR),
        (503, "600", FailureKind::Authority, 10 * MINUTE),
    ] {
        let answer = || (status, format!("Retry-After: {after}\r\n"), b"<html>Sorry</html>".to_vec());
        assert_eq!(check("/dir", answer(), kind), wait);
        assert_eq!(check("/new-order", answer(), kind), wait);
    }
}

#[test]
fn nonces_and_accounts_that_are_none() {
    check("/nonce", (200, String::new(), Vec::new()), FailureKind::Answer);
    check("/nonce", (500, "Replay-Nonce: abc\r\n".to_owned(), Vec::new()), FailureKind::Authority);
    check("/account", (201, "Replay-Nonce: abc\r\n".to_owned(), b"{}".to_vec()), FailureKind::Answer);
    let bad_nonce = br#"{"type":"urn:ietf:params:acme:error:badNonce"}"#.to_vec();
    check("/account", (400, "Replay-Nonce: abc\r\n".to_owned(), bad_nonce), FailureKind::Authority);
}

#[test]
fn orders_that_are_none() {
    check("/new-order", json("[]"), FailureKind::Answer);
    check("/new-order", json(r#"{"status":"odd","authorizations":[],"finalize":"x"}"#), FailureKind::Answer);
    check(
        "/new-order",
        json(r#"{"status":"pending","authorizations":[],"finalize":"x"}"#),
        FailureKind::Answer,
    );
    let many =
        format!(r#"{{"status":"pending","authorizations":["x"{}],"finalize":"x"}}"#, r#","x""#.repeat(9999));
    check("/new-order", json(&many), FailureKind::Answer);
    check("/order", json(r#"{"status":"invalid","authorizations":[],"finalize":"x"}"#), FailureKind::Refused);
}

#[test]
fn authorizations_that_are_none() {
    let authorization = |name: &str, token: &str| {
        json(&format!(
            r#"{{"status":"pending","identifier":{{"type":"dns","value":"{name}"}},"challenges":[
               {{"type":"http-01","url":"https://localhost:PORT/challenge","token":"{token}","status":"pending"}}]}}"#
        ))
    };
    check("/authorization", authorization("b.example", "dG9rZW4"), FailureKind::Answer);
    check("/authorization", authorization("a.example", "../../etc/passwd"), FailureKind::Answer);
    check("/authorization", authorization("a.example", ""), FailureKind::Answer);
    check("/authorization", authorization("a.example", &"a".repeat(2000)), FailureKind::Answer);
    let without = r#"{"status":"pending","identifier":{"type":"dns","value":"a.example"},"challenges":[]}"#;
    check("/authorization", json(without), FailureKind::Proof);
    let refused = r#"{"type":"http-01","url":"x","token":"t","status":"invalid",
        "error":{"type":"urn:ietf:params:acme:error:dns","detail":"no address"}}"#;
    check("/challenge", json(refused), FailureKind::Proof);
}

#[test]
fn certificates_that_are_others() {
    let key = KeyPair::generate().unwrap();
    let of = |name: &str| CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    check("/certificate", json(&of("a.example")), FailureKind::Certificate);
    check("/certificate", json(&of("b.example")), FailureKind::Certificate);
    check(
        "/certificate",
        json("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        FailureKind::Certificate,
    );
    check("/certificate", json(""), FailureKind::Certificate);
    check("/certificate", json(&of("a.example").repeat(1000)), FailureKind::Answer);
}

#[test]
fn the_wait_that_a_rate_limit_asks_for_is_kept_within_a_bound() {
    let limited = |after: &str| -> Answer {
        let problem = br#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many"}"#;
        (429, format!("Replay-Nonce: abc\r\nRetry-After: {after}\r\n"), problem.to_vec())
    };
    assert_eq!(check("/new-order", limited("7200"), FailureKind::RateLimited), 2 * HOUR);
    assert_eq!(check("/account", limited("18446744073709551615"), FailureKind::RateLimited), 7 * 24 * HOUR);
    assert_eq!(check("/new-order", limited("soon"), FailureKind::RateLimited), MINUTE);
}
