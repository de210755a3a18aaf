//! What the origin makes for one client reaches no other, unless the response says in its own words that it is for all.
//!
//! Random sequences of clients with and without cookies and credentials, of codings, ranges, conditions and HEADs, one by
//! one and many at once, while the clock moves and larder is started anew on what it has kept. Each request has a tag of
//! its own, which the origin puts into all that it makes for it: cookies, other fields, the body. So each answer shows for
//! whom each part of it was made, and [`Path::may_show`] says, from the origin's words alone, what may be seen by whom.
//! `LARDER_SEED` repeats a run, `LARDER_SEEDS` says how many there are from there on.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::client::{Connection, Request, Response};
use larder_testkit::origin::{Answer, Gates, Interim, Origin, PathScript};

use crate::support::{BOUND, cache_status};

/// Runs without `LARDER_SEEDS`, as far as [`TIME_MAX`] allows.
const SEEDS: u64 = 12;
const TIME_MAX: Duration = Duration::from_secs(4);
const STEPS: usize = 90;
/// URLs of each kind.
const URLS: u64 = 2;
const TAG_BYTES: usize = 8;

/// A kind of URL: what the origin says with its responses, and what that allows.
struct Path {
    name: &'static str,
    /// Lines of a whole response; `{field:x-tag}` is whose it is.
    fields: &'static [&'static str],
    /// Who may see what was made for somebody else.
    shared: Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// The origin says for how long others may have it.
    ByWord,
    /// It lives by larder's own settings or by a guess: made for strangers, and seen by strangers.
    AmongStrangers,
    /// It sets a cookie that may be somebody's, and does not say that it is for all.
    Never,
}

const SID: &str = "Set-Cookie: connect.sid={field:x-tag}; Path=/; HttpOnly";
const LANG: &str = "Set-Cookie: lang=de";
const ETAG: &str = "ETag: \"v\"";
const FOR: &str = "X-For: {field:x-tag}";

const PATHS: [Path; 14] = [
    Path {
        name: "public",
        fields: &["Cache-Control: public, max-age=5", ETAG, SID, LANG, FOR],
        shared: Shared::ByWord,
    },
    Path {
        name: "express",
        fields: &["Cache-Control: public, max-age=0", ETAG, SID, FOR],
        shared: Shared::ByWord,
    },
    Path {
        name: "behind",
        fields: &[
            "Cache-Control: public, max-age=2, stale-while-revalidate=30, stale-if-error=60",
            ETAG,
            SID,
        ],
        shared: Shared::ByWord,
    },
    Path { name: "smaxage", fields: &["Cache-Control: s-maxage=4", SID, FOR], shared: Shared::ByWord },
    Path { name: "targeted", fields: &["CDN-Cache-Control: max-age=4", ETAG, SID], shared: Shared::ByWord },
    Path {
        name: "named",
        fields: &[
            "Cache-Control: max-age=5, no-cache=\"set-cookie\", private=\"x-own\"",
            ETAG,
            SID,
            "X-Own: {field:x-tag}",
        ],
        shared: Shared::ByWord,
    },
    Path { name: "session", fields: &["Cache-Control: max-age=5", ETAG, SID, FOR], shared: Shared::Never },
    Path {
        name: "value",
        fields: &["Cache-Control: max-age=5", "Set-Cookie: seen={field:x-tag}", FOR],
        shared: Shared::Never,
    },
    Path { name: "guess", fields: &["Last-Modified: {start-10d}", FOR], shared: Shared::AmongStrangers },
    Path { name: "ttl", fields: &[ETAG, FOR], shared: Shared::AmongStrangers },
    Path {
        name: "ttl-public",
        fields: &["Cache-Control: public", ETAG, SID, FOR],
        shared: Shared::AmongStrangers,
    },
    Path {
        name: "override",
        fields: &["Cache-Control: max-age=60", ETAG, FOR],
        shared: Shared::AmongStrangers,
    },
    Path {
        name: "coded",
        fields: &["Cache-Control: public, max-age=5", "Vary: Accept-Encoding", SID, FOR],
        shared: Shared::ByWord,
    },
    // One tag for all forms, and no word of what they differ by.
    Path {
        name: "coded-unsaid",
        fields: &["Cache-Control: public, max-age=3", ETAG, SID, FOR],
        shared: Shared::ByWord,
    },
];

impl Path {
    /// Whether what was made for the request with one tag may be seen by another.
    fn may_show(&self, made_for: &Asked, seen_by: &Asked) -> bool {
        match self.shared {
            Shared::ByWord => true,
            Shared::AmongStrangers => made_for.is_stranger && seen_by.is_stranger,
            Shared::Never => false,
        }
    }

