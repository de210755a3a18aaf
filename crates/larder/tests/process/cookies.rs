//! Cookies that may be somebody's, from an operator's side: what `check`, `explain`, `ls` and `get` say of them, and that
//! no restart brings one back.

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Origin, PathScript};
use serde_json::Value;

use super::keeping::{lines, run, said, stored, text};
use crate::support::{Process, Signal, asking, cache_status, config, connect, get, script, until, written};

fn express() -> PathScript {
    let lines = [
        "Cache-Control: public, max-age=3600",
        "Set-Cookie: connect.sid=s%3Avictim.sig; Path=/; HttpOnly",
        "Set-Cookie: lang=de",
    ];
    let fields = lines.iter().map(|line| (*line).to_owned()).collect();
    script("/app.js", Answer { fields, body: Some("hello".to_owned()), ..Answer::default() })
}

fn plain(path: &str, lines: &[&str]) -> PathScript {
    let fields = lines.iter().map(|line| (*line).to_owned()).collect();
    script(path, Answer { fields, body: Some("hello".to_owned()), ..Answer::default() })
}

async fn with_cookie(larder: &Process, target: &str, cookie: &str) -> larder_testkit::client::Response {
    let request: Request = asking(target).field("Cookie", cookie);
    connect(larder.addr).await.exchange(&request).await.unwrap()
}

/// Nothing of the first client's session, whoever asks.
async fn gives_no_session_out(larder: &Process) {
    for _ in 0..3 {
        let hit = get(larder.addr, "/app.js").await;
        assert!(cache_status(&hit).contains("; hit"), "{hit}");
        assert_eq!(hit.fields.all("set-cookie").collect::<Vec<_>>(), ["lang=de"], "{hit}");
    }
}

#[tokio::test]
async fn no_restart_brings_a_session_back_and_each_tool_names_it() {
    for store in ["", "disks = [{ path = \"d1\", size = \"16MiB\" }]\n", "files = \"pages\"\n"] {
        let origin = Origin::simple(vec![express()]).unwrap();
        let stores = format!("[stores.default]\nmemory = \"8MiB\"\n{store}");
        let (_directory, path) = written(&config(&origin.url(), "workers = 2", &stores));
        let mut larder = Process::run_config(&path).await;
        let own = get(larder.addr, "/app.js").await;
        assert!(own.fields.all("set-cookie").any(|line| line.contains("victim")), "{own}");
        assert!(
            cache_status(&own).contains("; stored; ")
                && cache_status(&own).contains("; detail=cookies-withheld")
        );
        stored(&larder, "/app.js").await;
        gives_no_session_out(&larder).await;
        let named = |value: &Value| {
            assert_eq!(value["cookies"], Value::from(vec!["lang"]), "{value}");
            assert_eq!(value["cookies_withheld"], Value::from(vec!["connect.sid"]), "{value}");
        };
        named(&lines(&larder, &["ls"]).await[0]);
        let head = text(&larder, &["get", "--head", "http://localhost/app.js"]).await;
        assert!(
            head.contains("sets the cookies lang") && head.contains("without the cookies connect.sid"),
            "{head}"
        );
        let asked = ["explain", "http://localhost/app.js"];
        named(
            &serde_json::from_str::<Value>(&text(&larder, &[&asked[..], &["--json"]].concat()).await)
                .unwrap()["stored"]["responses"][0],
        );
        let told = text(&larder, &asked).await;
        assert!(told.contains("the cookies connect.sid: their clients alone were sent them"), "{told}");
        if store.is_empty() {
            continue;
        }
        until("it is on the disk", async || {
            let listed = lines(&larder, &["ls"]).await;
            listed.iter().any(|one| one["places"] != Value::from(vec!["memory"]))
        })
        .await;
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
        let again = Process::run_config(&path).await;
        gives_no_session_out(&again).await;
        named(&lines(&again, &["ls"]).await[0]);
        assert_eq!(origin.log().count(), 1, "{}", origin.log());
    }
}

#[tokio::test]
async fn explain_names_the_cookie_that_decided() {
    let origin = Origin::simple(vec![
        plain("/page", &[]),
        plain("/sets", &["Cache-Control: max-age=60", "Set-Cookie: seen=a1b2"]),
        plain("/hidden", &["Cache-Control: max-age=60", "Set-Cookie: a=b; HttpOnly"]),
    ])
    .unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", "ttl = \"60s\"\n"));
    let larder = Process::run_config(&path).await;
    let why = async |target: &str, cookie: &str| {
        let field = format!("Cookie: {cookie}");
        let url = format!("http://localhost{target}");
        text(&larder, &["explain", &url, "-H", &field]).await.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = why("/page", "_ga=1; fe_typo_user=x; theme=dark").await;
    assert!(told.contains("The cookie is \"fe_typo_user\".") && told.contains("harmless_cookies"), "{told}");
    let told = why("/sets", "_ga=1").await;
    assert!(told.contains("The cookie is \"seen\": its value could tell people apart."), "{told}");
    let told = why("/hidden", "_ga=1").await;
    assert!(told.contains("The cookie is \"a\": it is HttpOnly."), "{told}");
    // Once others have it stored, the same cookie keeps a request from it.
    stored(&larder, "/page").await;
    let told = why("/page", "_ga=1; fe_typo_user=x").await;
    assert!(told.contains("The cookie is \"fe_typo_user\"."), "{told}");
    let hit = with_cookie(&larder, "/page", "_ga=1; CookieConsent=x").await;
    assert!(cache_status(&hit).contains("; hit"), "{hit}");
    let passed = with_cookie(&larder, "/page", "_ga=1; user=x").await;
    assert!(cache_status(&passed).contains("detail=session-cookie"), "{passed}");
}

#[tokio::test]
async fn check_says_which_cookies_stop_a_ttl_and_warns_of_shared_ones() {
    let site = "set_cookie = \"store\"\n[[site.rule]]\npath = \"/blog/*\"\nttl = \"10s\"\n";
    let (_directory, path) = written(&config("http://127.0.0.1:1", "", site));
    let path = path.to_str().unwrap();
    let checked = run(&["check", "-c", path]).await;
    assert!(checked.status.success());
    let (out, err) = (said(&checked.stdout), said(&checked.stderr));
    let note = "site[0].rule[0].ttl: every cookie keeps a request from it, but those of analytics, advertising and consent";
    assert!(out.contains(note) && out.contains("larder.toml: ok\n"), "{out}");
    assert!(err.contains("site[0].set_cookie: cookies that one client is sent are stored here"), "{err}");
    let larder = Process::run_config(std::path::Path::new(path)).await;
    larder.says("site[0].set_cookie: cookies that one client is sent are stored here").await;
}
