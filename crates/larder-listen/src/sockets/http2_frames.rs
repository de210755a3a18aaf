//! Frames of HTTP/2 as they come over the wire: their order, their length, and the two goodbyes.

use std::time::Duration;

use larder_testkit::client::Connection;

use crate::sockets::support::{Client, Listening, eventually, soon};
use crate::{Limits, Settings};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 16;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

fn window(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

/// A request without content, in short literals.
fn get(stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    request(stream, END_STREAM | END_HEADERS, &[(":method", "GET"), (":path", path)], fields)
}

fn request(stream: u32, flags: u8, first: &[(&str, &str)], fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":scheme", "http"), (":authority", "a.test")];
    let mut block = Vec::new();
    for (name, value) in first.iter().chain(&pseudo).chain(fields) {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame(HEADERS, flags, stream, &block)
}

struct Frames(Connection);

impl Frames {
    /// A client that has said these settings and `more` first.
    async fn open(listener: &Listening, more: &[Vec<u8>]) -> Self {
        let mut client = Client::connect(listener.address).await;
        client.write([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &more.concat()[..]].concat()).await;
        Self(client.connection)
    }

    async fn send(&mut self, frames: &[Vec<u8>]) {
        soon(self.0.write(&frames.concat())).await.unwrap();
    }

    async fn next(&mut self) -> Frame {
        let head = soon(self.0.read_exact(9)).await.unwrap();
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = soon(self.0.read_exact(length as u64)).await.unwrap();
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Frame { kind: head[3], flags: head[4], stream, payload }
    }

    /// The next one of these kinds.
    async fn next_of(&mut self, kinds: &[u8]) -> Frame {
        loop {
            let frame = self.next().await;
            if kinds.contains(&frame.kind) {
                return frame;
            }
        }
    }

    /// The streams of the next DATA frames, up to so many bytes, and the longest of them.
    async fn data_of(&mut self, bytes: usize) -> (Vec<u32>, usize) {
        let (mut streams, mut came, mut longest) = (Vec::new(), 0, 0);
        while came < bytes {
            let data = self.next_of(&[DATA]).await;
            came += data.payload.len();
            longest = longest.max(data.payload.len());
            streams.push(data.stream);
        }
        assert_eq!(came, bytes);
        (streams, longest)
    }
}

/// Two streams that have their heads and wait for a window, and then may send more than the connection takes.
async fn two_that_wait(listener: &Listening, fields: [&str; 2]) -> Frames {
    let of = |stream, field| get(stream, "/pieces", &[("priority", field)]);
    let begun = [setting(4, 0), of(1, fields[0]), of(3, fields[1])];
    let mut client = Frames::open(listener, &begun).await;
    for _ in fields {
        client.next_of(&[HEADERS]).await;
    }
    client.send(&[setting(4, 1 << 20)]).await;
    client
}

#[tokio::test]
async fn what_is_urgent_overtakes_also_when_that_is_said_later() {
    let listener = Listening::open();
    let mut client = two_that_wait(&listener, ["u=5", "u=1"]).await;
    let (streams, longest) = client.data_of(65_535).await;
    assert!(streams.iter().all(|stream| *stream == 3), "{streams:?}");
    assert_eq!(longest, 10_007, "a piece");
    let said = [&1_u32.to_be_bytes()[..], b"u=0"].concat();
    client.send(&[frame(PRIORITY_UPDATE, 0, 0, &said), window(0, 65_535)]).await;
    let (streams, _) = client.data_of(65_535).await;
    assert!(streams.iter().all(|stream| *stream == 1), "{streams:?}");
}

#[tokio::test]
async fn incremental_streams_take_turns_and_others_are_sent_to_their_end() {
    let listener = Listening::open();
    let mut client = two_that_wait(&listener, ["i", "i"]).await;
    let (streams, _) = client.data_of(65_535).await;
    assert!(streams.windows(2).all(|pair| pair[0] != pair[1]), "{streams:?}");
    let mut client = two_that_wait(&listener, ["", ""]).await;
    let (streams, _) = client.data_of(65_535).await;
    assert!(streams.iter().all(|stream| *stream == 1), "{streams:?}");
}

