//! Whole pages of text, from values made by hand.

use larder_proxy::explain::{
    AskedRequest, Candidate, Course, Decision, Destination, ExplainedFreshness, ExplainedResponse,
    Explanation, Field, Judgement, Key, KeyPart, LookedThrough, OriginAnswer, OriginServer, PassedOver,
    Reason, Route, StaleUse, Stored, VaryField, Window,
};

use super::super::columns::WIDTH;
use super::super::phrases::span;
use super::left;

fn text(of: &Explanation) -> String {
    super::text(of, WIDTH)
}

fn reason(token: &str, sentence: &str, section: &str) -> Reason {
    Reason { token: token.to_owned(), sentence: sentence.to_owned(), section: section.to_owned() }
}

fn field(name: &str, value: &str) -> Field {
    Field { name: name.to_owned(), value: value.to_owned() }
}

fn candidate(field: &str, lifetime_seconds: f64, decides: bool) -> Candidate {
    let source = reason("x", "Something gives it.", if decides { "RFC 1" } else { "RFC 2" });
    Candidate { source, field: field.to_owned(), lifetime_seconds, decides }
}

fn freshness(ttl_seconds: i64) -> ExplainedFreshness {
    ExplainedFreshness {
        lifetime_seconds: 60.0,
        source: reason("x", "Something gives it.", "RFC 1"),
        shortened_from_seconds: None,
        candidates: vec![candidate("a: b", 60.0, true), candidate("c: d", 7200.0, false)],
        age_seconds: 1.25,
        left_seconds: ttl_seconds as f64 + 0.4,
        ttl_seconds,
        no_cache: false,
        stale: vec!["stale-if-error=5".to_owned()],
    }
}

fn response(selected: bool) -> ExplainedResponse {
    ExplainedResponse {
        selected,
        invalidated: false,
        soft: false,
        every_tag: false,
        tags: Vec::new(),
        invalidated_seconds: None,
        purge: None,
        gone: false,
        status: 200,
        body_bytes: 10,
        store: "big".to_owned(),
        places: vec!["memory".to_owned()],
        held_back: selected.then(|| reason("queued", "It waits to be written.", "configuration")),
        part: None,
        vary: vec![VaryField {
            name: "accept-language".to_owned(),
            stored: (!selected).then(|| "fr".to_owned()),
            asked: Some("de".to_owned()),
        }],
        content_encoding: None,
        uncompressed: None,
        etag: Some("\"v\"".to_owned()),
        last_modified: None,
        freshness: freshness(58),
        groups: Vec::new(),
        cookies: Vec::new(),
        cookies_withheld: Vec::new(),
    }
}

fn hit() -> Explanation {
    let part = |name: &str, value: &str| KeyPart { name: name.to_owned(), value: Some(value.to_owned()) };
    Explanation {
        purge: None,
        request: AskedRequest {
            method: "GET".to_owned(),
            url: "http://a.example/x?b&utm=1".to_owned(),
            fields: vec![field("accept-language", "de")],
            dropped_fields: vec!["x-host".to_owned()],
            running: true,
        },
        route: Route {
            site: "a.example".to_owned(),
            host_pattern: Some("a.example".to_owned()),
            canonical_path: "/x".to_owned(),
            rule: Some(2),
            label: "things".to_owned(),
            line: Some(17),
            conditions: vec!["path /x*".to_owned(), "method GET".to_owned()],
            passed_over: vec![PassedOver {
                rule: 1,
                label: "/y*".to_owned(),
                line: Some(9),
                conditions: vec!["path /y*".to_owned()],
            }],
            rules: 3,
            cache: true,
            origin: Some("app".to_owned()),
            host: Some("client".to_owned()),
            servers: Vec::new(),
            refresh_ahead: false,
            collapse_wait_seconds: None,
            min_uses: 1,
            websocket: None,
        },
        key: Some(Key {
            text: "http://a.example/x?b".to_owned(),
            parts: vec![part("scheme", "http"), part("host", "a.example"), part("query", "b")],
            dropped_parameters: vec!["utm=1".to_owned()],
            reordered: false,
        }),
        stored: Stored {
            last_purge: None,
            records: Vec::new(),
            stores: vec![
                LookedThrough { store: "default".to_owned(), places: vec!["memory".to_owned()] },
                LookedThrough { store: "big".to_owned(), places: vec!["memory".to_owned(), "/a".to_owned()] },
            ],
            responses: vec![response(false), response(true)],
            hit_for_miss: false,
            before: None,
        },
        decision: Decision {
            verdict: Course::Hit,
            reason: reason("hit", "What is stored is fresh.", "RFC 9111 4"),
            alone: false,
            conditions: Vec::new(),
            stale_use: vec![StaleUse {
                cause: "origin-dead".to_owned(),
                allowed: false,
                reason: reason("stale-too-old", "It has been stale for too long.", "RFC 9111 4.2.4"),
                window: None,
            }],
            refresh_ahead_seconds: None,
            last_time: None,
            uses: None,
        },
        origin: None,
        parts: None,
        removal: vec![reason("expiry", "In 58 s it is stale.", "RFC 9111 4.2")],
        cache_status: "larder; hit; ttl=58".to_owned(),
    }
}

