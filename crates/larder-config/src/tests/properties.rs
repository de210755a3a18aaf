//! Whatever stands in a file, the answer is a config or a list of problems with places in it.

use proptest::prelude::*;

use super::*;

fn check(text: &str) {
    let lines = text.split('\n').count();
    if let Err(errors) = parse(text, "f", Path::new("/nonexistent")) {
        assert!(!errors.0.is_empty());
        for problem in &errors.0 {
            assert!(problem.line <= lines && !problem.to_string().is_empty(), "{problem:?}");
        }
    }
}

/// Pieces that get past the parser, so that the walk is reached.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("listen"),
        Just("ttl"),
        Just("key"),
        Just("site"),
        Just("path"),
        Just("servers"),
        Just("set"),
        Just("request"),
        Just("hosts"),
        Just("origin"),
        Just("memory"),
        Just("disks"),
        Just("files"),
        Just("mode"),
        Just("default_type"),
        Just("size"),
        Just("leave"),
        Just("layout"),
        Just("place"),
        Just("type"),
        Just("min_size"),
        Just("store"),
        Just("fields"),
        Just("query"),
        Just("ignore"),
        Just("targets"),
        Just("session_cookies"),
        Just("purge"),
        Just("tags"),
        Just("from"),
        Just("token"),
        Just("header"),
        Just("location"),
        Just("absent"),
        Just("jitter"),
        Just("hash_by"),
        Just("name_servers"),
        Just("retry"),
        Just("ejection"),
        Just("health"),
        Just("status"),
        Just("on"),
        Just("url"),
        Just("weight"),
        Just("server_name"),
        Just("x"),
    ];
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("true".to_owned()),
        Just("{ a = 1 }".to_owned()),
        Just("{ url = \"http://a\", backup = true }".to_owned()),
        Just("[{ path = \"a\", size = \"1GiB\" }, { path = \"b\", leave = \"10%\" }]".to_owned()),
        Just("[{ type = \"a/*\", store = \"default\" }]".to_owned()),
        Just("\"header:x\"".to_owned()),
        Just("\"200-299\"".to_owned()),
        Just("{ header = \"X-Key: 0123456789abcdef\", location = \"/p\" }".to_owned()),
        Just("{ fields = [\"xkey\", \"default\"] }".to_owned()),
        Just("[[1], {}]".to_owned()),
        Just("1.5".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("99999999999999999999".to_owned()),
        "[^\"\\\\\\p{C}]{0,12}".prop_map(|text| format!("\"{text}\"")),
    ];
    let header = prop_oneof![
        Just("[[site]]"),
        Just("[[site.rule]]"),
        Just("[origins.a]"),
        Just("[origins.a.retry]"),
        Just("[origins.a.ejection]"),
        Just("[origins.a.health]"),
        Just("[[origins.a.servers]]"),
        Just("[stores.default]"),
        Just("[[stores.default.disks]]"),
        Just("[stores.default.files]"),
        Just("[limits]"),
        Just("[defaults]"),
        Just("[log]"),
        Just("[site]"),
        Just("[defaults.key]"),
        Just("[defaults.purge]"),
        Just("[defaults.tags]"),
        Just("[[defaults.place]]"),
    ];
    prop_oneof![
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}\n")),
        1 => header.prop_map(|header| format!("{header}\n")),
    ]
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}|[\\[\\]{}=\"'.,#\\na-z0-9 ]{0,200}") {
        check(&text);
    }

    #[test]
    fn no_document_panics(lines in prop::collection::vec(line(), 0..24)) {
        check(&lines.concat());
    }
}

#[test]
fn deep_nesting_is_an_error() {
    check(&"[".repeat(100_000));
    check(&format!("x = {}{}", "[".repeat(50_000), "]".repeat(50_000)));
    check(&"a.".repeat(50_000));
    check(&format!("x = {}", "{ a = ".repeat(50_000)));
}

#[test]
fn a_file_full_of_errors_is_read_in_reasonable_time() {
    let unknown: String = (0..40_000).map(|index| format!("q{index}=1\n")).collect();
    check(&unknown);
    let sites: String =
        (0..4_000).map(|index| format!("[[site]]\norigin = \"n{index}\"\nhosts = \"h{index}\"\n")).collect();
    let origins: String = (0..4_000).map(|index| format!("[origins.o{index}]\nidle = 1\n")).collect();
    check(&(sites + &origins));
    let disks: String =
        (0..8_000).map(|index| format!("[[stores.s{index}.disks]]\npath = \"/{}\"\n", index / 2)).collect();
    check(&disks);
}
