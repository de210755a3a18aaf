//! Every endpoint, and every way to be refused.

mod admitted;

use super::*;
use crate::guard::Token;
use crate::larder::{
    Answering, Explaining, Fault, ListQuestion, ObjectQuestion, Purging, Question, Unanswered, Unexplained,
};
use crate::purges::question::{NotPurged, PurgeQuestion, PurgeReceipt};
use crate::stats::Stats;
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, Version};
use larder_cache::purge::Selector;
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::{Peer, Scheme};
use larder_http::target::Target;
use larder_http::time::WallTime;
use larder_observe::tap::Tap;
use larder_observe::watch::{Watch, WatchSettings};
use larder_observe::{Metrics, Vocabulary};

struct Running {
    health: Health,
    metrics: Arc<Metrics>,
    watch: Option<Watch>,
}

impl Larder for Running {
    fn health(&self) -> Health {
        self.health
    }

    fn expose(&self, out: &mut Exposition) {
        self.metrics.expose(out);
    }

    fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    fn stats(&self) -> Stats {
        Stats::of(&self.metrics.snapshot(), self.health, WallTime(0))
    }

    fn explain(&self, question: Question) -> Explaining {
        let told = match question.url.as_str() {
            "http://a/" => Ok(Bytes::from(format!("[\"{}\"]", question.method))),
            "http://silent/" => return Box::pin(std::future::pending()),
            url => Err(Unexplained { token: "url", message: format!("\"{url}\" is none") }),
        };
        Box::pin(std::future::ready(told))
    }

    fn list(&self, question: ListQuestion) -> Answering<Bytes> {
        if question.prefix == "slow" {
            return Box::pin(std::future::pending());
        }
        let told = format!("[\"{}\", {}]", question.prefix, question.limit);
        Box::pin(std::future::ready(Ok(told.into())))
    }

    fn object(&self, question: ObjectQuestion) -> Answering<Shown> {
        let told = match (question.url.as_str(), question.body) {
            ("http://a/", None) => Ok(Shown::Json("{}".into())),
            ("http://a/", Some(1)) => Ok(Shown::Body(Body::from("<script>"))),
            ("http://a/", _) => Err(unanswered(Fault::Absent, "not-stored")),
            _ => Err(unanswered(Fault::Asker, "url")),
        };
        Box::pin(std::future::ready(told))
    }

    fn purge(&self, question: PurgeQuestion) -> Purging {
        let receipt = PurgeReceipt { id: "1".into(), removed: 2, json: "{\"id\": \"1\"}".into() };
        let made = match question.selectors.first() {
            Some(Selector::Host(_)) => Err(NotPurged::Wrong(vec![(0, "no".to_owned())])),
            Some(Selector::All) => Err(NotPurged::NotHeld { receipt, why: "a disk".to_owned() }),
            _ => Ok(receipt),
        };
        Box::pin(std::future::ready(made))
    }

    fn about(&self, may_change: bool) -> Bytes {
        format!("{{\"may_change\": {may_change}}}").into()
    }

    fn renew_certificate(&self, name: &str) -> bool {
        name == "known.example"
    }

    fn certificates(&self) -> Bytes {
        "{\"certificates\": []}".into()
    }

    fn config(&self) -> Answering<Bytes> {
        Box::pin(std::future::ready(Ok("{\"file\": null}".into())))
    }

    fn fleet(&self) -> Option<Bytes> {
        None
    }

    fn purges(&self) -> Bytes {
        "[]".into()
    }

    fn purge_of(&self, id: &str) -> Option<Bytes> {
        (id == "1").then(|| "{}".into())
    }

    fn remove(&self, url: String) -> Answering<PurgeReceipt> {
        let receipt = PurgeReceipt { id: "2".into(), removed: 1, json: "{\"removed\": 1}".into() };
        let told = match url.as_str() {
            "http://a/" => Ok(receipt),
            "http://disk/" => {
                let receipt = Some(Box::new(receipt));
                Err(Unanswered { receipt, ..unanswered(Fault::Store, "not-durable") })
            }
            _ => Err(unanswered(Fault::Store, "not-durable")),
        };
        Box::pin(std::future::ready(told))
    }
}

fn unanswered(fault: Fault, token: &'static str) -> Unanswered {
    Unanswered { fault, token, message: "it is told".to_owned(), receipt: None }
}

fn admin(health: Health, token: Option<&str>) -> Admin {
    let token = token.map(|token| Token::parse(token).unwrap());
    guarded(health, Guard { token, ..Guard::default() }, Clock::default())
}

fn guarded(health: Health, guard: Guard, clock: Clock) -> Admin {
    let metrics = Arc::new(Metrics::new(1, Vocabulary::default(), WallTime(0), "1.2.3"));
    let watch = Watch::new(Arc::clone(&metrics), Arc::new(Tap::off()), WatchSettings::default());
    Admin::new(Arc::new(Running { health, metrics, watch: Some(watch) }), guard, clock)
}

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

