//! Orders that fail, and what becomes of them.

use std::time::Duration;

use larder_acme::{ChallengeKind, Event, FailureKind, Step, Why};

use crate::business::{Business, HOUR, MINUTE};

#[test]
fn a_failed_proof_is_tried_again_when_its_wait_is_over() {
    let Some(business) = Business::open(|_| ()) else { return };
    business.show_proofs(false);
    let larder = business.larder(&["a.example"]);
    let (failure, wait) = larder.failed("a.example");
    assert_eq!((failure.kind, wait), (FailureKind::Proof, MINUTE), "{failure}");
    assert!(failure.text.contains("404"), "the authority's reason: {failure}");
    assert!(business.proofs.challenges.is_empty());
    let status = larder.status("a.example");
    assert_eq!((status.failing(), status.failures), (Some(FailureKind::Proof), 1));
    assert_eq!(status.next.unwrap().why, Why::Retry);
    // Once more, and the waits grow.
    larder.advance(&business, MINUTE);
    assert_eq!(larder.failed("a.example").1, 5 * MINUTE);
    business.show_proofs(true);
    larder.advance(&business, 4 * MINUTE);
    let left = larder.status("a.example").next_in(business.clock.now().wall).unwrap();
    assert!(left > Duration::from_secs(50) && left <= MINUTE, "{left:?}");
    assert_eq!(larder.count("issued"), 0);
    larder.advance(&business, MINUTE);
    larder.issued("a.example");
    let status = larder.status("a.example");
    assert_eq!((status.failing(), status.failures, status.last_failure.clone()), (None, 0, None));
    assert_eq!((larder.count("issued"), larder.count("proof")), (1, 2));
}

#[test]
fn a_wait_is_not_forgotten_over_a_restart() {
    let Some(business) = Business::open(|_| ()) else { return };
    business.show_proofs(false);
    let larder = business.larder(&["a.example"]);
    larder.failed("a.example");
    drop(larder);
    let orders = |log: &str| log.matches("Added order").count();
    let larder = business.larder(&["a.example"]);
    let status = larder.status("a.example");
    assert_eq!((status.next.unwrap().why, status.failures), (Why::Retry, 1));
    business.show_proofs(true);
    larder.advance(&business, MINUTE);
    larder.issued("a.example");
    assert_eq!(orders(&business.pebble.log()), 2);
}

#[test]
fn after_a_failed_proof_the_next_kind_is_tried_and_the_one_that_succeeds_is_kept() {
    // The authority looks for TLS where nothing is.
    let Some(business) = Business::open(|options| options.tls_port = 1) else { return };
    let settings = business.settings(&["a.example"], &[ChallengeKind::TlsAlpn01, ChallengeKind::Http01]);
    let larder = business.start(settings.clone());
    let (failure, _) = larder.failed("a.example");
    assert!(failure.kind == FailureKind::Proof && failure.text.contains("tls-alpn-01"), "{failure}");
    larder.advance(&business, MINUTE);
    larder.issued("a.example");
    drop(larder);
    let larder = business.start(settings);
    assert!(larder.acme.renew_now("a.example"));
    larder.issued("a.example");
    assert_eq!(larder.count("proof"), 0);
}

#[test]
fn an_authority_that_dies_amid_an_order_and_comes_back_without_memory() {
    let Some(mut business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    let before = larder.served.of("a.example").unwrap();
    larder.hold_at(Step::Ordered);
    larder.acme.renew_now("a.example");
    larder.until(|event| matches!(event, Event::Progress { step: Step::Ordered, .. }).then_some(()));
    business.pebble.kill();
    larder.release();
    let (failure, wait) = larder.failed("a.example");
    assert_eq!((failure.kind, wait), (FailureKind::Unreachable, MINUTE), "{failure}");
    assert_eq!(larder.served.of("a.example"), Some(before.clone()));
    business.pebble.restart();
    // The certificate is not due for long; the operator insists. Neither account nor certificate is known there any more.
    larder.acme.renew_now("a.example");
    larder.until(|event| matches!(event, Event::AccountGone { .. }).then_some(()));
    larder.until(|event| matches!(event, Event::AccountCreated { .. }).then_some(()));
    assert!(!larder.issued("a.example"), "nothing to replace");
    assert_ne!(larder.served.of("a.example"), Some(before));
    assert_eq!(larder.status("a.example").failing(), None);
}

#[test]
fn what_an_operator_asked_for_is_tried_again_and_not_forgotten_over_a_restart() {
    let Some(mut business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    business.pebble.kill();
    assert!(larder.acme.renew_now("a.example"));
    assert_eq!(larder.failed("a.example").1, MINUTE);
    assert_eq!(larder.status("a.example").next.unwrap().why, Why::Retry, "its lifetime would be long enough");
    drop(larder);
    business.pebble.restart();
    let larder = business.larder(&["a.example"]);
    let status = larder.status("a.example");
    assert_eq!((status.next.unwrap().why, status.failures), (Why::Retry, 1));
    larder.advance(&business, MINUTE);
    larder.issued("a.example");
    let status = larder.status("a.example");
    assert_ne!(status.next.unwrap().why, Why::Retry, "it is only one");
    assert_eq!(status.failures, 0);
}

#[test]
fn what_an_operator_asked_for_counts_while_files_are_read_anew() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    drop(larder);
    // Not to be read, until the operator has mended that.
    let (chain, aside) = (business.file("certs/a.example/chain.pem"), business.file("chain.aside"));
    std::fs::rename(&chain, &aside).unwrap();
    std::fs::create_dir(&chain).unwrap();
    let larder = business.larder(&["a.example"]);
    assert_eq!(larder.status("a.example").lifetime, None);
    assert!(larder.acme.renew_now("a.example"));
    std::fs::remove_dir(&chain).unwrap();
    std::fs::rename(&aside, &chain).unwrap();
    larder.acme.look();
    larder.issued("a.example");
}

#[test]
fn a_dead_authority_stops_no_start_and_is_not_asked_for_each_name() {
    let Some(mut business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example"]);
    larder.issued("a.example");
    let certificate = larder.served.of("a.example");
    drop(larder);
    business.pebble.kill();
    let larder = business.larder(&["a.example", "b.example", "c.example", "d.example"]);
    assert_eq!(larder.served.of("a.example"), certificate, "served before start returns");
    let (failure, _) = larder.failed("b.example");
    assert_eq!(failure.kind, FailureKind::Unreachable);
    // The others are not tried for a minute, but for one that an operator insists on. It would have had its turn after them.
    larder.acme.renew_now("d.example");
    larder.failed("d.example");
    assert_eq!((larder.count("unreachable"), larder.status("c.example").failures), (2, 0));
    business.pebble.restart();
    larder.advance(&business, HOUR);
    for _ in 0..3 {
        larder.until(|event| matches!(event, Event::Issued { .. }).then_some(()));
    }
    assert!(["b.example", "c.example", "d.example"].iter().all(|name| larder.served.of(name).is_some()));
}
