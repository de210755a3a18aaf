//! What a hit allocates: nothing, whatever the stored response's fields and body, and however much is configured;
//! only fields of the request cost something, and the path of a stream of HTTP/2. A line of the log costs nothing either.
//! Over TLS, rustls allocates for each record.
//!
//! A larder in this process, with every allocation of the process counted. While hits are counted nobody else
//! allocates: the client writes and reads through buffers that it has already, the origin is not asked, and one
//! test of this program runs at a time. TLS is spoken by OpenSSL's client, which is a process of its own. A background task of larder may allocate a few times meanwhile, so a handful are
//! allowed, for all hits together. Counts are of calls and of bytes asked for, not of what was held at once.
//! Deliberately absent: misses, which have to allocate what they store.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::certificates::Certificates;
use larder_testkit::origin::{Answer, Origin, PathScript};
use stats_alloc::Region;

use crate::{COUNTING, alone};

/// Hits that are counted. More than a background task allocates in their time, by far.
const HITS: usize = 400;
/// Hits before them: pools and buffers reach their size.
const WARM: usize = 50;
const READ_MAX: Duration = Duration::from_secs(20);

/// What all hits of a case together may allocate beside what each may: a background task's.
const CALLS_BESIDE: usize = 20;
const BYTES_BESIDE: usize = 8_192;
/// What the fields of a request may add: unlike stored ones, they are read anew each time, into a map of two
/// allocations. A name that no standard knows takes one more.
const CALLS_FOR_FIELDS: usize = 2;
const CALLS_PER_FIELD: usize = 1;
const BYTES_PER_FIELD: usize = 256;
/// What the log's buffers may beside: the few that go around may only now be made, and grow.
const CALLS_FOR_LOG: usize = 20;
const BYTES_FOR_LOG: usize = 512 * 1024;
/// What a stream of HTTP/2 may: its path and its fields' values are copied out of the block.
const CALLS_PER_STREAM: usize = 1;
const BYTES_PER_STREAM: usize = 64;
/// What rustls may for a record: for what came in it, or for its ciphertext.
const CALLS_PER_RECORD: usize = 1;
/// Beside the record's own length.
const BYTES_PER_RECORD: usize = 1024;
/// The most that a record carries (RFC 8446 5.1).
const RECORD_BYTES: usize = 16_384;
/// More than the head of an answer has here.
const HEAD_BYTES: usize = 512;

/// The config with everything on that is measured, and what of it would come at its own time.
const EVERYTHING: &str = include_str!("../../../../bench/full.toml");
const CHECKS: &str = "every = \"5s\"";
const ORIGIN: &str = "http://127.0.0.1:3000";
/// Its spare, which is to be down.
const SPARE: &str = "http://127.0.0.2:3000";
const LOG: &str = "access = \"off\"";

const PLAIN: &str = r#"
[log]
access = "off"
[limits]
fields = 200
[origins.app]
servers = ["http://127.0.0.1:3000"]
[[site]]
origin = "app"
"#;

/// In the folder that the last rule of the config with everything on decides.
const PATH: &str = "/page/hot";
const HOST: &str = "localhost";

struct Case {
    name: &'static str,
    config: &'static str,
    log: bool,
    http2: bool,
    tls: bool,
    body_bytes: usize,
    /// Beyond what every response here has.
    response_fields: usize,
    /// Beyond Host.
    request_fields: Vec<String>,
}

/// A small page over HTTP/1 with a plain config: what the others are variants of.
fn case(name: &'static str) -> Case {
    let (config, request_fields) = (PLAIN, Vec::new());
    Case {
        name,
        config,
        log: false,
        http2: false,
        tls: false,
        body_bytes: 134,
        response_fields: 0,
        request_fields,
    }
}

