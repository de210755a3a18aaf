//! Who is let in to what: the two tokens, wrong ones, names, pages of other sites, parameters.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, RETRY_AFTER};

use super::*;
use crate::answer::HTML;
use crate::endpoints::{ENDPOINTS, api_markdown};

fn tokens() -> Guard {
    let token = |text| Some(Token::parse(text).unwrap());
    Guard { hosts: vec!["cache1.internal".into()], token: token("s3cret"), view_token: token("l00k") }
}

/// A request that a client of its API could send, with a token.
fn with_token(method: &str, target: &str, token: Option<&str>) -> RequestHead {
    let mut head = head(method, "127.0.0.1", target);
    head.fields.insert(CONTENT_TYPE, "application/json".parse().unwrap());
    head.fields.insert("surrogate-key", "a".parse().unwrap());
    if let Some(token) = token {
        head.fields.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    }
    head
}

/// A target that an endpoint of the table answers.
fn target(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "" => "",
        "ID" => "1",
        part if part.bytes().all(|byte| byte.is_ascii_uppercase()) => "a",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn every_line_of_the_table_is_answered_to_whom_it_says() {
    let admin = guarded(Health::Ok, tokens(), Clock::default());
    // A stream has a timer.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    for endpoint in ENDPOINTS {
        for action in endpoint.actions {
            for method in action.methods {
                let required = [
                    ("/", "url=http://a/"),
                    ("/api/", "names=requests"),
                    ("/api/v1/latency", "of=all"),
                    ("/api/v1/certificates", "name=known.example"),
                ]
                .into_iter()
                .filter(|(below, pair)| {
                    endpoint.path.starts_with(below)
                        && action.parameters.iter().any(|known| {
                            pair.strip_prefix(known.name).is_some_and(|rest| rest.starts_with('='))
                        })
                });
                let query = required.map(|(_, pair)| pair).collect::<Vec<_>>().join("&");
                let target = format!("{}?{query}", target(endpoint.path));
                let ask = |token| {
                    let body = "{\"tags\": [\"a\"]}";
                    now(admin.answer(&with_token(method, &target, token), LOCAL, &mut Body::from(body)))
                };
                let status = |token| ask(token).head.status.as_u16();
                let good = match endpoint.path {
                    // This larder is in no fleet, no file of the dashboard has that name, and its disk does not confirm a purge of everything.
                    "/api/v1/fleet" | "/ui/PATH" => 404,
                    "/service/ID/purge_all" => 503,
                    _ => 200,
                };
                let (none, look) = match action.class {
                    Class::Open => (good, good),
                    Class::Looks | Class::Costs => (401, good),
                    Class::Changes => (401, 403),
                };
                let name = format!("{method} {target}");
                assert_eq!(status(None), none, "{name} without a token");
                assert_eq!(status(Some("l00k")), look, "{name} with view_token");
                assert_eq!(status(Some("s3cret")), good, "{name} with token");
                if look == 403 {
                    let said = body(&ask(Some("l00k")));
                    assert!(
                        said.contains("view_token may look and explain, but not purge"),
                        "{name}: {said}"
                    );
                }
            }
            let other = with_token("PATCH", &target(endpoint.path), Some("s3cret"));
            let refused = now(admin.asked(&other));
            assert_eq!(refused.head.status, StatusCode::METHOD_NOT_ALLOWED, "{}", endpoint.path);
            assert_eq!(field(&refused, ALLOW), Some(endpoint.methods().as_str()));
        }
    }
}

#[test]
fn the_reference_and_the_index_have_every_path() {
    let (text, reference) = (crate::endpoints::index_text(), api_markdown());
    for endpoint in ENDPOINTS {
        for (name, page) in [("text", &text), ("reference", &reference)] {
            assert!(page.contains(endpoint.path), "{name}: {}", endpoint.path);
        }
    }
    let admin = admin(Health::Ok, None);
    for (accept, form, begins) in [
        (None, TEXT, "GET "),
        (Some("*/*"), TEXT, "GET "),
        (Some("application/json"), TEXT, "GET "),
        (Some("text/html,application/xhtml+xml;q=0.9"), HTML, "<!doctype html>"),
        (Some("application/xml, Text/HTML;q=0.9"), HTML, "<!doctype html>"),
    ] {
        let mut head = head("GET", "127.0.0.1", "/");
        head.fields.extend(accept.map(|accept| (ACCEPT, accept.parse().unwrap())));
        let response = now(admin.asked(&head));
        assert_eq!(field(&response, CONTENT_TYPE), Some(form), "{accept:?}");
        assert!(body(&response).starts_with(begins), "{accept:?}");
    }
}

