//! Who is let in at the admin address: the forms of `[admin]` in a config, and what tokens and names do over a socket.

use larder_testkit::client::{Request, Response};

use crate::support::{Process, asking, config, connect, with_admin, written};

#[tokio::test]
async fn check_says_what_is_wrong_with_the_admin_address_and_what_to_do() {
    const SITE: &str = "[[site]]\nroot = \".\"\n";
    let cases = [
        ("admin = false", 0, ""),
        ("admin = { address = \"127.0.0.1:0\", token = \"0123456789abcdef\" }", 0, ""),
        (
            "admin_token = \"0123456789abcdef\"",
            3,
            "larder.toml:1:1: admin_token: the key has moved\n  hint: write token in [admin]",
        ),
        (
            "admin = \"0.0.0.0:8081\"",
            3,
            "larder.toml:1:9: admin: 0.0.0.0:8081 can be reached from other machines, and there is no token",
        ),
        (
            "[admin]\naddress = \"0.0.0.0:8081\"\ntoken = \"0123456789abcdef\"",
            0,
            "reach it by `ssh -L 8081:127.0.0.1:8081 HOST`, or by a site of this larder behind TLS",
        ),
        (
            "[admin]\nview_token = \"0123456789abcdef\"",
            3,
            "larder.toml:2:14: admin.view_token: it stands alone",
        ),
    ];
    for (admin, code, part) in cases {
        let (_directory, path) = written(&format!("{admin}\n{SITE}"));
        let mut check = Process::start(&["check", "-c", path.to_str().unwrap()]);
        let ended = check.end().await;
        let stderr = check.stderr().join("\n");
        assert_eq!(ended, code, "{admin}: {stderr}");
        assert!(stderr.contains(part) && stderr.is_empty() == part.is_empty(), "{admin}: {stderr}");
    }
}

const TOKEN: &str = "s3cret-and-long-enough";
const VIEW_TOKEN: &str = "l00k-only-and-long-enough";

async fn guarded() -> (Process, tempfile::TempDir) {
    let keys = format!("token = \"{TOKEN}\", view_token = \"{VIEW_TOKEN}\", hosts = [\"cache1.internal\"]");
    let (directory, path) = written(&with_admin(&config("http://127.0.0.1:1", "", ""), &keys));
    (Process::run_config(&path).await, directory)
}

async fn asked(larder: &Process, request: Request, token: Option<&str>) -> Response {
    let request = match token {
        Some(token) => request.field("Authorization", &format!("Bearer {token}")),
        None => request,
    };
    connect(larder.admin).await.exchange(&request).await.unwrap()
}

#[tokio::test]
async fn a_token_to_look_looks_and_does_not_purge() {
    let (larder, _directory) = guarded().await;
    let purge = || {
        Request::new("POST", "/api/v1/purges", "localhost")
            .field("Content-Type", "application/json")
            .body("{\"all\": true}")
    };
    for (token, looks, purges) in
        [(None, 401, 401), (Some("other"), 401, 401), (Some(VIEW_TOKEN), 200, 403), (Some(TOKEN), 200, 200)]
    {
        assert_eq!(asked(&larder, asking("/metrics"), token).await.status, looks, "{token:?}");
        let answer = asked(&larder, purge(), token).await;
        assert_eq!(answer.status, purges, "{token:?}: {answer}");
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(said.contains("view_token may look and explain, but not purge"), purges == 403, "{said}");
    }
    let mut rm = Process::start(&[
        "rm",
        "http://localhost/a",
        "--admin",
        &larder.admin.to_string(),
        "--token",
        VIEW_TOKEN,
    ]);
    assert_eq!(rm.end().await, 1);
    assert!(rm.stderr().join("\n").contains("view_token may look and explain"), "{:?}", rm.stderr());
}

#[tokio::test]
async fn wrong_tokens_are_slowed_down_and_the_right_one_passes() {
    let (larder, _directory) = guarded().await;
    for _ in 0..10 {
        assert_eq!(asked(&larder, asking("/stats"), Some("guess")).await.status, 401);
    }
    let answer = asked(&larder, asking("/stats"), Some("guess")).await;
    assert_eq!(answer.status, 429, "{answer}");
    let wait: u64 = answer.fields.first("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{answer}");
    assert_eq!(asked(&larder, asking("/stats"), None).await.status, 401);
    let metrics = asked(&larder, asking("/metrics"), Some(VIEW_TOKEN)).await;
    assert_eq!(metrics.status, 200);
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(text.contains("larder_admin_refused_total{reason=\"wrong-tokens\"} 1\n"), "{text}");
    assert_eq!(asked(&larder, asking("/stats"), Some(TOKEN)).await.status, 200);
}

#[tokio::test]
async fn names_of_the_config_are_answered_and_others_are_not() {
    let (larder, _directory) = guarded().await;
    for (host, status) in [("cache1.internal", 200), ("cache2.internal", 421), ("localhost", 200)] {
        for target in ["/", "/healthz"] {
            let request = Request { host: Some(host.to_owned()), ..asking(target) };
            assert_eq!(asked(&larder, request, None).await.status, status, "{host} {target}");
        }
    }
}