fn cases() -> Vec<Case> {
    let fields =
        |count| (0..count).map(|number| format!("x-field-{number:02}: a value of a usual length")).collect();
    let everything = |name| Case { config: EVERYTHING, ..case(name) };
    // The rule that decides has both in its key.
    let keyed = vec!["cookie: a=b; theme=dark; c=d".to_owned(), "x-device: phone".to_owned()];
    vec![
        case("134 B"),
        Case { body_bytes: 57_000, ..case("57 000 B") },
        Case { body_bytes: 1_000_000, ..case("1 MB") },
        Case { response_fields: 30, ..case("30 response fields") },
        Case { response_fields: 100, ..case("100 response fields") },
        Case { request_fields: fields(20), ..case("20 request fields") },
        Case { log: true, ..case("access log") },
        Case { http2: true, ..case("HTTP/2") },
        Case { http2: true, response_fields: 30, ..case("HTTP/2, 30 response fields") },
        Case { tls: true, ..case("TLS") },
        Case { tls: true, body_bytes: 57_000, ..case("TLS, 57 000 B") },
        Case { tls: true, log: true, ..case("TLS, access log") },
        Case { tls: true, http2: true, ..case("TLS, HTTP/2") },
        Case { tls: true, http2: true, body_bytes: 57_000, ..case("TLS, HTTP/2, 57 000 B") },
        everything("everything on"),
        Case { log: true, ..everything("everything on, access log") },
        Case { request_fields: keyed.clone(), ..everything("everything on, cookie and field in the key") },
        Case { log: true, http2: true, request_fields: keyed, ..everything("all of that, HTTP/2") },
    ]
}

impl Case {
    /// Calls and bytes that one hit may allocate.
    fn each(&self) -> (usize, usize) {
        let fields = self.request_fields.len();
        let (mut calls, mut bytes) = (fields * CALLS_PER_FIELD, fields * BYTES_PER_FIELD);
        if fields > 0 {
            calls += CALLS_FOR_FIELDS;
        }
        if self.http2 {
            calls += CALLS_PER_STREAM + fields;
            bytes += BYTES_PER_STREAM;
        }
        if self.tls {
            // The request, and the answer. What is written at once of a long one does not end where a record does.
            let answer = (HEAD_BYTES + self.body_bytes).div_ceil(RECORD_BYTES);
            let records = 1 + answer + if answer > 1 { 2 } else { 0 };
            calls += records * CALLS_PER_RECORD;
            bytes += records * BYTES_PER_RECORD + self.body_bytes;
        }
        (calls, bytes)
    }
}

#[test]
fn a_hit_allocates_nothing_but_for_its_request() {
    let _turn = alone();
    let mut beyond = Vec::new();
    for case in cases() {
        if case.tls && !has_openssl() {
            println!("{}: skipped: there is no openssl on this machine", case.name);
            continue;
        }
        let (calls, bytes) = count(&case);
        println!("{:<45} {calls:>8} allocations, {bytes:>9} B in {HITS} hits", case.name);
        let (calls_each, bytes_each) = case.each();
        let (mut calls_max, mut bytes_max) =
            (CALLS_BESIDE + HITS * calls_each, BYTES_BESIDE + HITS * bytes_each);
        if case.log {
            (calls_max, bytes_max) = (calls_max + CALLS_FOR_LOG, bytes_max + BYTES_FOR_LOG);
        }
        if calls > calls_max || bytes > bytes_max {
            beyond.push(format!("{}: {calls} of {calls_max}, {bytes} B of {bytes_max}", case.name));
        }
    }
    assert!(beyond.is_empty(), "{HITS} hits allocate more than they may:\n{}", beyond.join("\n"));
}