#[test]
fn a_hit_is_told_in_the_order_of_its_decision() {
    let expected = r#"GET http://a.example/x?b&utm=1
  accept-language: de
  (x-host: dropped, since only a trusted peer may send it, or nobody)

1  Site and rule
   site          a.example, by its host a.example
   path          /x
   rule          2 of 3 (things, line 17): path /x*, method GET
   passed over   rule 1 (/y*, line 9): path /y*
   origin        app

2  Cache key [RFC 9111 2]
   scheme        http
   host          a.example
   query         b
   left out      utm=1: not in the key, nor sent to the origin

3  Stored under it
   looked in     default (memory), then big (memory, /a)
   response 1    200, 10 bytes; not selected: it is for other values
     lies in     big (memory)
     varies by   accept-language: stored for "fr", asked for "de" [RFC 9111 4.1]
     etag        "v"
     freshness   fresh for 58 s more
   response 2    200, 10 bytes; selected by this request
     lies in     big (memory)
     only there  It waits to be written. [configuration]
     varies by   accept-language: stored for none, asked for "de" [RFC 9111 4.1]
     etag        "v"

4  Freshness
   lifetime      60 s (1 min), from a: b
                 Something gives it. [RFC 1]
     loses       c: d (would be 7200 s (2 h)) [RFC 2]
   age           1.2 s; fresh for 58 s more [RFC 9111 4.2.3]
   on stale use  stale-if-error=5

5  Decision
   hit           What is stored is fresh. [RFC 9111 4]
   origin dead   no stale use. It has been stale for too long. [RFC 9111 4.2.4]

6  What will remove or renew it
   - In 58 s it is stale. [RFC 9111 4.2]

7  Cache-Status
                 larder; hit; ttl=58
"#;
    assert_eq!(text(&hit()), expected);
}

