//! Ending: what runs finishes within the limit, nothing new is taken, and a second signal ends at once.

use std::time::{Duration, Instant};

use larder_testkit::client::{End, Progress};
use larder_testkit::origin::{Answer, Hold, Origin};

use crate::support::{
    BOUND, Process, Signal, answer_of, asking, assert_whole, cacheable, config, connect, get, script, until,
    within, written,
};

fn held(at: Option<u64>) -> Answer {
    Answer {
        hold: at.is_none().then(|| "go".to_owned()),
        holds: at.map(|at| Hold { at, gate: "go".to_owned() }).into_iter().collect(),
        ..answer_of(&["Cache-Control: max-age=60"], 100_000)
    }
}

async fn refuses(larder: &Process) {
    until("connections are refused", async || tokio::net::TcpStream::connect(larder.addr).await.is_err())
        .await;
}

#[tokio::test]
async fn an_exchange_in_flight_finishes_and_new_connections_are_refused() {
    for signal in [Signal::TERM, Signal::INT] {
        let origin = Origin::simple(vec![script("/slow", held(None))]).unwrap();
        let mut larder = Process::run(&["--origin", &origin.url()]).await;
        let mut client = connect(larder.addr).await;
        client.write(&asking("/slow").to_http1()).await.unwrap();
        within("the origin's request", origin.log().until(|log| log.count() == 1)).await;
        larder.signal(signal);
        larder.says("1 connection finishes within 30 s").await;
        refuses(&larder).await;
        assert_eq!(get(larder.admin, "/healthz").await.status, 503, "it is draining");
        assert!(larder.is_running());
        origin.gates().release("go");
        let response = client.read_response("GET", &Progress::default()).await.unwrap();
        assert_whole(&response, "/slow", 100_000);
        assert!(response.fields.lists("connection", "close"), "{response}");
        assert!(client.ends_within(BOUND).await.unwrap());
        drop(client);
        assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
    }
}

#[tokio::test]
async fn a_response_in_its_middle_comes_to_its_end() {
    let origin = Origin::simple(vec![script("/slow", held(Some(50_000)))]).unwrap();
    let mut larder = Process::run(&["--origin", &origin.url()]).await;
    let mut client = connect(larder.addr).await;
    client.write(&asking("/slow").to_http1()).await.unwrap();
    let progress = Progress::default();
    let watched = progress.clone();
    let reading = tokio::spawn(async move {
        let response = client.read_response("GET", &progress).await.unwrap();
        (response, client.ends_within(BOUND).await.unwrap())
    });
    within("half of it", watched.until(50_000)).await;
    larder.signal(Signal::TERM);
    refuses(&larder).await;
    origin.gates().release("go");
    let (response, ended) = within("the response", reading).await.unwrap();
    assert_whole(&response, "/slow", 100_000);
    assert!(ended, "the connection ends although its head did not say so");
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
}

/// Connections that arrive while larder is stopped are the kernel's alone: larder wakes with them and the signal.
#[tokio::test]
async fn what_the_kernel_has_accepted_is_served() {
    let origin = Origin::simple(vec![cacheable("/a", 1000)]).unwrap();
    for (workers, count) in [("1", 1), ("2", 1), ("1", 60), ("2", 60)] {
        let mut larder = Process::run(&["--origin", &origin.url(), "--workers", workers]).await;
        assert_whole(&get(larder.addr, "/a").await, "/a", 1000);
        larder.signal(Signal::STOP);
        let mut clients = Vec::new();
        for _ in 0..count {
            let mut client = connect(larder.addr).await;
            client.write(&asking("/a").to_http1()).await.unwrap();
            clients.push(client);
        }
        larder.signal(Signal::TERM);
        larder.signal(Signal::CONT);
        for (index, client) in clients.iter_mut().enumerate() {
            let response = client.read_response("GET", &Progress::default()).await;
            let response =
                response.unwrap_or_else(|error| panic!("{index} of {count}, {workers} workers: {error}"));
            assert_whole(&response, "/a", 1000);
        }
        drop(clients);
        assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
    }
}

#[tokio::test]
async fn what_does_not_finish_is_cut_after_the_limit() {
    let scripts = vec![script("/never", held(None)), script("/half", held(Some(50_000)))];
    let origin = Origin::simple(scripts).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "drain = \"400ms\"", ""));
    let mut larder = Process::run_config(&path).await;
    let mut clients = Vec::new();
    for target in ["/never", "/half"] {
        let mut client = connect(larder.addr).await;
        client.write(&asking(target).to_http1()).await.unwrap();
        clients.push(client);
    }
    within("the origin's requests", origin.log().until(|log| log.count() == 2)).await;
    let signalled = Instant::now();
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
    let took = signalled.elapsed();
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(5), "{took:?}");
    let said = larder.stderr().join("\n");
    assert!(said.contains("2 connections were still open and are cut"), "{said}");
    let mut half = clients.pop().unwrap();
    let cut = half.read_response("GET", &Progress::default()).await.unwrap();
    assert!(matches!(cut.end, End::Broken(_)), "{cut}");
    assert!(clients.pop().unwrap().read_response("GET", &Progress::default()).await.is_err());
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    let origin = Origin::simple(vec![script("/slow", held(None))]).unwrap();
    for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::INT, Signal::QUIT)] {
        let mut larder = Process::run(&["--origin", &origin.url()]).await;
        let mut client = connect(larder.addr).await;
        client.write(&asking("/slow").to_http1()).await.unwrap();
        within("the origin's request", origin.log().until(|log| log.in_flight() == 1)).await;
        larder.signal(first);
        larder.says("within 30 s").await;
        let signalled = Instant::now();
        larder.signal(second);
        assert_eq!(larder.end().await, 1);
        assert!(signalled.elapsed() < Duration::from_secs(5), "{:?}", signalled.elapsed());
        assert!(larder.stderr().iter().any(|line| line == "larder: ended at once"), "{:?}", larder.stderr());
        within("the cut connection", origin.log().until(|log| log.in_flight() == 0)).await;
    }
}
