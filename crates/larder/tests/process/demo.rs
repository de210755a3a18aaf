//! The demos as somebody at a terminal runs them: ended in the middle, and kept for a browser.

use crate::support::{Process, Signal, get};

/// The address behind a word at the beginning of a line.
fn address(demo: &Process, word: &str) -> std::net::SocketAddr {
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