#[test]
fn wrong_tokens_wait_and_the_right_one_never_does() {
    let clock = Clock::default();
    let admin = guarded(Health::Ok, tokens(), clock.clone());
    let ask = |token, peer: &str| {
        let head = with_token("GET", "/stats", token);
        let response = now(admin.answer(&head, peer.parse().unwrap(), &mut Body::Empty));
        (response.head.status.as_u16(), field(&response, RETRY_AFTER).map(str::to_owned))
    };
    let (here, there) = ("192.0.2.1", "192.0.2.2");
    for _ in 0..20 {
        assert_eq!(ask(None, here).0, 401, "no token is not a wrong one");
    }
    for _ in 0..10 {
        assert_eq!(ask(Some("guess"), here), (401, None));
    }
    let (status, after) = ask(Some("guess"), here);
    assert_eq!(status, 429);
    assert!(after.is_some_and(|after| ["60", "59"].contains(&after.as_str())));
    assert_eq!(ask(Some("s3cret"), here).0, 200);
    assert_eq!(ask(Some("l00k"), here).0, 200);
    assert_eq!(ask(None, here).0, 401);
    assert_eq!(ask(Some("guess"), there).0, 401, "another address");
    let dialect = with_token("POST", "/service/all/purge_all", Some("guess"));
    let refused = now(admin.answer(&dialect, here.parse().unwrap(), &mut Body::Empty));
    assert_eq!(refused.head.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(body(&refused).contains("\"msg\":\"Too Many Requests\""), "{}", body(&refused));
    clock.advance(Duration::from_secs(61));
    assert_eq!(ask(Some("guess"), here).0, 401, "a minute is over");
    let metrics = body(&now(admin.asked(&with_token("GET", "/metrics", Some("l00k")))));
    for (reason, count) in [("no-token", 21), ("wrong-token", 12), ("wrong-tokens", 2), ("view-token", 0)] {
        let line = format!("larder_admin_refused_total{{reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    assert!(metrics.contains("larder_admin_addresses_forgotten_total 0\n"), "{metrics}");
}

#[test]
fn a_name_of_the_config_is_answered() {
    let admin = guarded(Health::Ok, tokens(), Clock::default());
    for (host, status) in [("cache1.internal:8081", 200), ("Cache1.Internal", 200), ("cache2.internal", 421)]
    {
        assert_eq!(now(admin.asked(&head("GET", host, "/healthz"))).head.status, status, "{host}");
    }
}

#[test]
fn no_page_of_another_site_reads_the_api_or_purges() {
    let admin = admin(Health::Ok, None);
    for (name, value, method, target, status) in [
        ("sec-fetch-site", "cross-site", "GET", "/api/v1/purges", 403),
        ("sec-fetch-site", "same-site", "GET", "/api/v1/purges/1", 403),
        ("sec-fetch-site", "same-origin", "GET", "/api/v1/purges", 200),
        ("sec-fetch-site", "none", "GET", "/api/v1/purges", 200),
        ("sec-fetch-site", "cross-site", "GET", "/", 200),
        ("origin", "https://evil.example", "DELETE", "/object?url=http://a/", 403),
        ("origin", "http://127.0.0.1:8081", "DELETE", "/object?url=http://a/", 403),
        ("origin", "http://127.0.0.1", "DELETE", "/object?url=http://a/", 200),
    ] {
        let mut head = head(method, "127.0.0.1", target);
        head.fields.insert(name, value.parse().unwrap());
        assert_eq!(now(admin.asked(&head)).head.status, status, "{name}: {value} {method} {target}");
    }
}

#[test]
fn the_api_refuses_parameters_that_it_does_not_know() {
    let admin = admin(Health::Ok, None);
    for (method, target, status) in [
        ("GET", "/api/v1/purges?limit=1", 400),
        ("POST", "/api/v1/purges?soft=1", 400),
        ("GET", "/api/v1/purges/1?x", 400),
        ("GET", "/api/v1/fleet?x=1", 400),
        ("GET", "/api/v1/purges?", 200),
        ("GET", "/stats?x=1", 200),
        ("GET", "/?x=1", 200),
    ] {
        let response = now(admin.asked(&with_token(method, target, None)));
        assert_eq!(response.head.status, status, "{method} {target}");
        let said = body(&response);
        assert!(status != 400 || said.contains("\"error\":\"parameter\""), "{target}: {said}");
    }
    let said = body(&now(admin.asked(&head("GET", "127.0.0.1", "/api/v1/fleet?colour=red"))));
    assert!(said.contains("there is no parameter \\\"colour\\\" here: there are none"), "{said}");
}

#[test]
fn a_browser_may_do_nothing_with_what_it_gets() {
    let admin = admin(Health::Ok, None);
    for target in ["/", "/metrics", "/nothing", "/api/v1/fleet?x", "/object?url=http://a/&body=1"] {
        let response = now(admin.asked(&head("GET", "127.0.0.1", target)));
        for (name, value) in [
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            ),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(
                response.head.fields.get(name).map(|it| it.to_str().unwrap()),
                Some(value),
                "{target}"
            );
        }
        let is_stored = target.starts_with("/object");
        assert_eq!(field(&response, CONTENT_DISPOSITION), is_stored.then_some("attachment"), "{target}");
        assert!(field(&response, CONTENT_SECURITY_POLICY).is_some_and(|policy| !policy.contains("unsafe")));
    }
}

#[test]
fn a_larder_that_sees_nothing_of_requests_says_so() {
    let metrics = Arc::new(Metrics::new(1, Vocabulary::default(), WallTime(0), "1.2.3"));
    let running = Running { health: Health::Ok, metrics, watch: None };
    let admin = Admin::new(Arc::new(running), Guard::default(), Clock::default());
    for target in ["/api/v1/requests", "/api/v1/events", "/api/v1/live"] {
        let answer = now(admin.asked(&head("GET", "127.0.0.1", target)));
        assert_eq!(answer.head.status, StatusCode::NOT_FOUND, "{target}");
        assert!(body(&answer).contains("\"error\":\"no-live\""), "{target}: {}", body(&answer));
    }
}
