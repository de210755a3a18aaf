//! `larder log`: what it asks for, what it prints as it comes, how it goes on after an outage, and how it ends.
//!
//! A scripted server stands for the admin address, but for the last test: there it is larder's own.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use larder_testkit::origin::{Answer, BodyFraming, Hold, Origin};

use crate::support::{
    Process, Signal, answer_of, asking, cacheable, config, connect, script, within, written,
};

const LIVE: &str = "/api/v1/live?*";
const SAMPLE: &str =
    "larder: this is a sample, at most 100 requests a second and one hit in 64: --all shows every request";

/// `larder log` that asks `origin`.
fn log(origin: &Origin, arguments: &[&str]) -> Process {
    Process::spawn(command(origin, arguments), None)
}

fn command(origin: &Origin, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("log").args(arguments).args(["--admin", &origin.url()]);
    command.env_remove("LARDER_ADMIN").env_remove("LARDER_ADMIN_TOKEN");
    command
}

/// A stream that ends with its connection.
pub(super) fn stream(body: &str) -> Answer {
    let fields = ["Content-Type: text/event-stream"];
    Answer { framing: Some(BodyFraming::UntilClose), ..Answer::new(200, &fields, body) }
}

/// One that stays open behind `body`, until the gate `end` is released.
pub(super) fn open_stream(body: &str) -> Answer {
    let holds = vec![Hold { at: body.len() as u64, gate: "end".to_owned() }];
    Answer { holds, ..stream(body) }
}

fn request(path: &str) -> String {
    format!(
        "event: request\ndata: {{\"at\":1764252131.482,\"weight\":1,\"method\":\"GET\",\"host\":\"a.example\",\"path\":\"{path}\",\
         \"result\":\"memory\",\"status\":200,\"time\":0.183,\"wait\":0.012}}\n\n"
    )
}

fn line(path: &str) -> String {
    format!("14:02:11.482 GET a.example {path}  200  memory  183 ms")
}

fn origin(answers: Vec<Answer>) -> Origin {
    let mut script = script(LIVE, Answer::default());
    script.answer = answers;
    Origin::simple(vec![script]).unwrap()
}

fn targets(origin: &Origin) -> Vec<String> {
    origin.log().all().into_iter().map(|seen| seen.target).collect()
}

#[tokio::test]
async fn each_line_is_printed_as_it_comes_and_n_ends_it() {
    let first = format!(": hello\n\n{}", request("/1"));
    let event = "event: event\ndata: {\"at\":1.5,\"kind\":\"reload\",\"text\":\"2 sites\"}\n\n";
    let skipped = "event: skipped\ndata: {\"skipped\":312}\n\n";
    let body = format!("{first}{event}{skipped}{}{}", request("/2"), request("/3"));
    let holds = vec![Hold { at: first.len() as u64, gate: "rest".to_owned() }];
    let origin = origin(vec![Answer { holds, ..stream(&body) }]);
    let mut log = log(&origin, &["host=a.example", "--steps", "-n", "2"]);
    log.prints(&line("/1")).await;
    log.prints("   waited 12 ms").await;
    assert!(log.is_running());
    origin.gates().release("rest");
    assert_eq!(log.end().await, 0, "{:?}", log.stderr());
    let steps = "   waited 12 ms".to_owned();
    let expected = [line("/1"), steps.clone(), "00:00:01.500 reload  2 sites".to_owned(), line("/2"), steps];
    assert_eq!(log.stdout(), expected);
    let left_out = "larder: 312 requests were left out: narrow the filter, or use --all";
    assert_eq!(log.stderr(), [SAMPLE, left_out]);
}

#[tokio::test]
async fn all_that_is_typed_is_asked_for() {
    let origin = origin(vec![stream(&request("/1"))]);
    let options = ["host=a and time>1s", "--all", "--recent", "--token", "secret", "-n", "1", "--json"];
    let mut log = log(&origin, &options);
    assert_eq!(log.end().await, 0, "{:?}", log.stderr());
    assert!(log.stderr().is_empty(), "{:?}", log.stderr());
    let json = request("/1").lines().nth(1).unwrap().strip_prefix("data: ").unwrap().to_owned();
    assert_eq!(log.stdout(), [json]);
    let seen = origin.log().last().unwrap();
    assert_eq!(seen.target, "/api/v1/live?requests=host%3Da%20and%20time%3E1s&all=true&recent=20");
    assert!(seen.fields.all("accept").eq(["text/event-stream"]));
    assert!(seen.fields.all("authorization").eq(["Bearer secret"]));
}

