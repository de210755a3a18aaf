//! The demo as a whole, with short times: what its table says has to hold for each fragment and on either side.

use super::*;

/// The two figures of a row.
fn figures(table: &str, label: &str) -> [u64; 2] {
    let row = table.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
    let figures = row.split_whitespace().map(|figure| figure.replace(',', "").parse().unwrap());
    figures.collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn each_fragment_is_asked_for_once_in_its_lifetime_and_each_visitor_gets_its_own_page() {
    let mut out = Vec::new();
    let (seconds, clients) = (2, 3);
    let options = DemoOptions { stay: false, seconds, clients };
    // A page with another visitor's greeting, or with a wrong byte, is an error here.
    let ended = show(&options, Duration::from_millis(20), &mut Screen::new(&mut out, false)).unwrap();
    assert_eq!(ended, DemoEnd::Whole);
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let clients = clients as u64;
    let [alone, fronted] = figures(&text, "requests answered");
    assert!(fronted > alone, "{text}");
    for label in ["news, 1 s", "offers, 10 s", "archive, 1 h", "greeting, private"] {
        let [renders, _] = figures(&text, &format!("renders of {label}"));
        // The app makes all of them for each page, and has begun some that were not answered in time.
        assert!((alone..=alone + clients).contains(&renders), "{label}: {text}");
    }
    let [_, news] = figures(&text, "renders of news, 1 s");
    assert!((1..=seconds + 1).contains(&news), "{text}");
    for label in ["renders of offers, 10 s", "renders of archive, 1 h"] {
        assert_eq!(figures(&text, label)[1], 1, "{text}");
    }
    let [_, greetings] = figures(&text, "renders of greeting, private");
    assert!((fronted..=fronted + clients).contains(&greetings), "{text}");
    assert!(text.contains("\nlarder: ") && text.contains(" renders for a page in place of "), "{text}");
}
