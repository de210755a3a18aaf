//! Directories: shared, damaged, changed.

use std::fs;

use larder_acme::{Event, FailureKind};

use crate::business::{Business, MINUTE};

#[test]
fn a_second_process_takes_what_it_finds_and_takes_over() {
    let Some(business) = Business::open(|_| ()) else { return };
    let first = business.larder(&["a.example"]);
    let second = business.larder(&["a.example"]);
    assert!(first.acme.is_leading() && !second.acme.is_leading());
    second.until(|event| matches!(event, Event::Follows).then_some(()));
    first.issued("a.example");
    second.acme.renew_now("a.example");
    // It looks each minute by itself.
    second.look_until(|| second.served.of("a.example").is_some());
    assert_eq!(first.served.of("a.example"), second.served.of("a.example"));
    assert_eq!(second.status("a.example").next, None);
    first.acme.renew_now("a.example");
    first.issued("a.example");
    second.look_until(|| first.served.of("a.example") == second.served.of("a.example"));
    assert_eq!(business.pebble.issued(), 2, "the second has ordered nothing");
    drop(first);
    second.acme.look();
    second.until(|event| matches!(event, Event::Leads).then_some(()));
    second.acme.renew_now("a.example");
    second.issued("a.example");
    assert_eq!(business.pebble.log().matches("accounts in memory").count(), 1, "with the same account");
}

#[test]
fn damaged_files_are_moved_aside_and_ordered_anew() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example", "b.example"]);
    for _ in 0..2 {
        larder.until(|event| matches!(event, Event::Issued { .. }).then_some(()));
    }
    drop(larder);
    fs::write(business.file("certs/a.example/chain.pem"), "-----BEGIN CERTIFICATE-----\n").unwrap();
    fs::write(business.file("certs/b.example/state.json"), [0xff; 20]).unwrap();
    let account = fs::read_dir(business.file("account")).unwrap().next().unwrap().unwrap().path();
    fs::write(&account, "{}}").unwrap();
    let larder = business.larder(&["a.example", "b.example"]);
    assert!(larder.served.of("a.example").is_none() && larder.served.of("b.example").is_some());
    let mut moved = Vec::new();
    for _ in 0..3 {
        moved.push(larder.until(|event| match event {
            Event::Damaged { moved_to, .. } => moved_to.clone(),
            _ => None,
        }));
    }
    let names: Vec<_> = moved.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert!(names.contains(&"state.json.damaged") && names.contains(&"chain.pem.damaged"), "{names:?}");
    assert!(
        names.iter().any(|name| name.ends_with(".json.damaged") && name.starts_with("localhost")),
        "{names:?}"
    );
    larder.issued("a.example");
    assert!(larder.served.of("a.example").is_some());
    assert_eq!(business.pebble.issued(), 3);
}

#[test]
fn names_are_added_and_removed_while_it_runs() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&["a.example", "b.example"]);
    for _ in 0..2 {
        larder.until(|event| matches!(event, Event::Issued { .. }).then_some(()));
    }
    let before = larder.served.of("b.example");
    larder.acme.reload(business.settings(&["b.example", "c.example"], &[])).unwrap();
    larder.issued("c.example");
    let names: Vec<_> = larder.acme.status().iter().map(|status| status.name.clone()).collect();
    assert_eq!(names, ["b.example", "c.example"]);
    assert_eq!(larder.served.of("b.example"), before);
    // One that comes back is served from its files, before the reload returns.
    larder.acme.reload(business.settings(&["a.example"], &[])).unwrap();
    assert!(larder.served.of("a.example").is_some());
    // What cannot be used changes nothing.
    assert!(larder.acme.reload(business.settings(&["*.example"], &[])).is_err());
    let mut settings = business.settings(&["a.example"], &[]);
    settings.ca_file = Some(business.file("nothing.pem"));
    assert!(larder.acme.reload(settings).is_err());
    assert_eq!(business.pebble.issued(), 3);
}

#[test]
fn a_directory_that_takes_no_file_costs_the_authority_nothing() {
    let Some(business) = Business::open(|_| ()) else { return };
    let larder = business.larder(&[]);
    // A file where the directory of the name should be. Root may write anywhere else.
    fs::write(business.file("certs/a.example"), "").unwrap();
    larder.acme.reload(business.settings(&["a.example"], &[])).unwrap();
    let event = larder.until(|event| match event {
        Event::Storage { failure } => Some(failure.clone()),
        _ => None,
    });
    assert_eq!(event.kind, FailureKind::Storage, "{event}");
    assert_eq!(business.pebble.log().matches("Added order").count(), 0);
    // It can be read now, and the key of an order cannot be written.
    fs::remove_file(business.file("certs/a.example")).unwrap();
    fs::create_dir_all(business.file("certs/a.example/next.pem")).unwrap();
    larder.acme.look();
    let (failure, wait) = larder.failed("a.example");
    assert_eq!((failure.kind, wait), (FailureKind::Storage, MINUTE), "{failure}");
    assert_eq!(business.pebble.log().matches("Added order").count(), 0);
    // Once it can, it is tried without a restart.
    fs::remove_dir(business.file("certs/a.example/next.pem")).unwrap();
    larder.advance(&business, MINUTE);
    larder.issued("a.example");
}