#[tokio::test]
async fn a_faulty_filter_is_told_with_its_place_and_nothing_is_asked() {
    let origin = origin(vec![stream("")]);
    let mut log = log(&origin, &["host=a and tine>1s"]);
    assert_eq!(log.end().await, 2);
    let said = log.stderr();
    assert!(
        said[0].starts_with("larder: error: in the filter, column 12: no field is named \"tine\""),
        "{said:?}"
    );
    assert_eq!(said[1..], ["  host=a and tine>1s", "             ^"]);
    assert!(log.stdout().is_empty() && origin.log().count() == 0);
}

#[tokio::test]
async fn each_refusal_is_told_at_once() {
    let json = |status, body: &str| Answer::new(status, &["Content-Type: application/json"], body);
    for (answer, code, said) in [
        (
            json(404, "{\"error\":\"not-found\",\"message\":\"/ lists\"}"),
            1,
            "larder: error: this larder has no live view: it is older",
        ),
        (Answer::new(404, &[], "<h1>no</h1>"), 1, "larder: error: this larder has no live view: it is older"),
        (
            json(503, "{\"error\":\"streams\",\"message\":\"32 streams are open\"}"),
            1,
            "larder: error: 32 streams are open",
        ),
        (
            json(400, "{\"error\":\"filter\",\"message\":\"column 1: \\u001bno\"}"),
            2,
            "larder: error: column 1: \\u{1b}no",
        ),
        (json(401, "{}"), 1, "wants its admin token"),
        (
            Answer::new(200, &["Content-Type: text/html"], "event: request"),
            1,
            "is no larder that shows what happens now",
        ),
        (stream("event: request\ndata: <html>\n\n"), 1, "is no larder that shows what happens now"),
    ] {
        let origin = origin(vec![answer]);
        let mut log = log(&origin, &[]);
        assert_eq!(log.end().await, code, "{said}");
        assert!(log.stderr().iter().any(|line| line.contains(said)), "{said}: {:?}", log.stderr());
        assert_eq!((log.stdout().len(), origin.log().count()), (0, 1), "{said}");
    }
}

#[tokio::test]
async fn a_larder_that_does_not_run_ends_it_at_once() {
    let mut origin = origin(vec![stream("")]);
    origin.stop().await;
    let mut log = log(&origin, &[]);
    assert_eq!(log.end().await, 1);
    assert!(log.stderr()[0].contains("no larder answers at"), "{:?}", log.stderr());
}

#[tokio::test]
async fn it_connects_again_after_the_end_of_the_stream_and_after_a_restart() {
    let busy = "{\"error\":\"streams\",\"message\":\"32 streams are open\"}";
    let mut origin = origin(vec![
        stream(&request("/1")),
        Answer::new(503, &["Content-Type: application/json"], busy),
        open_stream(&request("/2")),
        stream(&request("/3")),
    ]);
    let mut log = log(&origin, &["--recent", "5", "-n", "3"]);
    log.prints(&line("/2")).await;
    // Cuts the connection, and refuses others.
    origin.stop().await;
    let ended = format!("larder: the connection to {} has ended: connecting again", origin.addr());
    crate::support::until("it was said", async || log.stderr().len() == 3).await;
    origin.resume().unwrap();
    assert_eq!(log.end().await, 0, "{:?}", log.stderr());
    assert_eq!(log.stdout(), ["/1", "/2", "/3"].map(line));
    // Once for each outage, however many attempts it took.
    assert_eq!(log.stderr(), [SAMPLE, &ended, &ended]);
    let again = "/api/v1/live?requests=";
    assert_eq!(targets(&origin), [&format!("{again}&recent=5"), again, again, again]);
}

#[tokio::test]
async fn what_was_too_slow_connects_again() {
    let slow = request("/1") + "event: too-slow\ndata: {}\n\n";
    let origin = origin(vec![open_stream(&slow), stream(&request("/2"))]);
    let mut log = log(&origin, &["-n", "2"]);
    assert_eq!(log.end().await, 0, "{:?}", log.stderr());
    assert_eq!(log.stdout(), ["/1", "/2"].map(line));
    let said = "larder: this command was too slow for what came: connecting again";
    assert_eq!(log.stderr(), [SAMPLE, said]);
}

