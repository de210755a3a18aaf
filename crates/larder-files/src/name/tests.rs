//! Names: a table of spellings, and what holds for every target.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use larder_http::target::Target;
use proptest::prelude::*;

use super::*;

fn named(target: &str) -> Result<Name, Unnameable> {
    let parsed = Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap();
    let uri = TargetUri { scheme: Scheme::Http, authority: "h", path: parsed.path(), query: parsed.query() };
    Name::of(&uri)
}

#[track_caller]
fn check(target: &str, name: &str) {
    let found = named(target).unwrap();
    assert_eq!(String::from_utf8_lossy(found.bytes()), name, "{target}");
}

#[test]
fn usual_paths_are_called_what_web_servers_call_them() {
    check("/", "h/index.html");
    check("/a", "h/a");
    check("/a/", "h/a/index.html");
    check("/a/b.json", "h/a/b.json");
    check("/a%20b", "h/a b");
    check("/caf%C3%A9", "h/café");
    check("/@x,y;z='1'+(2)~!$&:", "h/@x,y;z='1'+(2)~!$&:");
    check("/A", "h/A");
    check("/..a", "h/%..a");
}

#[test]
fn usual_names_are_made_in_the_short_way() {
    for path in ["/", "/a", "/a/", "/a/b.json", "/users/5"] {
        let uri = TargetUri { scheme: Scheme::Http, authority: "example.com:8080", path, query: None };
        assert!(Name::of_usual(&uri).is_some(), "{path}");
    }
}

#[test]
fn queries_lie_beside_the_path() {
    check("/a?b=c&d=%2F/e", "h/a?b=c&d=%2F#e");
    check("/?p=5", "h/index.html?p=5");
    check("/a?", "h/a?");
}

#[test]
fn what_is_odd_is_escaped() {
    check("/index.html", "h/%index.html");
    check("/index.html/", "h/%index.html/index.html");
    check("/index.html?", "h/%index.html?");
    check("//a//", "h/%_/a/%_/index.html");
    check("/./../a", "h/%./%../a");
    check("/.well-known/x", "h/%.well-known/x");
    check("/-rf", "h/%-rf");
    check("/a%2Fb%2f", "h/a%2Fb%2f");
    check("/%00%0A%7F", "h/%00%0A%7F");
    check("/%2e%2e/%2E", "h/%2e%2e/%2E");
    check("/caf%c3%a9", "h/caf%c3%a9");
    check("/%61%25%zz%", "h/%61%25%%zz%%");
    check("/\"{}", "h/%22%7B%7D");
    check("/%22%7B%7D", "h/\"{}");
    check("/%3Fa", "h/%3Fa");
}

#[test]
fn hosts_are_one_component() {
    let of = |authority| {
        let uri = TargetUri { scheme: Scheme::Http, authority, path: "/", query: None };
        Name::of(&uri).map(|name| String::from_utf8(name.bytes().to_vec()).unwrap())
    };
    assert_eq!(of("example.com:8080").unwrap(), "example.com:8080/index.html");
    assert_eq!(of("[::1]:81").unwrap(), "[::1]:81/index.html");
    assert_eq!(of("..").unwrap(), "%../index.html");
    assert_eq!(of(""), Ok("%_/index.html".to_owned()));
    assert_eq!(of("a/b"), Err(Unnameable::Byte));
    assert_eq!(of("a\0"), Err(Unnameable::Byte));
}

#[test]
fn what_is_too_long_ends_in_a_digest_or_has_no_name() {
    let long = named(&format!("/{}", "a".repeat(256))).unwrap();
    let (_, last) = long.split();
    assert_eq!(last.len(), 255);
    assert!(last.starts_with(b"aaa") && last.get(221..223) == Some(b"%<"));
    assert_eq!(long.uri(), None);
    let other = named(&format!("/{}b", "a".repeat(255))).unwrap();
    assert_ne!(long, other);
    assert_eq!(named(&format!("/{}", "a/".repeat(32))).unwrap().split().0.count(), 33);
    assert_eq!(named(&"/a".repeat(34)), Err(Unnameable::TooDeep));
    assert_eq!(named(&format!("/{}", "b".repeat(250)).repeat(13)), Err(Unnameable::TooLong));
}