#[tokio::test]
async fn the_last_content_says_that_it_is_the_last() {
    let listener = Listening::open();
    for path in ["/known", "/unknown", "/stored"] {
        let mut client = Frames::open(&listener, &[setting(4, 1 << 20), get(1, path, &[])]).await;
        let data = client.next_of(&[DATA]).await;
        assert_eq!(data.flags & END_STREAM, END_STREAM, "{path}: {data:?}");
    }
}

#[tokio::test]
async fn a_frame_of_content_fills_a_record_of_tls() {
    let listener = Listening::open();
    let mut client = Frames::open(&listener, &[setting(4, 1 << 20), get(1, "/one-piece", &[])]).await;
    let mut lengths = Vec::new();
    while lengths.len() < 4 {
        lengths.push(client.next_of(&[DATA]).await.payload.len());
    }
    assert_eq!(lengths, [16_375, 16_375, 16_375, 50_000 - 3 * 16_375]);
}

#[tokio::test]
async fn a_long_head_goes_in_frames_that_its_client_takes() {
    let listener = Listening::open();
    let mut client = Frames::open(&listener, &[setting(1, 0), get(1, "/long-head", &[])]).await;
    let first = client.next_of(&[HEADERS]).await;
    assert_eq!((first.payload.len(), first.flags & END_HEADERS), (16_384, 0));
    let mut lengths = Vec::new();
    loop {
        let next = client.next().await;
        assert_eq!((next.kind, next.stream), (CONTINUATION, 1));
        lengths.push(next.payload.len());
        if next.flags & END_HEADERS != 0 {
            break;
        }
    }
    assert!(lengths.len() == 2 && lengths[0] == 16_384, "{lengths:?}");
}

