//! The demos as somebody at a terminal runs them: ended in the middle, kept for a browser, and busy until they are told to end.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::net::TcpStream;

use crate::support::{Process, Signal, get, until};

/// The address behind a word at the beginning of a line.
fn address(demo: &Process, word: &str) -> SocketAddr {
    let lines = demo.stdout();
    let line = lines.iter().find_map(|line| line.trim_start().strip_prefix(word)).unwrap();
    let (_, address) = line.split_once("http://").unwrap();
    address.split([' ', '/']).next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_demo_that_is_interrupted_ends_at_once_and_says_so() {
    for (demo, signal) in [(&["demo"][..], Signal::INT), (&["demo", "fragments"], Signal::TERM)] {
        let mut running = Process::start(demo);
        running.prints("  load  ").await;
        running.signal(signal);
        assert_eq!(running.end().await, 130, "{:?}", running.stderr());
        let said = running.stdout().join("\n");
        assert!(said.ends_with("\nEnded before both loads were over."), "{said}");
    }
}

#[tokio::test]
async fn the_page_of_fragments_stays_for_a_browser() {
    let mut demo = Process::start(&["demo", "fragments", "--stay", "--seconds", "1", "--clients", "1"]);
    demo.prints("Ctrl-C ends.").await;
    let pages = [get(address(&demo, "app "), "/").await, get(address(&demo, "larder "), "/").await];
    for page in &pages {
        assert_eq!(page.status, 200, "{page}");
        let text = String::from_utf8(page.body.clone()).unwrap();
        assert_eq!(text.matches("class=\"box\"").count(), 4, "{text}");
        assert!(text.contains("Hello, <b>stranger</b>") && !text.contains("esi:"), "{text}");
    }
    demo.signal(Signal::INT);
    assert_eq!(demo.end().await, 0, "{:?}", demo.stderr());
    let said = demo.stdout().join("\n");
    assert!(said.contains("renders of greeting, private"), "{said}");
}

/// Checks that nothing of a demo is left: its process is gone, and with it all that it listened on.
async fn nothing_is_left(demo: &Process, addresses: &[SocketAddr]) {
    assert!(!demo.is_running());
    for address in addresses {
        let refused = TcpStream::connect(address).await.expect_err("a demo that ended").kind();
        assert_eq!(refused, std::io::ErrorKind::ConnectionRefused, "{address}");
    }
}

async fn stats(admin: SocketAddr) -> Value {
    serde_json::from_slice(&get(admin, "/stats").await.body).unwrap()
}

#[tokio::test]
async fn a_busy_shop_shows_its_mistakes_in_its_figures_until_it_is_ended() {
    let mut demo = Process::start(&["demo", "--busy", "--admin", "127.0.0.1:0"]);
    demo.prints("Ctrl-C ends.").await;
    let (shop, admin) = (address(&demo, "shop "), address(&demo, "dashboard "));
    for command in ["top", "log"] {
        let line = format!("  larder {command} --admin {admin}");
        assert!(demo.stdout().contains(&line), "{line:?} in {:?}", demo.stdout());
    }
    until("all results and causes are there", async || {
        let stats = stats(admin).await;
        let all = |words: &str| {
            let rules = stats["rules"].as_array().into_iter().flatten();
            let counts = rules.filter_map(|rule| rule.pointer(words)?.as_u64());
            counts.sum::<u64>()
        };
        let waited = all("/results/stale") + all("/results/joined");
        let causes =
            ["set-session-cookie", "no-store", "private"].map(|word| all(&format!("/not_stored/{word}")));
        all("/results/memory") > 0 && all("/results/asked") > 0 && waited > 0 && !causes.contains(&0)
    })
    .await;
    demo.signal(Signal::TERM);
    assert_eq!(demo.end().await, 0, "{:?}", demo.stderr());
    assert!(demo.stdout().last().is_some_and(|line| line.starts_with("Ended after ")), "{:?}", demo.stdout());
    nothing_is_left(&demo, &[shop, admin]).await;
}

#[tokio::test]
async fn a_busy_shop_ends_by_itself_after_its_time() {
    let mut demo = Process::start(&["demo", "--busy", "--seconds", "3", "--admin", "127.0.0.1:0"]);
    assert_eq!(demo.end().await, 0, "{:?}", demo.stderr());
    let (shop, admin) = (address(&demo, "shop "), address(&demo, "dashboard "));
    nothing_is_left(&demo, &[shop, admin]).await;
    assert_eq!(demo.stderr(), Vec::<String>::new());
}

#[tokio::test]
async fn options_of_one_demo_are_refused_by_the_other() {
    for arguments in [
        &["demo", "--seconds", "21"][..],
        &["demo", "--rate", "100"],
        &["demo", "--admin", "127.0.0.1:0"],
        &["demo", "--busy", "--stay"],
        &["demo", "--busy", "--clients", "3"],
        &["demo", "--busy", "--rate", "5001"],
        &["demo", "--busy", "fragments"],
    ] {
        let mut demo = Process::start(arguments);
        assert_eq!(demo.end().await, 2, "{arguments:?}: {:?}", demo.stderr());
        assert_eq!(demo.stdout(), Vec::<String>::new(), "{arguments:?}");
    }
}
