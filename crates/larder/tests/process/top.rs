//! `larder top` on a real terminal: its tabs, a purge, its ends, and larders that are older, go away or want a token.
//!
//! Where there is no tmux, these tests say so and do nothing.

use std::time::Duration;

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Origin};
use larder_testkit::tmux::Tmux;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::pidfd_send_signal;

use crate::process::log::{open_stream, stream};
use crate::support::{
    Process, Signal, answer_of, asking, cacheable, config, connect, script, with_admin, written,
};

/// Starts `larder top`, and waits for its first picture.
async fn top(tmux: &Tmux, admin: &str) {
    tmux.line(&format!("{} top --admin {admin}; echo code=$?", env!("CARGO_BIN_EXE_larder")));
    tmux.shows(&["1 overview  2 why"]).await;
}

fn origin() -> Origin {
    let cookie = answer_of(&["Set-Cookie: session=8f14e45fceea167a; HttpOnly"], 10);
    Origin::simple(vec![cacheable("/page*", 1000), script("/cookie", cookie)]).unwrap()
}

/// Asks again and again, until it is dropped.
struct Load(tokio::task::JoinHandle<()>);

impl Load {
    fn on(larder: &Process) -> Self {
        let addr = larder.addr;
        Self(tokio::spawn(async move {
            let mut client = connect(addr).await;
            loop {
                for target in ["/page1", "/cookie"] {
                    if client.exchange(&asking(target)).await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The status of what is stored under a URL of this host.
async fn stored(larder: &Process, target: &str) -> u16 {
    let path = format!("/object?url=http://localhost{target}");
    let request = Request::new("GET", &path, &larder.admin.to_string());
    connect(larder.admin).await.exchange(&request).await.unwrap().status
}

#[tokio::test]
async fn each_tab_shows_what_happens() {
    let Some(tmux) = Tmux::start() else { return };
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let load = Load::on(&larder);
    top(&tmux, &larder.admin.to_string()).await;
    tmux.shows(&["live", "% without the origin", "RESULT", "not-stored", "requests/s, 10 min", "app"]).await;
    for (key, what) in [
        ("2", &["uri-miss, not-stored", "set-cookie", "not stored", "(site)"][..]),
        ("3", &["HITS %", "set-cookie", "(site)"]),
        ("4", &["default", "memory", "FULL %"]),
        ("5", &["app", "1/1 up", &origin.url()]),
        ("6", &["memory", "asked", "localhost/cookie", "not-stored set-cookie"]),
        ("7", &["URL, BY REQUESTS"]),
        ("8", &["KIND", "nothing has happened"]),
        ("Tab", &["1 h AGO", "requests/s, 10 min"]),
        ("w", &["requests/s, 3 h"]),
        ("?", &["q, Ctrl-C       quit"]),
        ("Escape", &["RESULT"]),
        (" ", &["stopped: space goes on"]),
        (" ", &["live"]),
    ] {
        if key == "Tab" {
            tmux.key("h");
        }
        tmux.key(key);
        tmux.shows(what).await;
    }
    drop(load);
    larder.signal(Signal::HUP);
    tmux.key("8");
    tmux.shows(&["reload"]).await;
    tmux.key("q");
    tmux.ended(0).await;
}

#[tokio::test]
async fn a_purge_that_is_cancelled_changes_nothing_and_one_that_is_confirmed_removes() {
    let Some(tmux) = Tmux::start() else { return };
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let mut client = connect(larder.addr).await;
    for target in ["/page-kept", "/page-gone"] {
        assert_eq!(client.exchange(&asking(target)).await.unwrap().status, 200);
    }
    top(&tmux, &larder.admin.to_string()).await;
    tmux.key("6");
    tmux.shows(&["localhost/page-kept", "localhost/page-gone"]).await;
    tmux.key("/");
    tmux.typed("pth=/page-gone");
    tmux.key("Enter");
    tmux.shows(&["no field is named"]).await;
    tmux.key("C-u");
    tmux.typed("path=/page-gone");
    tmux.key("Enter");
    tmux.shows_no("localhost/page-kept").await;
    tmux.shows(&["localhost/page-gone", "/path=/page-gone"]).await;
    tmux.key("Enter");
    tmux.shows(&["1  Site and rule", "http://localhost/page-gone"]).await;
    tmux.key("Escape");
    tmux.shows_no("Site and rule").await;
    for key in ["n", "Escape", "Enter"] {
        tmux.key("d");
        tmux.shows(&["Purge this URL?", "1 response would go"]).await;
        tmux.key(key);
        tmux.shows_no("Purge this URL?").await;
        assert_eq!(stored(&larder, "/page-gone").await, 200, "{key}");
    }
    tmux.key("d");
    tmux.shows(&["1 response would go"]).await;
    tmux.key("y");
    tmux.shows(&["1 response removed: http://localhost/page-gone"]).await;
    assert_eq!((stored(&larder, "/page-gone").await, stored(&larder, "/page-kept").await), (404, 200));
    tmux.key("d");
    tmux.shows(&["nothing is stored under http://localhost/page-gone"]).await;
    tmux.key("C-c");
    tmux.ended(0).await;
}

#[tokio::test]
async fn a_token_that_may_only_look_cannot_purge() {
    let Some(tmux) = Tmux::start() else { return };
    let origin = origin();
    let keys = "token = \"all-of-it-0123456789\", view_token = \"only-looking-0123456789\"";
    let (_directory, path) = written(&with_admin(&config(&origin.url(), "", ""), keys));
    let larder = Process::run_config(&path).await;
    assert_eq!(connect(larder.addr).await.exchange(&asking("/page1")).await.unwrap().status, 200);
    top(&tmux, &format!("{} --token only-looking-0123456789", larder.admin)).await;
    tmux.key("6");
    tmux.shows(&["localhost/page1"]).await;
    tmux.key("d");
    tmux.shows(&["1 response would go"]).await;
    tmux.key("y");
    tmux.shows(&["view_token"]).await;
    tmux.key("d");
    tmux.shows(&["1 response would go"]).await;
    tmux.key("C-c");
    tmux.ended(0).await;
}

#[tokio::test]
async fn ctrl_z_gives_the_terminal_back_until_it_goes_on() {
    let Some(tmux) = Tmux::start() else { return };
    let larder = older(vec![open_stream("event: tick\ndata: {\"at\":1,\"values\":{\"requests\":7}}\n\n")]);
    top(&tmux, &larder.url()).await;
    tmux.shows(&["7.0/s"]).await;
    tmux.key("C-z");
    tmux.shows(&["Stopped"]).await;
    tmux.shows_no("7.0/s").await;
    assert_eq!(tmux.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(), "0 1");
    tmux.line("clear; fg; echo code=$?");
    tmux.shows(&["7.0/s", "1 overview"]).await;
    tmux.key("q");
    tmux.ended(0).await;
}

#[tokio::test]
async fn signals_end_it_and_the_terminal_is_as_it_was() {
    let Some(tmux) = Tmux::start() else { return };
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        top(&tmux, &larder.admin.to_string()).await;
        let modes = tmux.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(modes.trim(), "1 0");
        pidfd_send_signal(tmux.child(), signal).unwrap();
        tmux.ended(0).await;
    }
}

#[tokio::test]
async fn a_key_that_begins_a_sequence_does_not_stop_the_picture() {
    let Some(tmux) = Tmux::start() else { return };
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    top(&tmux, &larder.admin.to_string()).await;
    tmux.key("M-[");
    drop(larder);
    tmux.shows(&["no larder answers"]).await;
    pidfd_send_signal(tmux.child(), Signal::TERM).unwrap();
    tmux.ended(0).await;
}

#[tokio::test]
async fn it_ends_with_its_terminal() {
    let Some(tmux) = Tmux::start() else { return };
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    top(&tmux, &larder.admin.to_string()).await;
    let top = tmux.child();
    drop(tmux);
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&top, PollFlags::IN)], Some(&limit)), Ok(1));
}

/// The parts that a larder had before it had any figures over time.
fn older(live: Vec<Answer>) -> Origin {
    let json = ["Content-Type: application/json"];
    let stats = r#"{"health":"ok","version":"0.0.9","origins":[{"name":"shop","servers":[{"server":"http://a:1","state":"up"}]}]}"#;
    let not_found = r#"{"error":"not-found","message":"/ lists what is here"}"#;
    let mut scripts = vec![script("/stats", Answer::new(200, &json, stats))];
    let mut of_live = script("/api/v1/live?*", Answer::default());
    of_live.answer = live;
    scripts.push(of_live);
    scripts.push(script("/*", Answer::new(404, &json, not_found)));
    Origin::simple(scripts).unwrap()
}

#[tokio::test]
async fn an_older_larder_shows_what_it_has_and_what_it_has_not() {
    let Some(tmux) = Tmux::start() else { return };
    for refusal in [
        Answer::new(404, &[], "<h1>no</h1>"),
        Answer::new(
            400,
            &["Content-Type: application/json"],
            r#"{"error":"parameter","message":"there is no parameter tick"}"#,
        ),
    ] {
        let larder = older(vec![refusal]);
        top(&tmux, &larder.url()).await;
        tmux.shows(&["no live figures", "this larder is older", "0.0.9", "shop", "a:1"]).await;
        tmux.key("7");
        tmux.shows(&["this larder has no /api/v1/top"]).await;
        tmux.key("q");
        tmux.ended(0).await;
    }
}

#[tokio::test]
async fn an_outage_is_told_and_the_larder_that_is_back_is_shown() {
    let Some(tmux) = Tmux::start() else { return };
    let tick = |at: u32| format!("event: tick\ndata: {{\"at\":{at},\"values\":{{\"requests\":{at}}}}}\n\n");
    let mut larder = older(vec![open_stream(&tick(100)), stream(&tick(200)), open_stream(&tick(300))]);
    top(&tmux, &larder.url()).await;
    tmux.shows(&["live", "100/s"]).await;
    larder.stop().await;
    tmux.shows(&["figures of"]).await;
    larder.resume().unwrap();
    tmux.shows(&["300/s", "live"]).await;
    tmux.key("q");
    tmux.ended(0).await;
}

#[tokio::test]
async fn what_is_in_the_way_at_first_is_said_on_the_terminal_as_it_was() {
    let Some(tmux) = Tmux::start() else { return };
    let wrong = Origin::simple(vec![script("/stats", Answer::new(401, &[], "{}"))]).unwrap();
    let top = format!("{} top --admin {}", env!("CARGO_BIN_EXE_larder"), wrong.url());
    tmux.line(&format!("{top} --token x; echo code=$?"));
    tmux.shows(&["has another admin token"]).await;
    tmux.ended(1).await;
}

#[tokio::test]
async fn without_a_terminal_it_names_the_command_for_programs_and_asks_nothing() {
    let origin = origin();
    let mut top = Process::start(&["top", "--admin", &origin.url()]);
    assert_eq!(top.end().await, 2);
    assert!(top.stderr().iter().any(|line| line.contains("larder stats --json")), "{:?}", top.stderr());
    assert_eq!((top.stdout().len(), origin.log().count()), (0, 0));
}