impl Admin {
    /// The answer to a request without content.
    async fn asked(&self, head: &RequestHead) -> Response {
        self.answer(head, LOCAL, &mut Body::Empty).await
    }
}

fn head(method: &str, host: &str, target: &str) -> RequestHead {
    RequestHead {
        method: method.parse().unwrap(),
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::copy_from_slice(host.as_bytes()), Scheme::Http).unwrap(),
        target: match target {
            "*" => Target::asterisk(),
            target => Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap(),
        },
        version: Version::HTTP_11,
        fields: HeaderMap::new(),
    }
}

/// Nothing in these tests waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

fn body(response: &Response) -> String {
    match &response.body {
        Body::Full(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn field(response: &Response, name: http::HeaderName) -> Option<&str> {
    response.head.field(&name).map(|value| value.to_str().unwrap())
}

#[test]
fn each_request_gets_the_answer_of_its_endpoint() {
    let admin = admin(Health::Ok, None);
    let cases = [
        ("GET", "127.0.0.1:8081", "/healthz", 200, "text/plain; charset=utf-8", "ok"),
        ("HEAD", "127.0.0.1:8081", "/healthz", 200, "text/plain; charset=utf-8", "ok"),
        ("GET", "localhost:8081", "/healthz?x=1", 200, "text/plain; charset=utf-8", "ok"),
        (
            "GET",
            "[::1]:8081",
            "/metrics",
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            "larder_build_info",
        ),
        ("GET", "127.0.0.1:8081", "/stats", 200, "application/json", "\"version\": \"1.2.3\""),
        ("GET", "127.0.0.1:8081", "/api/v1/about", 200, "application/json", "{\"may_change\": true}"),
        ("GET", "127.0.0.1:8081", "/api/v1/config", 200, "application/json", "{\"file\": null}"),
        ("GET", "127.0.0.1:8081", "/api/v1/certificates", 200, "application/json", "{\"certificates\": []}"),
        ("POST", "127.0.0.1:8081", "/api/v1/certificates?name=a", 403, "application/json", "\"change\""),
        ("GET", "127.0.0.1:8081", "/api/v1/config?x=1", 400, "application/json", "\"parameter\""),
        ("GET", "127.0.0.1:8081", "/explain?url=http://a/", 200, "application/json", "[\"GET\"]"),
        ("GET", "127.0.0.1:8081", "/explain?url=x%22", 422, "application/json", "\\\"x\\\"\\\" is none"),
        ("GET", "127.0.0.1:8081", "/explain", 400, "application/json", "\"query\""),
        ("POST", "127.0.0.1:8081", "/explain?url=x", 405, "application/json", "\"method\""),
        ("GET", "evil.example:8081", "/explain?url=x", 421, "application/json", "\"host\""),
        ("GET", "127.0.0.1:8081", "/objects", 200, "application/json", "[\"\", 100]"),
        ("GET", "127.0.0.1:8081", "/objects?prefix=a&limit=7", 200, "application/json", "[\"a\", 7]"),
        ("GET", "127.0.0.1:8081", "/objects?limit=0", 400, "application/json", "\"query\""),
        ("DELETE", "127.0.0.1:8081", "/objects", 405, "application/json", "\"method\""),
        ("GET", "127.0.0.1:8081", "/object?url=http://a/", 200, "application/json", "{}"),
        (
            "GET",
            "127.0.0.1:8081",
            "/object?url=http://a/&body=1",
            200,
            "application/octet-stream",
            "<script>",
        ),
        ("GET", "127.0.0.1:8081", "/object?url=http://a/&body=2", 404, "application/json", "\"not-stored\""),
        ("GET", "127.0.0.1:8081", "/object?url=x", 400, "application/json", "it is told"),
        ("GET", "127.0.0.1:8081", "/object", 400, "application/json", "\"query\""),
        ("DELETE", "127.0.0.1:8081", "/object?url=http://a/", 200, "application/json", "\"removed\": 1"),
        ("DELETE", "127.0.0.1:8081", "/object?url=http://b/", 500, "application/json", "\"not-durable\""),
        ("DELETE", "127.0.0.1:8081", "/object?url=http://a/&body=1", 400, "application/json", "\"query\""),
        ("DELETE", "evil.example:8081", "/object?url=http://a/", 421, "application/json", "\"host\""),
        ("POST", "127.0.0.1:8081", "/object?url=http://a/", 405, "application/json", "\"method\""),
        ("GET", "127.0.0.1:8081", "/", 200, "text/plain; charset=utf-8", "/metrics"),
        ("GET", "127.0.0.1:8081", "/nothing", 404, "application/json", "\"not-found\""),
        ("GET", "127.0.0.1:8081", "/healthz/", 404, "application/json", "\"not-found\""),
        ("POST", "127.0.0.1:8081", "/nothing", 404, "application/json", "\"not-found\""),
        ("POST", "127.0.0.1:8081", "/healthz", 405, "application/json", "\"method\""),
        ("OPTIONS", "127.0.0.1:8081", "/stats", 405, "application/json", "\"method\""),
        ("OPTIONS", "127.0.0.1:8081", "*", 404, "application/json", "\"not-found\""),
        ("GET", "evil.example:8081", "/stats", 421, "application/json", "\"host\""),
        ("GET", "evil.example:8081", "/healthz", 421, "application/json", "\"host\""),
    ];
    for (method, host, target, status, form, part) in cases {
        let response = now(admin.asked(&head(method, host, target)));
        let name = format!("{method} {host}{target}");
        assert_eq!(response.head.status, status, "{name}");
        assert_eq!(field(&response, CONTENT_TYPE), Some(form), "{name}");
        assert_eq!(field(&response, CACHE_CONTROL), Some("no-store"), "{name}");
        assert_eq!(field(&response, ALLOW).is_some(), status == 405, "{name}");
        assert!(body(&response).contains(part), "{name}");
        assert!(
            !response.head.fields.keys().any(|name| name.as_str().starts_with("access-control")),
            "{name}"
        );
    }
}

#[test]
fn draining_is_503() {
    let response = now(admin(Health::Draining, None).asked(&head("GET", "127.0.0.1", "/healthz")));
    assert_eq!(
        (response.head.status, body(&response).as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    );
}

#[test]
fn without_the_token_nothing_but_health_and_what_there_is_is_told() {
    let admin = admin(Health::Ok, Some("s3cret"));
    for (method, target, without, with) in [
        ("GET", "/healthz", 200, 200),
        ("GET", "/metrics", 401, 200),
        ("GET", "/stats", 401, 200),
        ("GET", "/explain?url=http://a/", 401, 200),
        ("GET", "/objects", 401, 200),
        ("GET", "/object?url=http://a/&body=1", 401, 200),
        ("DELETE", "/object?url=http://a/", 401, 200),
        ("GET", "/", 200, 200),
        ("GET", "/nothing", 401, 404),
        ("POST", "/stats", 401, 405),
    ] {
        let mut head = head(method, "127.0.0.1", target);
        let response = now(admin.asked(&head));
        assert_eq!(response.head.status, without, "{method} {target}");
        assert_eq!(field(&response, WWW_AUTHENTICATE).is_some(), without == 401, "{method} {target}");
        head.fields.insert(AUTHORIZATION, "Bearer s3cret".parse().unwrap());
        assert_eq!(now(admin.asked(&head)).head.status, with, "{method} {target} with token");
    }
}

#[test]
fn a_request_with_content_ends_its_connection() {
    let admin = admin(Health::Ok, None);
    for (content, close) in [(Body::Empty, false), (Body::from("x"), true)] {
        let address = "127.0.0.1:1".parse().unwrap();
        let request = Request {
            head: head("GET", "127.0.0.1", "/healthz"),
            body: content,
            websocket: false,
            trailers: Default::default(),
            peer: Peer::clear(address, address),
        };
        let interims = Interims::default();
        assert_eq!(now(admin.call(request, &interims)).0.close, close);
    }
}

#[test]
fn a_page_of_another_site_has_nothing_explained_listed_or_taken_out() {
    let admin = admin(Health::Ok, None);
    for (site, explained, shown) in [("none", 200, 200), ("same-origin", 200, 200), ("cross-site", 403, 200)]
    {
        for (method, target, status) in [
            ("GET", "/explain?url=http://a/", explained),
            ("GET", "/objects", explained),
            ("GET", "/object?url=http://a/", explained),
            ("DELETE", "/object?url=http://a/", explained),
            ("GET", "/stats", shown),
        ] {
            let mut head = head(method, "127.0.0.1", target);
            head.fields.insert("sec-fetch-site", site.parse().unwrap());
            assert_eq!(now(admin.asked(&head)).head.status, status, "{site} {method} {target}");
        }
    }
}

#[test]
fn explanations_that_wait_for_an_origin_leave_room_for_everything_else() {
    let admin = admin(Health::Ok, None);
    let silent = head("GET", "127.0.0.1", "/explain?url=http://silent/");
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut waiting: Vec<_> = (0..EXPLANATIONS_MAX).map(|_| Box::pin(admin.asked(&silent))).collect();
    assert!(waiting.iter_mut().all(|answer| answer.as_mut().poll(&mut cx).is_pending()));
    let asked = head("GET", "127.0.0.1", "/explain?url=http://a/");
    assert_eq!(now(admin.asked(&asked)).head.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(now(admin.asked(&head("GET", "127.0.0.1", "/healthz"))).head.status, StatusCode::OK);
    waiting.pop();
    assert_eq!(now(admin.asked(&asked)).head.status, StatusCode::OK, "its place is given back");
}

#[test]
fn looks_that_wait_for_a_disk_leave_room_for_everything_else() {
    let admin = admin(Health::Ok, None);
    let slow = head("GET", "127.0.0.1", "/objects?prefix=slow");
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut waiting: Vec<_> = (0..LOOKS_MAX).map(|_| Box::pin(admin.asked(&slow))).collect();
    assert!(waiting.iter_mut().all(|answer| answer.as_mut().poll(&mut cx).is_pending()));
    let status = |method, target| now(admin.asked(&head(method, "127.0.0.1", target))).head.status;
    assert_eq!(status("GET", "/objects"), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status("GET", "/object?url=http://a/"), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status("DELETE", "/object?url=http://a/"), StatusCode::OK, "a purge has room always");
    assert_eq!(status("GET", "/explain?url=http://a/"), StatusCode::OK);
    waiting.pop();
    assert_eq!(status("GET", "/objects"), StatusCode::OK, "its place is given back");
}

#[test]
fn purges_are_answered_in_the_form_of_who_asks() {
    let admin = admin(Health::Ok, None);
    let asked = |target: &str, fields: &[(&'static str, &'static str)], content: &'static str| {
        let mut head = head("POST", "127.0.0.1", target);
        head.fields.extend(fields.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        }));
        let response = now(admin.answer(&head, LOCAL, &mut Body::from(content)));
        let Body::Full(body) = response.body else { panic!("a short answer") };
        (response.head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
    };
    let json = [("content-type", "application/json")];
    let own = "/api/v1/purges";
    assert_eq!(asked(own, &json, "{\"tags\": [\"a\"]}"), (200, "{\"id\": \"1\"}".to_owned()));
    assert_eq!(asked(own, &json, "{\"all\": true}").0, 503);
    let wrong = asked(own, &json, "{\"hosts\": [\"a\"]}");
    assert_eq!(wrong.0, 400);
    assert!(wrong.1.contains("hosts[0]"), "{}", wrong.1);
    assert_eq!(asked(own, &[], "{\"tags\": [\"a\"]}").0, 403, "a form of another site could send it");
    let key = [("fastly-key", "x")];
    let one = asked("/service/all/purge/a", &key, "");
    assert_eq!(one, (200, "{\"id\":\"1\",\"status\":\"ok\"}".to_owned()));
    let zone = asked("/client/v4/zones/all/purge_cache", &json, "{\"tags\": [\"a\"]}");
    assert!(zone.0 == 200 && zone.1.contains("\"success\":true"), "{zone:?}");
    let get = |target: &str| now(admin.asked(&head("GET", "127.0.0.1", target))).head.status.as_u16();
    assert_eq!([get(own), get("/api/v1/purges/1"), get("/api/v1/purges/2")], [200, 200, 404]);
    assert_eq!(get("/service/all/purge/a"), 405);
}

#[test]
fn every_answer_to_a_purge_that_was_made_names_it() {
    let admin = admin(Health::Ok, None);
    let receipt = |method: &str, target: &str, content: &'static str| {
        let mut head = head(method, "127.0.0.1", target);
        head.fields.insert(CONTENT_TYPE, "application/json".parse().unwrap());
        let response = now(admin.answer(&head, LOCAL, &mut Body::from(content)));
        let receipt =
            response.head.fields.get("larder-receipt").map(|value| value.to_str().unwrap().to_owned());
        (response.head.status.as_u16(), receipt)
    };
    let own = "/api/v1/purges";
    let made = Some("1; removed=2".to_owned());
    assert_eq!(receipt("POST", own, "{\"tags\": [\"a\"]}"), (200, made.clone()));
    assert_eq!(receipt("POST", own, "{\"all\": true}"), (503, made.clone()), "it is in force");
    assert_eq!(receipt("POST", own, "{\"hosts\": [\"a\"]}"), (400, None), "nothing was purged");
    assert_eq!(receipt("POST", "/service/all/purge/a", ""), (200, made.clone()));
    assert_eq!(receipt("POST", "/client/v4/zones/all/purge_cache", "{\"tags\": [\"a\"]}"), (200, made));
    let removed = Some("2; removed=1".to_owned());
    assert_eq!(receipt("DELETE", "/object?url=http://a/", ""), (200, removed.clone()));
    assert_eq!(receipt("DELETE", "/object?url=http://disk/", ""), (500, removed));
    assert_eq!(receipt("DELETE", "/object?url=http://other/", ""), (500, None));
}