/// Starts a larder before an origin with the case's answer, and counts calls and bytes of hits on one connection.
fn count(case: &Case) -> (usize, usize) {
    let mut answer =
        Answer::new(200, &["Cache-Control: max-age=3600", "ETag: \"one\"", "Content-Type: text/plain"], "");
    answer.fields.push("Last-Modified: Mon, 03 Nov 2025 10:00:00 GMT".to_owned());
    answer.fields.extend(
        (0..case.response_fields).map(|number| format!("X-Field-{number:03}: a value of a usual length")),
    );
    answer.body = None;
    answer.bytes = Some(case.body_bytes as u64);
    let checks = PathScript { aside: true, ..PathScript::new("/healthz", [Answer::new(200, &[], "")]) };
    let scripts = vec![PathScript::new(PATH, [answer]), checks];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let origin = runtime.block_on(async { Origin::simple(scripts).unwrap() });
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("public")).unwrap();
    let server = start(case, &origin, folder.path());
    let mut client = Client::connect(*server.addresses().first().unwrap(), case);
    client.hits(WARM);

    let region = Region::new(COUNTING);
    client.hits(HITS);
    let change = region.change();

    assert_eq!(origin.log().count(), 1, "{}: all but the first were hits", case.name);
    if case.log {
        let log = folder.path().join("access.log");
        assert!(log.exists(), "{}: no log", case.name);
    }
    (change.allocations + change.reallocations, change.bytes_allocated)
}

fn start(case: &Case, origin: &Origin, folder: &Path) -> Server {
    assert!(case.config.contains(ORIGIN) && case.config.contains(LOG), "{}: not said", case.name);
    let mut config = case.config.replace(ORIGIN, &origin.url()).replace(CHECKS, "every = \"1h\"");
    config = config.replace(SPARE, "http://127.0.0.2:1");
    if case.log {
        config = config.replace(LOG, "access = \"./access.log\"");
    }
    let listen = if case.tls {
        let certificates = Certificates::new();
        for name in ["server.pem", "server.key"] {
            std::fs::copy(certificates.file(name), folder.join(name)).unwrap();
        }
        // The site is the last of the plain config.
        config.push_str("tls = { cert = \"server.pem\", key = \"server.key\" }\n");
        "{ address = \"127.0.0.1:0\", tls = true }"
    } else {
        "\"127.0.0.1:0\""
    };
    let config = format!("listen = [{listen}]\nadmin = false\nworkers = 1\n{config}");
    let checked = larder_config::parse(&config, "allocations", folder).unwrap();
    Server::start(checked, Clock::default(), Diagnostics::silent()).unwrap()
}

/// Asks again and again, and allocates nothing once it is there.
struct Client {
    stream: Box<dyn Connection>,
    /// Of HTTP/2: a frame, whose stream is another one each time.
    request: Vec<u8>,
    answer: Vec<u8>,
    body_bytes: usize,
    /// The stream of the next request, where there are streams.
    next_stream: Option<u32>,
}

/// What a client writes requests to and reads answers from.
trait Connection: Read + Write {}

impl Connection for TcpStream {}

/// OpenSSL's client, which makes TLS of what it reads and the other way about. It ends with the client.
struct OverTls {
    openssl: Child,
    stream: UnixStream,
}