#[tokio::test]
async fn a_drain_says_goodbye_twice_and_serves_what_came_between() {
    let listener = Listening::open();
    let mut client = Frames::open(&listener, &[setting(1, 0), get(1, "/one", &[])]).await;
    client.next_of(&[DATA]).await;
    listener.drain.start();
    let goaway = client.next_of(&[GOAWAY]).await;
    assert_eq!(goaway.payload, [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let ping = client.next_of(&[PING]).await;
    client.send(&[get(3, "/between", &[]), frame(PING, ACK, 0, &ping.payload)]).await;
    assert_eq!(client.next_of(&[DATA, RST_STREAM]).await.kind, DATA);
    assert_eq!(client.next_of(&[GOAWAY]).await.payload, [0, 0, 0, 3, 0, 0, 0, 0]);
    soon(listener.drain.drained()).await;
    assert_eq!(listener.lines().len(), 2);
}

#[tokio::test]
async fn content_in_the_smallest_pieces_arrives_whole() {
    let listener = Listening::open();
    let post = request(1, END_HEADERS, &[(":method", "POST"), (":path", "/up")], &[]);
    let mut client = Frames::open(&listener, &[setting(1, 0), post]).await;
    let pieces: Vec<Vec<u8>> = (0..5000_u32).map(|n| frame(DATA, 0, 1, &[n as u8])).collect();
    client.send(&pieces).await;
    client.send(&[frame(DATA, END_STREAM, 1, b"")]).await;
    assert_eq!(client.next_of(&[HEADERS, RST_STREAM, GOAWAY]).await.kind, HEADERS);
    let seen = listener.service.seen.lock()[0].body.clone().unwrap();
    assert!(seen.iter().enumerate().all(|(at, byte)| *byte == at as u8) && seen.len() == 5000);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_read_from_without_end() {
    const REQUESTS: u32 = 3000;
    let limits = Limits { write_idle: Duration::from_secs(3), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = Frames::open(&listener, &[setting(1, 0)]).await;
    let asked: Vec<Vec<u8>> = (0..REQUESTS).map(|n| get(1 + 2 * n, "/long-head", &[])).collect();
    // Each is answered with a head of 40 KB that nothing but the connection bounds. It is cut because it takes none.
    let sent = tokio::spawn(async move {
        let _ = client.0.write(&asked.concat()).await;
        client
    });
    eventually(|| listener.metrics.write_stalled.value() == 1).await;
    let calls = listener.service.calls.load(std::sync::atomic::Ordering::SeqCst);
    assert!(calls < REQUESTS as usize / 2, "{calls} answers wait for a client that takes none");
    drop(sent.await);
}

#[tokio::test]
async fn a_head_that_is_refused_has_no_content() {
    let listener = Listening::open();
    let head =
        request(1, END_STREAM | END_HEADERS, &[(":method", "HEAD"), (":path", "/")], &[("expect", "x")]);
    let mut client = Frames::open(&listener, &[setting(1, 0), head, frame(PING, 0, 0, &[7; 8])]).await;
    let answer = client.next_of(&[HEADERS, RST_STREAM]).await;
    assert_eq!((answer.kind, answer.flags & END_STREAM), (HEADERS, END_STREAM));
    assert_eq!(client.next_of(&[DATA, PING]).await.kind, PING);
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_request_tells_its_client_at_once() {
    let listener = Listening::open();
    let post = request(1, END_HEADERS, &[(":method", "POST"), (":path", "/ignore-late")], &[]);
    // As much as the window of the stream takes: its client waits, and says nothing more.
    let content = vec![frame(DATA, 0, 1, &[b'x'; 16_384]); 16];
    let mut client = Frames::open(&listener, &[setting(1, 0), post, content.concat()]).await;
    let data = client.next_of(&[DATA]).await;
    assert_eq!(data.flags & END_STREAM, END_STREAM);
    let reset = client.next_of(&[RST_STREAM]).await;
    assert_eq!((reset.stream, reset.payload), (1, vec![0; 4]));
}

#[tokio::test]
async fn the_last_stream_of_a_goodbye_never_rises() {
    let listener = Listening::open();
    let mut client = Frames::open(&listener, &[setting(1, 0), get(1, "/never", &[])]).await;
    eventually(|| listener.metrics.requests_http2.value() == 1).await;
    listener.drain.start();
    let ping = client.next_of(&[PING]).await;
    client.send(&[frame(PING, ACK, 0, &ping.payload)]).await;
    let last = |goaway: &Frame| goaway.payload[..4].to_vec();
    let mut goaway = client.next_of(&[GOAWAY]).await;
    while last(&goaway) == [0x7f, 0xff, 0xff, 0xff] {
        goaway = client.next_of(&[GOAWAY]).await;
    }
    assert_eq!(last(&goaway), [0, 0, 0, 1]);
    // It is not served, and then the connection breaks.
    client.send(&[get(5, "/late", &[]), frame(SETTINGS, 0, 1, b"")]).await;
    let goaway = client.next_of(&[GOAWAY]).await;
    assert_eq!((last(&goaway), goaway.payload[7]), (vec![0, 0, 0, 1], 1));
}

#[tokio::test]
async fn a_stream_that_others_leave_no_window_is_not_cut_while_its_client_reads() {
    let limits = Limits { write_idle: Duration::from_millis(1500), ..Limits::default() };
    let listener = Listening::with(Settings { limits, ..Settings::default() });
    let mut client = two_that_wait(&listener, ["u=1", "u=5"]).await;
    let begun = std::time::Instant::now();
    // The second gets nothing for longer than it may wait for its own window.
    let mut rest = 2_000_995 - 65_535;
    client.data_of(65_535).await;
    while begun.elapsed() < Duration::from_millis(2000) {
        client.send(&[window(0, 10_000), window(1, 10_000)]).await;
        let (streams, _) = client.data_of(10_000).await;
        assert!(streams.iter().all(|stream| *stream == 1), "{streams:?}");
        rest -= 10_000;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.send(&[window(1, rest), window(0, rest + 10_000)]).await;
    loop {
        let frame = client.next_of(&[DATA, RST_STREAM]).await;
        assert_eq!(frame.kind, DATA, "{frame:?}");
        if frame.stream == 3 {
            break;
        }
    }
}
