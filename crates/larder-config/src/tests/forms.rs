//! Which bytes of a config are hidden beside the values at their places, and which are shown.

use std::time::{Duration, Instant};

use super::*;
use crate::{Difference, load};

fn told(text: &str) -> String {
    good(text).text.text
}

/// The text of a config in which a field of requests has this literal, and the other lines as they stand before it.
fn with_field(name: &str, literal: &str, before: &str) -> String {
    let shown = told(&format!("{before}\n{SITE}request = {{ set = {{ {name} = {literal} }} }}\n"));
    shown.lines().take(before.lines().count()).collect::<Vec<_>>().join("\n")
}

#[test]
fn secrets_in_the_query_of_a_health_check_are_hidden() {
    let health = |query: &str, live: &str| {
        let text =
            format!("{live}\n# was S3CRET-S3CRET\n{SITE}[origins.app.health]\npath = \"/status?{query}\"\n");
        told(&text).lines().last().unwrap().to_owned()
    };
    for (query, shown) in [
        ("deep=1&token=S3CRET", "deep=1&token=***"),
        ("%74oken=S3CRET&deep=1", "%74oken=***&deep=1"),
        ("a=1;sig=S3CRET;b=2&c=3", "a=1;sig=***&c=3"),
        ("sid=4&user[api_key]=S3CRET", "sid=4&user[api_key]=***"),
        ("deep=1&x", "deep=1&x"),
    ] {
        assert_eq!(health(query, ""), format!("path = \"/status?{shown}\""), "{query}");
    }
    let live = "[live]\nredact = [\"SID\", \"*x*\", \"b*\"]";
    assert_eq!(health("sid=1&axe=2&bx=3&cb=4", live), "path = \"/status?sid=***&axe=***&bx=***&cb=4\"");
    let text =
        format!("# was S3CRET/S3CRET\n{SITE}[origins.app.health]\npath = \"/?token=S3CRET%2fS3CRET\"\n");
    assert!(!told(&text).contains("S3CRET"), "{}", told(&text));
}

#[test]
fn parts_of_a_secret_and_its_literal_are_hidden_elsewhere() {
    for (name, literal, comment, shown) in [
        ("Authorization", "\"Bearer abcdef0123456789\"", "# abcdef0123456789 x", "# *** x"),
        ("Authorization", "\"Bearer abcdef0123456789\"", "# Bearer abcdef0123456789", "# ***"),
        ("X-Token", "\"\\u0061bcdef0123456789\"", "# \\u0061bcdef0123456789", "# ***"),
        ("Cookie", "\"id=abcdef0123456789; b=1\"", "# abcdef0123456789", "# ***"),
        ("X-Origin-Verify", "\"abcdef012345\"", "# abcdef012345", "# ***"),
        ("X-Token", "\"abcdef01234\"", "# abcdef01234", "# abcdef01234"),
    ] {
        assert_eq!(with_field(name, literal, comment), shown, "{literal}");
    }
}

#[test]
fn common_values_of_fields_with_a_name_like_a_secret_stay_elsewhere() {
    let sections = crate::sections::all_sections();
    let mut names = sections.iter().flat_map(|section| &section.keys).map(|key| key.name);
    let long = names.find(|name| name.len() >= 12).unwrap();
    for common in [
        "application/json",
        "text/html; charset=utf-8",
        "shop.example.org",
        "https://shop.example.org/",
        "shop.example.org:8443",
        long,
    ] {
        let text = |value: &str| {
            format!(
                "# {common}\n{SITE}hosts = \"*.shop.example.org\"\nrequest = {{ set = {{ X-Auth-Type = \"{value}\" }} }}\n"
            )
        };
        assert_eq!(told(&text(common)), text("***"), "{common}");
    }
    let text = format!("{SITE}response = {{ set = {{ Access-Control-Allow-Credentials = \"true\" }} }}\n");
    assert_eq!(told(&text), text);
}

#[test]
fn what_is_made_by_a_mask_is_hidden_with_its_line_and_soon() {
    let text = format!(
        "[admin]\ntoken = \"***abcdefghijklm\"\n# ***abcdefghijklm{}\n{SITE}",
        "abcdefghijklm".repeat(40_000)
    );
    let started = Instant::now();
    let shown = told(&text);
    assert_eq!(shown, format!("[admin]\ntoken = \"***\"\n***\n{SITE}"));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn with_too_many_secrets_no_line_is_shown() {
    let fields = |count: usize| {
        let fields = (0..count).map(|index| format!("X-Token-{index} = \"abcdefghijk{index}\"\n"));
        format!("{SITE}[site.request.set]\n{}# a\n", fields.collect::<String>())
    };
    let some = fields(100);
    assert_eq!(told(&some).lines().last(), Some("# a"));
    let many = fields(4200);
    let shown = told(&many);
    assert_eq!(shown.lines().count(), many.lines().count());
    assert!(shown.lines().all(|line| line == "***"));
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("larder.toml");
    std::fs::write(&path, SITE).unwrap();
    let running = load(&path).unwrap().text;
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (told, is_told) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(running.difference()));
    assert_eq!(is_told.recv_timeout(Duration::from_secs(10)), Ok(Some(Difference::Unreadable)));
}

#[test]
fn other_texts_about_a_config_have_none_of_its_secrets() {
    let text = good(&format!("[admin]\ntoken = \"abcdef0123456789\"\n{SITE}")).text;
    assert_eq!(text.without_secrets("it is abcdef0123456789!"), "it is ***!");
}