fn has_openssl() -> bool {
    let version = Command::new("openssl").arg("version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

impl OverTls {
    fn connect(addr: SocketAddr, protocol: &str) -> Self {
        let (stream, theirs) = UnixStream::pair().unwrap();
        let theirs = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
        let openssl = Command::new("openssl")
            .args(["s_client", "-quiet", "-tls1_3", "-alpn", protocol, "-connect", &addr.to_string()])
            .stdin(theirs())
            .stdout(theirs())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed");
        Self { openssl, stream }
    }
}

impl Read for OverTls {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for OverTls {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl Connection for OverTls {}

impl Drop for OverTls {
    fn drop(&mut self) {
        let _ = self.openssl.kill();
        let _ = self.openssl.wait();
    }
}

// Of HTTP/2 (RFC 9113 4.1, 6): where a frame has its stream, and what a client has to tell apart.
const FRAME_HEAD: usize = 9;
const STREAM_AT: std::ops::Range<usize> = 5..9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS_ACK: &[u8] = &[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0];

impl Client {
    fn connect(addr: SocketAddr, case: &Case) -> Self {
        let mut stream: Box<dyn Connection> = if case.tls {
            let over_tls = OverTls::connect(addr, if case.http2 { "h2" } else { "http/1.1" });
            over_tls.stream.set_read_timeout(Some(READ_MAX)).unwrap();
            Box::new(over_tls)
        } else {
            let stream = TcpStream::connect(addr).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(READ_MAX)).unwrap();
            Box::new(stream)
        };
        let request = if case.http2 { http2_request(case) } else { http1_request(case) };
        if case.http2 {
            let window_more = ((1_u32 << 31) - 1 - 65_535).to_be_bytes();
            let opening =
                [PREFACE, &frame(SETTINGS, 0, &[]), &frame(WINDOW_UPDATE, 0, &window_more)].concat();
            stream.write_all(&opening).unwrap();
        }
        let next_stream = case.http2.then_some(1);
        let body_bytes = case.body_bytes;
        Self { stream, request, answer: vec![0; body_bytes + 65_536], body_bytes, next_stream }
    }

    fn hits(&mut self, count: usize) {
        for _ in 0..count {
            match self.next_stream {
                None => self.http1_hit(),
                Some(stream) => {
                    self.http2_hit(stream);
                    self.next_stream = Some(stream + 2);
                }
            }
        }
    }

    fn http1_hit(&mut self) {
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

    fn read(&mut self, from: usize) -> usize {
        let read = self.stream.read(&mut self.answer[from..]).unwrap();
        assert!(read > 0, "closed within an answer");
        read
    }

    fn http2_hit(&mut self, stream: u32) {
        self.request[STREAM_AT].copy_from_slice(&stream.to_be_bytes());
        self.stream.write_all(&self.request).unwrap();
        let mut body = 0;
        loop {
            self.stream.read_exact(&mut self.answer[..FRAME_HEAD]).unwrap();
            let [high, middle, low, kind, flags, ..] = self.answer[..] else { panic!("a frame has a head") };
            let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            self.stream.read_exact(&mut self.answer[..length]).unwrap();
            match kind {
                // 8 is `:status: 200` in the static table (RFC 7541 A); a change of the table's size may stand before.
                HEADERS => assert!(self.answer[..length].iter().take(4).any(|byte| *byte == 0x88), "no 200"),
                DATA => body += length,
                SETTINGS if flags == 0 => self.stream.write_all(SETTINGS_ACK).unwrap(),
                SETTINGS | WINDOW_UPDATE => {}
                kind => panic!("a frame of type {kind} in place of an answer"),
            }
            if kind <= HEADERS && flags & END_STREAM != 0 {
                break;
            }
        }
        assert_eq!(body, self.body_bytes, "a body of another length");
    }
}

fn http1_request(case: &Case) -> Vec<u8> {
    let mut request = format!("GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\n");
    for line in &case.request_fields {
        request.extend([line, "\r\n"]);
    }
    request.push_str("\r\n");
    request.into_bytes()
}

/// One HEADERS frame; fields as literals that no table keeps (RFC 7541 6.2.2).
fn http2_request(case: &Case) -> Vec<u8> {
    // `:method: GET` and `:scheme` by number, of which `http` is the first; `:authority` and `:path` by name.
    let mut block = vec![0x82, 0x86 + u8::from(case.tls), 0x01];
    put_string(&mut block, HOST);
    block.push(0x04);
    put_string(&mut block, PATH);
    for line in &case.request_fields {
        let (name, value) = line.split_once(": ").unwrap();
        block.push(0x00);
        put_string(&mut block, name);
        put_string(&mut block, value);
    }
    frame(HEADERS, END_STREAM | END_HEADERS, &block)
}

fn put_string(to: &mut Vec<u8>, text: &str) {
    to.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap());
    to.extend_from_slice(text.as_bytes());
}

/// A frame of stream 0.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[high, middle, low, kind, flags, 0, 0, 0, 0], payload].concat()
}
