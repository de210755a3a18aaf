//! What a hit allocates: nothing that grows with the stored response's fields or its body.
//!
//! A larder in this process, with every allocation of the process counted. While hits are counted nobody else
//! allocates: the client writes and reads through buffers that it has already, the origin is not asked, and the only
//! test of this program runs alone. A background task of larder may allocate a few times meanwhile, so figures are per
//! hit, over many hits and rounded down. Counts are of calls and of bytes asked for, not of what was held at once.
//! Deliberately absent: misses, which have to allocate what they store.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::origin::{Answer, Origin, PathScript};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Hits that are counted. More than a background task allocates in their time, by far.
const HITS: usize = 400;
/// Hits before them: pools and buffers reach their size.
const WARM: usize = 50;
const READ_MAX: Duration = Duration::from_secs(20);

/// What a hit may allocate: nothing. The bytes are for a background task.
const CALLS_MAX: usize = 0;
const BYTES_MAX: usize = 64;
/// How far a hit may be above the smallest one.
const CALLS_MORE: usize = 0;
const BYTES_MORE: usize = 64;
/// What each field of a request may add: unlike stored ones, they are read anew each time.
const CALLS_PER_FIELD: usize = 2;
const BYTES_PER_FIELD: usize = 256;

struct Case {
    name: &'static str,
    body_bytes: u64,
    /// Beyond what every response here has.
    response_fields: usize,
    request_fields: usize,
}

const fn case(name: &'static str, body_bytes: u64, response_fields: usize, request_fields: usize) -> Case {
    Case { name, body_bytes, response_fields, request_fields }
}

/// The first is what the others are held against.
const CASES: [Case; 6] = [
    case("134 B", 134, 0, 0),
    case("57 000 B", 57_000, 0, 0),
    case("1 MB", 1_000_000, 0, 0),
    case("30 response fields", 134, 30, 0),
    case("100 response fields", 134, 100, 0),
    case("20 request fields", 134, 0, 20),
];

/// What one hit allocates.
#[derive(Clone, Copy, Debug)]
struct PerHit {
    calls: usize,
    bytes: usize,
}

#[test]
fn a_hit_allocates_nothing_that_grows_with_the_stored_response() {
    let mut counted = Vec::new();
    for case in &CASES {
        let per_hit = count(case);
        println!("{:<20} {:>4} allocations, {:>6} B per hit", case.name, per_hit.calls, per_hit.bytes);
        counted.push((case, per_hit));
    }
    let smallest = counted.first().unwrap().1;
    for (case, per_hit) in counted {
        let calls_more = case.request_fields * CALLS_PER_FIELD;
        let bytes_more = case.request_fields * BYTES_PER_FIELD;
        assert!(
            per_hit.calls <= smallest.calls + CALLS_MORE + calls_more
                && per_hit.bytes <= smallest.bytes + BYTES_MORE + bytes_more,
            "{}: {per_hit:?}, beside {smallest:?} of the smallest",
            case.name
        );
        assert!(
            per_hit.calls <= CALLS_MAX + calls_more && per_hit.bytes <= BYTES_MAX + bytes_more,
            "{}: {per_hit:?}",
            case.name
        );
    }
}

/// Starts a larder before an origin with the case's answer, and counts hits on one connection.
fn count(case: &Case) -> PerHit {
    let mut answer =
        Answer::new(200, &["Cache-Control: max-age=3600", "ETag: \"one\"", "Content-Type: text/plain"], "");
    answer.fields.push("Last-Modified: Mon, 03 Nov 2025 10:00:00 GMT".to_owned());
    answer.fields.extend(
        (0..case.response_fields).map(|number| format!("X-Field-{number:03}: a value of a usual length")),
    );
    answer.body = None;
    answer.bytes = Some(case.body_bytes);
    let script = PathScript {
        name: "origin".to_owned(),
        path: "/page".to_owned(),
        answer: vec![answer],
        aside: false,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let origin = runtime.block_on(async { Origin::simple(vec![script]).unwrap() });
    let server = start(&origin);
    let mut client = Client::connect(*server.addresses().first().unwrap(), case);
    client.hits(WARM);

    let region = Region::new(COUNTING);
    client.hits(HITS);
    let change = region.change();

    assert_eq!(origin.log().count(), 1, "{}: all but the first were hits", case.name);
    PerHit { calls: (change.allocations + change.reallocations) / HITS, bytes: change.bytes_allocated / HITS }
}

fn start(origin: &Origin) -> Server {
    let config = format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = false\nworkers = 1\n[limits]\nfields = 200\n\
         [origins.app]\nservers = [\"{}\"]\n[[site]]\norigin = \"app\"\n",
        origin.url()
    );
    let checked = larder_config::parse(&config, "allocations", Path::new(".")).unwrap();
    Server::start(checked, Clock::default(), Diagnostics::silent()).unwrap()
}

/// Asks again and again, and allocates nothing once it is there.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    body_bytes: usize,
}

impl Client {
    fn connect(addr: SocketAddr, case: &Case) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(READ_MAX)).unwrap();
        let mut request = String::from("GET /page HTTP/1.1\r\nHost: count.test\r\n");
        for number in 0..case.request_fields {
            request.push_str(&format!("X-Field-{number:02}: a value of a usual length\r\n"));
        }
        request.push_str("\r\n");
        let body_bytes = usize::try_from(case.body_bytes).unwrap();
        Self { stream, request: request.into_bytes(), answer: vec![0; body_bytes + 65_536], body_bytes }
    }

    fn hits(&mut self, count: usize) {
        for _ in 0..count {
            self.stream.write_all(&self.request).unwrap();
            let mut read = 0;
            let head_end = loop {
                read += self.read(read);
                let head_end = self.answer[..read].windows(4).position(|window| window == b"\r\n\r\n");
                if let Some(at) = head_end {
                    break at + 4;
                }
            };
            assert!(self.answer.starts_with(b"HTTP/1.1 200 "), "no 200");
            while read < head_end + self.body_bytes {
                read += self.read(read);
            }
            assert_eq!(read, head_end + self.body_bytes, "bytes behind the answer");
        }
    }

    fn read(&mut self, from: usize) -> usize {
        let read = self.stream.read(&mut self.answer[from..]).unwrap();
        assert!(read > 0, "closed within an answer");
        read
    }
}