#[test]
fn the_part_before_the_query_shows_the_type() {
    assert_eq!(named("/a.css?v=1.js").unwrap().shown(), b"a.css");
    assert_eq!(named("/").unwrap().shown(), b"index.html");
}

fn targets() -> impl Strategy<Value = String> {
    prop_oneof![
        "/[a./%2eEfF-]{0,16}(\\?[a/%#?]{0,4})?",
        "/[ -~]{0,24}",
        "/(index\\.html|%index|%self|\\.|\\.\\.|%25|%2F|//|-|%_|%%){0,5}/?",
        "/[a-c%]{250,262}",
    ]
    .prop_filter("a target", |raw| Target::parse(Bytes::copy_from_slice(raw.as_bytes())).is_ok())
}

#[test]
fn what_only_reads_like_a_name_is_no_uri_s() {
    for found in ["%index.html/x", "h", "h/", "h/%25/", "h/%2F%2f/%self/x", "h/.a", "h/%%index.html"] {
        let read = Name::found(found.as_bytes()).uri();
        let name = read.as_ref().map(|(authority, path, query)| {
            Name::of(&TargetUri { scheme: Scheme::Http, authority, path, query: query.as_deref() }).unwrap()
        });
        assert!(name.is_none_or(|name| name.bytes() == found.as_bytes()), "{found} as {read:?}");
    }
    assert_eq!(Name::found(b"%index.html/x").uri(), None);
}

proptest! {
    #[test]
    fn a_name_is_read_back_as_its_uri_and_so_no_two_share_one(raw in targets()) {
        let target = Target::parse(Bytes::copy_from_slice(raw.as_bytes())).unwrap();
        let name = named(&raw).unwrap();
        let is_cut = name.bytes().windows(2).any(|two| two == b"%<");
        let read = name.uri();
        if !is_cut {
            let expected = ("h".to_owned(), target.path().to_owned(), target.query().map(str::to_owned));
            prop_assert_eq!(read, Some(expected));
        }
    }

    #[test]
    fn the_short_way_to_a_name_leads_to_the_same_one(
        authority in "[a-c./%-]{0,3}|(index\\.html)", path in "(/[a.%-]{0,3}){0,4}(/index\\.html)?/?|(/a){30,36}|/a{250,260}",
    ) {
        let uri = TargetUri { scheme: Scheme::Http, authority: &authority, path: &path, query: None };
        if let Some(usual) = Name::of_usual(&uri) {
            prop_assert_eq!(Ok(usual), Name::of_any(&uri));
        }
    }

    #[test]
    fn no_two_long_targets_share_a_name(
        one in "/[a%2]{214,224}\\??[ab%~]{30,40}", two in "/[a%2]{214,224}\\??[ab%~]{30,40}",
    ) {
        prop_assert_eq!(named(&one).unwrap() == named(&two).unwrap(), one == two);
    }

    #[test]
    fn names_stay_beneath(authority in any::<String>(), path in any::<String>(), query in any::<Option<String>>()) {
        let uri = TargetUri { scheme: Scheme::Http, authority: &authority, path: &path, query: query.as_deref() };
        if let Ok(name) = Name::of(&uri) {
            check_components(&name);
        }
    }

    #[test]
    fn names_of_targets_stay_beneath(raw in targets()) {
        check_components(&named(&raw).unwrap());
    }

    #[test]
    fn reading_any_name_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Some((authority, path, query)) = Name::found(&bytes).uri() {
            let uri = TargetUri {
                scheme: Scheme::Http,
                authority: &authority,
                path: &path,
                query: query.as_deref(),
            };
            prop_assert_eq!(Name::of(&uri), Ok(Name::found(&bytes)));
        }
    }
}

fn check_components(name: &Name) {
    assert!(!name.bytes().contains(&0) && name.bytes().len() <= 3000);
    for component in name.bytes().split(|byte| *byte == b'/') {
        assert!(!component.is_empty() && component.len() <= COMPONENT_BYTES_MAX);
        assert!(!component.starts_with(b".") && !component.starts_with(b"-"));
        assert!(component.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f));
    }
    assert!(name.bytes().contains(&b'/'));
}
