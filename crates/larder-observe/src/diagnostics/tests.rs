//! Of the messages.
#![allow(clippy::unwrap_used)]

use super::line::MESSAGE_BYTES_MAX;
use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const LIMIT: Duration = Duration::from_secs(10);

fn said(act: impl FnOnce(&Diagnostics, &Clock)) -> String {
    let (sink, clock) = (Sink::default(), Clock::default());
    let diagnostics = Diagnostics::to(clock.clone(), sink.clone()).unwrap();
    act(&diagnostics, &clock);
    assert!(diagnostics.flush(LIMIT));
    let bytes = sink.0.lock().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn levels_are_words_before_the_message() {
    let text = said(|d, _| {
        d.info("a", "", "ready");
        d.warn("b", "", "odd");
        d.error("c", "", "bad");
    });
    assert_eq!(text, "larder: ready\nlarder: warning: odd\nlarder: error: bad\n");
}

#[test]
fn the_same_thing_is_said_once_in_ten_seconds_with_a_count() {
    let text = said(|d, clock| {
        for _ in 0..1000 {
            d.warn("origin", "app refused", "app: refused");
        }
        d.warn("origin", "app timeout", "app: timeout");
        clock.advance(EVERY);
        d.warn("origin", "app refused", "app: refused");
    });
    let expected = "larder: warning: app: refused\nlarder: warning: app: timeout\n\
                    larder: warning: app: refused (999 more since it was last said)\n";
    assert_eq!(text, expected);
}

#[test]
fn what_was_left_out_is_told_even_if_it_never_happens_again() {
    let text = said(|d, clock| {
        (0..3).for_each(|_| d.warn("origin", "app", "down"));
        clock.advance(EVERY);
    });
    assert_eq!(text, "larder: warning: down\nlarder: origin: app: 2 more\n");
}

#[test]
fn a_flood_of_different_things_is_bounded() {
    let text = said(|d, _| (0..5000).for_each(|i| d.warn("k", &i.to_string(), "x")));
    assert!(text.lines().count() <= THINGS_MAX + 1);
    assert!(text.contains("other messages were left out"), "{text}");
}

#[test]
fn a_message_is_one_line_of_bounded_length() {
    let text = said(|d, _| d.error("k", "", format!("a\nlarder: fake\x1b[2J\u{85}{}", "y".repeat(15_000))));
    assert_eq!(text.lines().count(), 1);
    assert!(text.starts_with("larder: error: a\\u{a}larder: fake\\u{1b}[2J\\u{85}yyy"), "{text}");
    assert!(text.len() < MESSAGE_BYTES_MAX + 100);
}

#[test]
fn nothing_is_written_by_the_silent_one() {
    let silent = Diagnostics::silent();
    silent.error("k", "", "x");
    assert!(silent.flush(Duration::ZERO));
}

#[test]
fn what_an_operator_asked_for_is_told_each_time_and_a_text_keeps_its_form() {
    let text = said(|d, _| {
        (0..2).for_each(|_| d.tell(Level::Info, "reloaded"));
        d.print("a.toml:1:1: wrong\n  hint: right");
    });
    assert_eq!(text, "larder: reloaded\nlarder: reloaded\na.toml:1:1: wrong\n  hint: right\n");
    let long = said(|d, _| d.print("a line of some length\n".repeat(15_000)));
    assert!(
        long.len() <= TEXT_BYTES_MAX + 4 && long.ends_with("a line of some length\n...\n"),
        "{}",
        long.len()
    );
}

/// Takes nothing until it is let go.
struct Stuck(std::sync::mpsc::Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stuck_target_makes_nobody_wait_and_what_finds_no_room_is_counted() {
    let (_let_go, held) = std::sync::mpsc::channel();
    let diagnostics = Diagnostics::to(Clock::default(), Stuck(held)).unwrap();
    let many = 2 * QUEUE_LINES as u64;
    (0..many).for_each(|i| diagnostics.tell(Level::Info, i));
    // One is in the writer's hands.
    let room = QUEUE_LINES as u64;
    assert!((many - room - 1..=many - room).contains(&diagnostics.dropped()), "{}", diagnostics.dropped());
    assert!(!diagnostics.flush(Duration::from_millis(1)));
}

#[test]
fn what_a_failing_target_does_not_take_is_counted() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let diagnostics = Diagnostics::to(Clock::default(), Full).unwrap();
    (0..3).for_each(|i| diagnostics.tell(Level::Info, i));
    assert!(diagnostics.flush(LIMIT));
    assert_eq!(diagnostics.dropped(), 3);
}

#[test]
fn a_panic_is_a_message_and_waits_for_nobody() {
    let sink = Sink::default();
    let diagnostics = Diagnostics::to(Clock::default(), sink.clone()).unwrap();
    let (_let_go, held) = std::sync::mpsc::channel();
    let stuck = Diagnostics::to(Clock::default(), Stuck(held)).unwrap();
    let before = std::panic::take_hook();
    for taking in [&stuck, &diagnostics] {
        taking.take_panics();
        let panics = std::thread::Builder::new().name("odd".into()).spawn(|| panic!("of a test"));
        assert!(panics.unwrap().join().is_err());
    }
    std::panic::set_hook(before);
    assert!(diagnostics.flush(LIMIT));
    let text = String::from_utf8(sink.0.lock().clone()).unwrap();
    assert!(text.starts_with("larder: error: thread odd panicked at "), "{text}");
    assert!(text.lines().next().unwrap().ends_with(": of a test"), "{text}");
}

#[test]
fn what_is_said_is_heard_once_and_without_its_level() {
    let (heard, clock) = (Arc::new(Mutex::new(Vec::new())), Clock::default());
    let diagnostics = Diagnostics::to(clock.clone(), Sink::default()).unwrap();
    let hearer = Arc::clone(&heard);
    diagnostics.hear(move |said| {
        hearer.lock().push((said.level, said.kind, said.subject.to_string(), said.message().to_owned()));
    });
    (0..3).for_each(|_| diagnostics.warn("origin", "app", "app: a\nb"));
    diagnostics.tell(Level::Error, "for the terminal");
    diagnostics.print("as it is");
    clock.advance(EVERY);
    diagnostics.warn("origin", "app", "app: a\nb");
    assert!(diagnostics.flush(LIMIT));
    let heard = heard.lock().clone();
    let expected = ["app: a\\u{a}b", "app: a\\u{a}b (2 more since it was last said)"];
    let expected = expected.map(|text| (Level::Warning, "origin", "app".to_owned(), text.to_owned()));
    assert_eq!(heard, expected);
}