#[test]
fn an_answer_that_is_not_stored_is_told_with_what_would_help() {
    let judgement = Judgement {
        cookies_withheld: Vec::new(),
        stored: false,
        shared: false,
        reason: reason("private", "It says private: it is for one client.", "RFC 9111 5.2.2.7"),
        help: Some("Say public instead.".to_owned()),
        place: None,
        freshness: freshness(60),
        vary: vec!["accept".to_owned()],
    };
    let origin = OriginAnswer {
        origin: "app".to_owned(),
        not_asked: None,
        failed: None,
        status: Some(200),
        seconds: Some(0.0123),
        fields: vec![field("cache-control", "private")],
        uncompressed: Some(reason("uncompressed", "It could be smaller.", "RFC 9110 12.5.3")),
        judgement: Some(judgement),
    };
    let told = text(&Explanation { origin: Some(origin), ..hit() });
    let expected = r"
6  The origin's answer
   status        200 from app after 12 ms; nothing of it was stored
                 cache-control: private
   coding        It could be smaller. [RFC 9110 12.5.3]
   not stored    It says private: it is for one client. [RFC 9111 5.2.2.7]
   what helps    Say public instead.
   varies by     accept [RFC 9111 4.1]
   lifetime      60 s (1 min), from a: b
                 Something gives it. [RFC 1]
     loses       c: d (would be 7200 s (2 h)) [RFC 2]

7  What will remove";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn an_answer_that_would_be_stored_is_told_with_where_it_goes() {
    let told = |entry: Option<usize>, conditions: &[&str], held_back: Option<Reason>| {
        let place = Destination {
            store: "big".to_owned(),
            places: vec!["memory".to_owned(), "/a".to_owned()],
            reason: reason("rule", "The rule names it.", "configuration"),
            entry,
            conditions: conditions.iter().map(|told| (*told).to_owned()).collect(),
            held_back,
        };
        let judgement = Judgement {
            cookies_withheld: Vec::new(),
            stored: true,
            shared: true,
            reason: reason("stored", "It is stored.", "RFC 9111 3"),
            help: None,
            place: Some(place),
            freshness: freshness(60),
            vary: Vec::new(),
        };
        let origin = OriginAnswer {
            origin: "app".to_owned(),
            not_asked: None,
            failed: None,
            status: Some(200),
            seconds: Some(0.0123),
            fields: Vec::new(),
            uncompressed: None,
            judgement: Some(judgement),
        };
        text(&Explanation { origin: Some(origin), ..hit() })
    };
    let why = reason("failing", "The disk has failed.", "configuration");
    for (told, expected) in [
        (told(None, &[], None), "   will go to    big (memory, /a): The rule names it.\n   lifetime"),
        (
            told(Some(2), &["type video/*", "status 200"], Some(why)),
            "   will go to    big (memory, /a): place, entry 2: type video/*, status 200.\n     only there  \
             The disk has failed. [configuration]\n   lifetime",
        ),
        (told(Some(1), &[], None), "big (memory, /a): place, entry 1, which takes everything.\n"),
    ] {
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn what_a_rule_adds_to_freshness_is_told_where_it_holds() {
    let mut of = hit();
    of.route.refresh_ahead = true;
    of.route.collapse_wait_seconds = Some(0.5);
    of.route.min_uses = 3;
    of.decision.refresh_ahead_seconds = Some(48.0);
    of.decision.uses = Some(2);
    of.stored.responses[1].freshness.shortened_from_seconds = Some(66.0);
    let window = |seconds, source: &str, field: &str| {
        Some(Window { seconds, source: source.to_owned(), field: field.to_owned() })
    };
    of.decision.stale_use[0].window = window(3600.0, "rule", "stale_if_dead = 3600s");
    of.decision.stale_use.push(StaleUse {
        cause: "while-revalidate".to_owned(),
        allowed: true,
        reason: reason("stale-while-revalidate", "It says so.", "RFC 5861 3"),
        window: window(0.25, "rule", "stale_while_revalidate = 250ms"),
    });
    let told = text(&of);
    for expected in [
        "   refresh ahead what is in use will be refreshed before its lifetime ends\n",
        "   collapse wait who has waited 500 ms for another's fetch may go alone, one a second\n",
        "   min uses      will be stored only once its URL was asked for 3 times lately\n",
        "                 Something gives it. [RFC 1]\n     jitter      shortened it from 66 s (1.1 min)\n",
        "   hit           What is stored is fresh. [RFC 9111 4]\n   uses          2 lately, with this one; 3 are asked for\n",
        "   ahead         the first use in 48 s or later will begin to refresh it\n",
        "[RFC 9111 4.2.4]\n                 for 3600 s (1 h) past its lifetime, from stale_if_dead = 3600s\n",
        "   meanwhile     stale use allowed. It says so. [RFC 5861 3]\n                 for 250 ms past",
    ] {
        assert!(told.contains(expected), "{expected}\n{told}");
    }
    of.decision.refresh_ahead_seconds = Some(0.0);
    assert!(text(&of).contains("   ahead         it ends soon: the next use will begin to refresh it\n"));
}

#[test]
fn servers_are_told_with_their_state() {
    let server = |server: &str, address: &str, state: &str, failures, backup| OriginServer {
        server: server.to_owned(),
        address: address.to_owned(),
        weight: 1,
        backup,
        state: state.to_owned(),
        in_flight: 2,
        failures,
    };
    let mut of = hit();
    of.route.servers = vec![
        server("http://192.0.2.1:80", "192.0.2.1:80", "up", 0, false),
        server("http://app.example:80", "192.0.2.2:80", "ejected", 5, true),
    ];
    let expected = "   origin        app
     server      http://192.0.2.1:80: up, 2 in flight
     server      http://app.example:80 at 192.0.2.2:80: ejected, 2 in flight, 5 failed so far; a
                 backup
";
    assert!(text(&of).contains(expected), "{}", text(&of));
    of.route.servers = vec![server("http://192.0.2.1:80", "192.0.2.1:80", "up", 0, false); 20];
    assert!(text(&of).contains("and 4 more: --json shows all of them\n"));
}

#[test]
fn what_is_left_is_told_with_its_fraction_where_it_is_short() {
    for (ttl_seconds, left_seconds, expected) in [
        (58, 58.9, "fresh for 58 s more"),
        (9, 9.4, "fresh for 9.4 s more"),
        (0, 0.25, "fresh for 250 ms more"),
        (0, 0.0, "at its end"),
        (0, -0.25, "stale for 250 ms"),
        (-9, -9.5, "stale for 9.5 s"),
        (-70, -70.9, "stale for 70 s (1.2 min)"),
    ] {
        assert_eq!(left(&ExplainedFreshness { left_seconds, ..freshness(ttl_seconds) }), expected);
    }
}

#[test]
fn no_line_is_wider_than_the_page_and_nothing_from_outside_steers_the_terminal() {
    let mut told = hit();
    told.request.fields.push(field("x-a", &"many words ".repeat(30)));
    told.stored.responses[1].etag = Some("\u{1b}[31mred".to_owned());
    told.decision.reason.sentence = "word ".repeat(60);
    told.cache_status = format!("larder; key=\"{}\"", "k".repeat(50));
    let narrow = super::text(&told, 80);
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    let text = text(&told);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn spans_are_told_as_people_read_them() {
    for (seconds, told) in [
        (0.0, "0 s"),
        (0.0004, "0 s"),
        (0.06, "60 ms"),
        (0.9994, "999 ms"),
        (1.0, "1 s"),
        (1.24, "1.2 s"),
        (59.4, "59 s"),
        (60.0, "60 s (1 min)"),
        (5400.0, "5400 s (1.5 h)"),
        (86_400.0, "86400 s (1 d)"),
        (347_108_324.0, "347108324 s (4017 d)"),
    ] {
        assert_eq!(span(seconds), told);
    }
}