#[tokio::test]
async fn a_line_without_an_end_is_an_error() {
    let flood = Answer {
        flood: Some("x".repeat(1000)),
        framing: Some(BodyFraming::UntilClose),
        ..stream(&request("/1"))
    };
    let origin = origin(vec![flood]);
    let mut log = log(&origin, &[]);
    assert_eq!(log.end().await, 1);
    assert_eq!(log.stdout(), [line("/1")]);
    let said = log.stderr();
    assert!(said[1].ends_with("broke: a line of the stream is longer than 64 KiB"), "{said:?}");
}

#[tokio::test]
async fn ctrl_c_and_the_end_of_the_time_are_good_ends() {
    let origin = origin(vec![open_stream(&request("/1"))]);
    let mut interrupted = log(&origin, &[]);
    interrupted.prints(&line("/1")).await;
    interrupted.signal(Signal::INT);
    assert_eq!(interrupted.end().await, 0);
    assert_eq!(interrupted.stderr(), [SAMPLE]);
    let began = Instant::now();
    let mut timed = log(&origin, &["--for", "300ms"]);
    assert_eq!(timed.end().await, 0);
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!((timed.stdout(), timed.stderr()), (vec![line("/1")], vec![SAMPLE.to_owned()]));
}

#[tokio::test]
async fn a_reader_who_has_seen_enough_is_a_good_end() {
    let origin = origin(vec![open_stream(&request("/1"))]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut log = Process::spawn_with(command(&origin, &[]), writer.into(), Stdio::piped());
    assert_eq!(log.end().await, 0);
    assert_eq!(log.stderr(), [SAMPLE]);
}

/// Its thread is stuck in the write: the signal ends the command all the same.
#[tokio::test]
async fn ctrl_c_ends_it_while_nobody_empties_the_pipe() {
    let body = request("/1").repeat(4000);
    let origin = origin(vec![open_stream(&body)]);
    let (_reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let mut log = Process::spawn_with(command(&origin, &[]), writer.into(), Stdio::piped());
    log.says(SAMPLE).await;
    log.signal(Signal::INT);
    assert_eq!(log.end().await, 0);
}

#[tokio::test]
async fn what_a_real_larder_does_is_shown_filtered_and_with_its_reasons() {
    let cookie = answer_of(&["Set-Cookie: session=8f14e45fceea167a"], 10);
    let origin = Origin::simple(vec![cacheable("/page*", 1000), script("/cookie*", cookie)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let larder = Process::run_config(&path).await;
    let admin = larder.admin.to_string();
    let start = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.arg("log").args(arguments).args(["--admin", &admin]);
        command.env_remove("LARDER_ADMIN").env_remove("LARDER_ADMIN_TOKEN");
        Process::spawn(command, None)
    };
    let mut logs = [
        start(&["cache!=hit and path=/cookie*", "--all", "-n", "2"]),
        start(&["result=memory", "--all", "--json", "-n", "1"]),
        start(&["path=/cookie* and time<1m", "--all", "--steps", "-n", "1"]),
    ];
    let open = async || larder.metrics().await.sum("larder_live_subscribers");
    crate::support::until("all of them listen", async || open().await == 3).await;
    let mut client = connect(larder.addr).await;
    for target in ["/page1?token=hunter2", "/page1?token=hunter2", "/cookie1", "/cookie2"] {
        assert_eq!(client.exchange(&asking(target)).await.unwrap().status, 200);
    }
    for log in &mut logs {
        assert_eq!(within("its lines are there", log.end()).await, 0, "{:?}", log.stderr());
    }
    let [missed, hit, steps] = logs.map(|log| log.stdout());
    assert_eq!(missed.len(), 2, "{missed:?}");
    for (line, target) in missed.iter().zip(["/cookie1", "/cookie2"]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[1], words[2], words[3], words[4]), ("GET", "localhost", target, "200"), "{line}");
        assert!(line.contains("asked") && line.contains("set-cookie"), "{line}");
    }
    let hit: serde_json::Value = serde_json::from_str(&hit[0]).unwrap();
    assert_eq!((&hit["result"], &hit["query"]), (&"memory".into(), &"token=***".into()), "{hit}");
    assert!(steps[1].contains("first byte") && steps[1].contains(&origin.url()), "{steps:?}");
    crate::support::until("nobody listens any more", async || open().await == 0).await;
    assert_eq!(origin.log().count(), 3);
}
