//! One run: a larder on one of the kinds of stores, its clients, and what their answers may show.
//!
//! In: a seed. Out: how often what is to be proved was put to the test. Whatever an answer shows that it must not ends the run
//! with the seed, the step and the answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::client::{Connection, Request, Response};
use larder_testkit::origin::{Gates, Origin};
use larder_testkit::wire::Fields;

use super::origin::{CODED, IN_GZIP, PATHS, Path, Shared, TAKE_GZIP};
use super::{Random, Seen};
use crate::support::{BOUND, cache_status};

const STEPS: usize = 90;
/// URLs of each kind.
const URLS: u64 = 2;
const TAG_BYTES: usize = 8;

/// What is known of a request by its tag.
#[derive(Clone, Copy)]
struct Asked {
    is_stranger: bool,
    takes_gzip: bool,
}

/// What a client says beside its tag, and whether that makes it somebody.
const CLIENTS: [(&[(&str, &str)], bool); 8] = [
    (&[], true),
    (&[("Cookie", "_ga=GA1.1.1; OptanonConsent=x")], true),
    (&[("Cookie", "connect.sid=s%3Amine")], false),
    (&[("Cookie", "_ga=GA1.1.1; wordpress_logged_in_1=x")], false),
    (&[("Cookie", "zz=1")], false),
    (&[("Authorization", "Basic QTpC")], false),
    (&[("X-Api-Key", "1")], false),
    (&[], true),
];

pub(super) struct Run {
    /// The kind of store and the seed.
    told: String,
    step: usize,
    /// Whether a plain file, which has one form, may stand for what it keeps.
    has_files: bool,
    random: Random,
    origin: Origin,
    config: String,
    clock: Clock,
    server: Option<Server>,
    asked: HashMap<String, (usize, Asked)>,
    seen: Seen,
}

const STORES: [&str; 3] = ["memory", "disk", "files"];

impl Run {
    pub(super) async fn new(seed: u64, folder: &std::path::Path) -> Self {
        let mut random = Random(seed);
        let store = *random.of(&STORES);
        let stores = match store {
            "disk" => format!(
                "[stores.default]\nmemory = \"8MiB\"\ndisks = [{{ path = {:?}, size = \"16MiB\" }}]\n",
                folder.join("disk")
            ),
            "files" => format!("[stores.default]\nmemory = \"8MiB\"\nfiles = {:?}\n", folder.join("files")),
            _ => String::new(),
        };
        let clock = Clock::default();
        let scripts = PATHS.iter().map(Path::script).collect();
        let origin = Origin::start(scripts, Gates::default(), clock.clone(), BOUND).unwrap();
        let config = format!(
            "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nworkers = 2\n{stores}\n\
             [origins.app]\nservers = \"{}\"\n[[site]]\norigin = \"app\"\n\
             [[site.rule]]\npath = \"/ttl*\"\nttl = \"5s\"\nstale_while_revalidate = \"5s\"\nstale_if_error = \"9s\"\n\
             [[site.rule]]\npath = \"/override/*\"\noverride_ttl = \"4s\"\n",
            origin.url()
        );
        let server = Some(until_started(&config, &clock).await);
        let told = format!("{store}, LARDER_SEED={seed}");
        Self {
            told,
            step: 0,
            has_files: store == "files",
            random,
            origin,
            config,
            clock,
            server,
            asked: HashMap::new(),
            seen: Seen::default(),
        }
    }

    /// A request with a tag of its own.
    fn request(&mut self, place: usize, url: u64) -> (String, Request) {
        let tag = format!("t{:06}x", self.asked.len());
        assert_eq!(tag.len(), TAG_BYTES);
        let (said, is_stranger) = *self.random.of(&CLIENTS);
        let name = PATHS[place].name;
        let method = if self.random.one_in(8) { "HEAD" } else { "GET" };
        let mut request = Request::new(method, &format!("/{name}/{url}"), "localhost").field("X-Tag", &tag);
        for (name, value) in said {
            request = request.field(name, value);
        }
        let mut takes_gzip = false;
        if self.random.one_in(if PATHS[place].is_coded() { 1 } else { 3 }) {
            let (coding, takes) = *self.random.of(&TAKE_GZIP);
            takes_gzip = takes;
            request = request.field("Accept-Encoding", coding);
        }
        match self.random.below(16) {
            0 => request = request.field("If-None-Match", "\"v\""),
            1 => request = request.field("Range", "bytes=0-13"),
            2 => request = request.field("Cache-Control", "no-cache"),
            3 => request = request.field("X-Fail", "yes"),
            _ => {}
        }
        self.asked.insert(tag.clone(), (place, Asked { is_stranger, takes_gzip }));
        (tag, request)
    }