    fn script(&self) -> PathScript {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let interim = || Interim {
            status: 103,
            hold: None,
            fields: lines(&["Link: </a.css>", "Set-Cookie: connect.sid={field:x-tag}; HttpOnly"]),
        };
        let whole = |more: &[&str]| Answer {
            fields: lines(&[self.fields, more].concat()),
            template: Some("made for {field:x-tag}.".to_owned()),
            interim: if self.name == "public" { vec![interim()] } else { Vec::new() },
            ranges: self.name == "behind",
            // Long enough for others to join the fetch.
            delay: Some("1ms".to_owned()),
            ..Answer::default()
        };
        let confirmed = |when: &str| Answer {
            when: vec![when.to_owned()],
            status: Some(304),
            fields: lines(self.fields),
            delay: Some("1ms".to_owned()),
            ..Answer::default()
        };
        let failed = Answer { when: lines(&["x-fail: yes"]), status: Some(503), ..Answer::default() };
        let mut answer = vec![failed];
        match self.name {
            "coded" | "coded-unsaid" => {
                answer.push(confirmed("if-none-match"));
                let coded = whole(&["Content-Encoding: gzip"]);
                answer.push(Answer { when: lines(&["accept-encoding: gzip"]), ..coded });
            }
            "guess" => answer.push(confirmed("if-modified-since")),
            _ => answer.push(confirmed("if-none-match")),
        }
        answer.push(whole(&[]));
        PathScript { name: "origin".to_owned(), path: format!("/{}/*", self.name), answer, aside: false }
    }
}

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

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// How often what is to be proved was put to the test.
#[derive(Debug, Default)]
struct Seen {
    answers: u64,
    hits: u64,
    collapsed: u64,
    confirmed: u64,
    stale: u64,
    /// Answers with something that was made for somebody else.
    shared: u64,
    /// Answers with a cookie of their own.
    own_cookies: u64,
    /// Answers in a coding.
    coded: u64,
}

struct Run {
    told: String,
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
    async fn new(seed: u64, folder: &std::path::Path) -> Self {
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
        Self { told, random, origin, config, clock, server, asked: HashMap::new(), seen: Seen::default() }
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
        if self.random.one_in(3) {
            let codings: [&str; 3] = ["gzip", "gzip, br", "identity"];
            let coding: &&str = self.random.of(&codings);
            takes_gzip = coding.contains("gzip");
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
        let told =
            |what: &str| format!("{}: {what} in the answer to {tag}: /{}/\n{answer}", self.told, path.name);
        let cookies = |lines: &larder_testkit::wire::Fields| -> Vec<String> {
            lines.all("set-cookie").map(str::to_owned).collect()
        };
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
        seen.coded += u64::from(is_coded);
        let fields = answer.fields.0.iter().flat_map(|(_, value)| tags(value.as_bytes()));
        for other in fields.chain(tags(&answer.body)).filter(|other| other != tag) {
            seen.shared += 1;
            // Two parts of one representation may be put together where their validator says that they are.
            let Some((_, made_for)) = self.asked.get(&other) else {
                assert!(path.shared == Shared::ByWord, "{}", told("nobody's"));
                continue;
            };
            assert!(path.may_show(made_for, &asked), "{}", told(&format!("what was made for {other}")));
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

    async fn run(mut self) -> Seen {
        for _ in 0..STEPS {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_made_for_one_client_reaches_no_other_unless_its_response_says_so() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    let first = number("LARDER_SEED").unwrap_or_else(now);
    let (seeds, began) = (number("LARDER_SEEDS"), Instant::now());
    println!("LARDER_SEED={first}, {} from there on", seeds.unwrap_or(SEEDS));
    let mut all = Seen::default();
    for seed in first..first + seeds.unwrap_or(SEEDS) {
        if began.elapsed() > TIME_MAX && seeds.is_none() {
            break;
        }
        let folder = tempfile::tempdir().unwrap();
        let seen = Run::new(seed, folder.path()).await.run().await;
        all = Seen {
            answers: all.answers + seen.answers,
            hits: all.hits + seen.hits,
            collapsed: all.collapsed + seen.collapsed,
            confirmed: all.confirmed + seen.confirmed,
            stale: all.stale + seen.stale,
            shared: all.shared + seen.shared,
            own_cookies: all.own_cookies + seen.own_cookies,
            coded: all.coded + seen.coded,
        };
    }
    println!("{all:?}");
    let least = [all.hits, all.collapsed, all.confirmed, all.stale, all.shared, all.own_cookies, all.coded];
    // A machine that is busy otherwise comes to few of them.
    let is_enough = least.iter().all(|count| *count > 0);
    assert!(is_enough || all.answers < 1_000, "LARDER_SEED={first}: {all:?} proves little");
}