    /// Some requests for one URL, all at once.
    async fn ask(&mut self) {
        let place = usize::try_from(self.random.below(PATHS.len() as u64)).unwrap();
        let (url, clients) = (self.random.below(URLS), if self.random.one_in(3) { 6 } else { 1 });
        let address = *self.server.as_ref().unwrap().addresses().first().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..clients {
            let (tag, request) = self.request(place, url);
            let exchange = async move {
                let mut client = Connection::open(address, BOUND).await.unwrap();
                client.exchange(&request).await
            };
            waiting.push((tag, tokio::spawn(exchange)));
        }
        for (tag, answer) in waiting {
            let answer = answer.await.unwrap().unwrap_or_else(|error| panic!("{}: {error}", self.told));
            self.judge(&tag, &answer);
        }
    }

    fn judge(&mut self, tag: &str, answer: &Response) {
        let (place, asked) = self.asked[tag];
        let path = &PATHS[place];
        let status = cache_status(answer);
        let seen = &mut self.seen;
        seen.answers += 1;
        seen.hits += u64::from(status.contains("; hit"));
        seen.collapsed += u64::from(status.contains("; collapsed"));
        seen.confirmed += u64::from(status.contains("fwd-status=304"));
        seen.stale += u64::from(status.contains("stale-"));
        let run = format!("{}, step {}", self.told, self.step);
        let told = |what: &str| format!("{run}: {what} in the answer to {tag}: /{}/\n{answer}", path.name);
        let cookies =
            |lines: &Fields| -> Vec<String> { lines.all("set-cookie").map(str::to_owned).collect() };
        let interim = answer.interim.iter().flat_map(|interim| cookies(&interim.fields));
        for line in cookies(&answer.fields).into_iter().chain(interim) {
            let own = tags(line.as_bytes());
            assert!(own.iter().all(|other| other == tag), "{}", told("another's cookie"));
            seen.own_cookies += u64::from(!own.is_empty());
        }
        let own = answer.fields.all("x-own").flat_map(|line| tags(line.as_bytes()));
        assert!(own.into_iter().all(|other| other == tag), "{}", told("another's field"));
        let is_coded = answer.fields.all("content-encoding").any(|coding| coding == "gzip");
        assert!(asked.takes_gzip || !is_coded, "{}", told("a coding that it does not take"));
        // The origin codes it for all who take gzip, and says so: what it made for others is not for them.
        let must_be_coded = path.name == CODED && asked.takes_gzip && answer.status == 200;
        assert!(is_coded || !must_be_coded || self.has_files, "{}", told("content that was made for others"));
        let has_content = answer.status == 200 && !answer.body.is_empty();
        let is_in_gzip = answer.body.starts_with(IN_GZIP.as_bytes());
        assert!(
            !has_content || is_coded == is_in_gzip,
            "{}",
            told("fields of one form and content of another")
        );
        seen.coded += u64::from(is_coded);
        let fields = answer.fields.0.iter().flat_map(|(_, value)| tags(value.as_bytes()));
        for other in fields.chain(tags(&answer.body)).filter(|other| other != tag) {
            seen.shared += 1;
            // Two parts of one representation may be put together where their validator says that they are.
            let Some((_, made_for)) = self.asked.get(&other) else {
                assert!(path.shared == Shared::ByWord, "{}", told("nobody's"));
                continue;
            };
            let may_show = path.may_show(made_for.is_stranger, asked.is_stranger);
            assert!(may_show, "{}", told(&format!("what was made for {other}")));
        }
    }

    /// Ends it; its disks and files are free a moment later.
    async fn end(&mut self) {
        let mut server = self.server.take().unwrap();
        assert_eq!(server.drain(BOUND).await, 0, "{}", self.told);
    }

    /// Ends it and starts another on what it has kept.
    async fn start_anew(&mut self) {
        self.end().await;
        self.server = Some(until_started(&self.config, &self.clock).await);
    }

    pub(super) async fn run(mut self) -> Seen {
        for step in 0..STEPS {
            self.step = step;
            match self.random.below(30) {
                0..=5 => self.clock.advance(Duration::from_millis(self.random.below(4_000))),
                6 if self.random.one_in(2) => self.start_anew().await,
                _ => self.ask().await,
            }
        }
        assert!(
            self.origin.log().complaints().is_empty(),
            "{}: {:?}",
            self.told,
            self.origin.log().complaints()
        );
        self.end().await;
        self.seen
    }
}

/// Starts one; the stores of the one before are given back a moment after its drain.
async fn until_started(config: &str, clock: &Clock) -> Server {
    let began = Instant::now();
    loop {
        let checked = larder_config::parse(config, "own", std::path::Path::new(".")).unwrap();
        let clock = clock.clone();
        let start = move || Server::start(checked, clock, Diagnostics::silent());
        match tokio::task::spawn_blocking(start).await.unwrap() {
            Ok(server) => return server,
            Err(error) => assert!(began.elapsed() < BOUND, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whatever looks like a tag.
fn tags(bytes: &[u8]) -> Vec<String> {
    let is_tag = |window: &&[u8]| {
        window.first() == Some(&b't')
            && window.last() == Some(&b'x')
            && window[1..TAG_BYTES - 1].iter().all(u8::is_ascii_digit)
    };
    let found = bytes.windows(TAG_BYTES).filter(is_tag);
    found.map(|tag| String::from_utf8_lossy(tag).into_owned()).collect()
}
