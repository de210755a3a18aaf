//! What is counted: the table of scenarios, and how one is played.
//!
//! In: a scenario and a number of requests. Out: the instructions that larder took for that many requests, once
//! it has started, the cache is full, and some were there before. Every answer's status and body are checked, and how often the origin
//! was asked, so that no count is that of an error or of the wrong way.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

use super::callgrind::{Counted, Idle};
use super::origin::Origin;
use super::stream::Stream;
use super::{MARGIN_OF_PURGES_PERCENT, MARGIN_PERCENT, http1, http2};
use harness::browser;
use harness::children::free_port;
use harness::origin::body;
use harness::pages::{self, Form, FragmentedPage, Theme};
use larder_testkit::certificates::{Certificates, SanType};
use rustls::ClientConfig;

/// The config with everything on.
const EVERYTHING: &str = "bench/full.toml";

/// The config of the other scenarios.
const PLAIN: &str = r#"
[log]
access = "off"

[origins.app]
servers = "http://127.0.0.1:3000"

[[site]]
origin = "app"
"#;

/// Where requests may purge.
const PURGE: &str = "purge = { token = \"0123456789abcdef0123456789abcdef\" }\n";
const TOKEN: (&str, &str) = ("Authorization", "Bearer 0123456789abcdef0123456789abcdef");

/// What the configs say in place of the origin that runs, and of the log where one is written.
const ORIGIN: &str = "http://127.0.0.1:3000";
const LOG: &str = "access = \"off\"";

/// What of everything would come at its own time, and so more often in a slower run.
const CHECKS: &str = "every = \"5s\"";

/// Where the config with everything on has the site that is measured, and the rule that decides.
pub(super) const HOST: &str = "localhost";
const FOLDER: &str = "/page/";

/// A field that a scenario asks with or the origin answers with.
type Field = (String, String);

/// One row.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    config: String,
    log: bool,
    way: Way,
    /// Over TLS 1.3; the handshake is not counted.
    secured: bool,
    work: Work,
    /// Something else was purged once before.
    purged: bool,
    asks: Vec<Field>,
    /// Each request has another value of a field that nothing reads.
    differs: bool,
    answers: Vec<Field>,
    /// Length of the origin's body.
    bytes: usize,
    /// A template in place of a body, and as many fragments as it has.
    page: Option<FragmentedPage>,
    status: u16,
    /// What of the body is expected.
    part: Range<usize>,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A request for what is stored.
    Hit,
    /// A request for something new.
    Miss,
    /// A purge of a tag that nothing has, another one each time.
    Purge,
    /// Such a purge, and the hit that follows it.
    PurgeAndHit,
}

impl Scenario {
    /// How far its count may be from its committed figure.
    pub(super) fn margin_percent(&self) -> f64 {
        match self.work {
            Work::Hit | Work::Miss => MARGIN_PERCENT,
            Work::Purge | Work::PurgeAndHit => MARGIN_OF_PURGES_PERCENT,
        }
    }
}

/// How a client asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Everything over one connection, HTTP/1.1.
    Kept,
    /// A connection for each request, which says that it is the last.
    Each,
    /// Everything over one connection, HTTP/2.
    Http2,
}

/// What a client got.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Every scenario, in the order of the table.
pub(super) fn all(root: &Path) -> Result<Vec<Scenario>> {
    let everything = fs::read_to_string(root.join(EVERYTHING)).context(EVERYTHING)?;
    ensure!(everything.contains(CHECKS), "{EVERYTHING} does not say `{CHECKS}`");
    let everything = everything.replace(CHECKS, "every = \"1h\"");
    let everything = |name| Scenario { config: everything.clone(), ..hit(name, 134) };
    let asks = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    Ok(vec![
        hit("hit, 134 B", 134),
        hit("hit, 8357 B", 8357),
        Scenario { answers: fields(30), ..hit("hit, 134 B, 30 response fields", 134) },
        Scenario { asks: long_history(), ..hit("hit, 134 B, 20 request fields, 2 KB of Cookie", 134) },
        Scenario { asks: asks("If-None-Match", "\"one\""), status: 304, part: 0..0, ..hit("hit, 304", 8357) },
        Scenario {
            asks: asks("Range", "bytes=1000-1499"),
            status: 206,
            part: 1000..1500,
            ..hit("hit, range of 500 B", 8357)
        },
        Scenario { way: Way::Each, ..hit("hit, 134 B, a connection each", 134) },
        Scenario { way: Way::Http2, ..hit("hit, 134 B, HTTP/2", 134) },
        Scenario { secured: true, ..hit("hit, 134 B, TLS", 134) },
        Scenario { secured: true, ..hit("hit, 8357 B, TLS", 8357) },
        Scenario { secured: true, way: Way::Http2, ..hit("hit, 134 B, HTTP/2 over TLS", 134) },
        Scenario { asks: page_load(), ..hit("hit, 134 B, as a browser asks", 134) },
        Scenario { secured: true, asks: page_load(), ..hit("hit, 134 B, as a browser asks, TLS", 134) },
        Scenario { way: Way::Http2, asks: page_load(), ..hit("hit, 134 B, as a browser asks, HTTP/2", 134) },
        Scenario {
            secured: true,
            way: Way::Http2,
            asks: page_load(),
            ..hit("hit, 134 B, as a browser asks, HTTP/2 over TLS", 134)
        },
        Scenario { log: true, ..hit("hit, 134 B, access log", 134) },
        Scenario { config: rules(10), ..hit("hit, 134 B, 10 rules", 134) },
        everything("hit, 134 B, everything on"),
        Scenario { way: Way::Each, ..everything("hit, 134 B, everything on, a connection each") },
        Scenario { way: Way::Http2, ..everything("hit, 134 B, everything on, HTTP/2") },
        Scenario { log: true, ..everything("hit, 134 B, everything on, access log") },
        Scenario { work: Work::Miss, ..hit("miss, 134 B", 134) },
        tagged("hit, 134 B, 20 tags"),
        Scenario { purged: true, ..tagged("hit, 134 B, 20 tags, after a purge") },
        Scenario { work: Work::PurgeAndHit, ..tagged("purge of another tag, and the hit after it") },
        Scenario { work: Work::Purge, ..tagged("purge of a tag") },
        Scenario { config: assembling(), ..hit("hit, 8357 B, assembled where it has directives", 8357) },
        Scenario { differs: true, ..page("page of 10 fragments, kept", Theme::Plain) },
        Scenario { differs: true, ..page("page of 10 fragments, put together", Theme::Address) },
    ])
}

/// The plain config with templates that say nothing of themselves.
fn assembling() -> String {
    format!("{PLAIN}assemble = {{ language = \"ssi\", types = [\"text/html\", \"text/plain\"] }}\n")
}

/// A page of ten fragments, all of which are stored.
fn page(name: &'static str, theme: Theme) -> Scenario {
    let page = FragmentedPage { form: Form::Ssi, theme, fragments: 10, fragment_bytes: 700, bytes: 9300 };
    Scenario { config: assembling(), page: Some(page), ..hit(name, page.bytes) }
}

/// A hit over HTTP/1.1 with a plain config and few fields: what the others are variants of.
fn hit(name: &'static str, bytes: usize) -> Scenario {
    Scenario {
        name,
        config: PLAIN.to_owned(),
        log: false,
        way: Way::Kept,
        secured: false,
        work: Work::Hit,
        purged: false,
        asks: Vec::new(),
        differs: false,
        answers: Vec::new(),
        bytes,
        page: None,
        status: 200,
        part: 0..bytes,
    }
}

/// A hit on what has 20 tags, where requests may purge. Clients get no tags: the answer is as long as without.
fn tagged(name: &'static str) -> Scenario {
    let tags: Vec<String> = (0..20).map(|number| format!("product-{number:05}")).collect();
    let answers = vec![("Surrogate-Key".to_owned(), tags.join(" "))];
    Scenario { config: format!("{PLAIN}{PURGE}"), answers, ..hit(name, 134) }
}

/// The plain config with so many rules, of which the last one decides.
fn rules(count: usize) -> String {
    let passed = (1..count).map(|number| {
        format!(
            "[[site.rule]]\npath = [\"/section-{number}/*\", \"*.type-{number}\"]\nttl = \"{number}m\"\n\n"
        )
    });
    let decides = format!("[[site.rule]]\npath = \"{FOLDER}*\"\nttl = \"1h\"\n");
    format!("{PLAIN}\n{}{decides}", passed.collect::<String>())
}

/// So many field lines as applications send them.
fn fields(count: usize) -> Vec<Field> {
    let field = |number| {
        (format!("X-Application-Field-{number:02}"), format!("value {number:02}; of a usual length"))
    };
    (0..count).map(field).collect()
}

/// What browsers send, and cookies of 2 KB.
fn long_history() -> Vec<Field> {
    let cookies: Vec<String> =
        (0..32).map(|number| format!("preference_{number:02}={}", "v".repeat(48))).collect();
    let cookies = cookies.join("; ");
    let known = [
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Language", "en-GB,en;q=0.7,de;q=0.3"),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Referer", "http://localhost/front-page?from=elsewhere"),
        ("Connection", "keep-alive"),
        ("Cookie", &cookies),
        ("Upgrade-Insecure-Requests", "1"),
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Sec-Fetch-User", "?1"),
        ("Priority", "u=0, i"),
        ("DNT", "1"),
    ];
    let known: Vec<Field> =
        known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let more = 20 - known.len();
    known.into_iter().chain(fields(more)).collect()
}

/// What a browser asks with.
fn page_load() -> Vec<Field> {
    browser::FIELDS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Instructions of `counted` requests, after `before` others.
pub(super) fn play(program: &Path, scenario: &Scenario, (before, counted): (u64, u64)) -> Result<u64> {
    let scratch = tempfile::tempdir()?;
    let idle = Idle::default();
    let content = scenario.page.map_or_else(|| body(scenario.bytes), |page| page.page(0));
    let answers = answers(scenario.answers.clone(), content.clone());
    let origin = Origin::start(FOLDER, Arc::new(answers), &idle)?;
    let listen = free_port()?;
    let config = scratch.path().join("larder.toml");
    let certificates = scenario.secured.then(|| {
        Certificates::with(HOST, |params| {
            params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        })
    });
    let text = config_text(scenario, origin.address, listen, certificates.as_ref()).context("the config")?;
    fs::write(&config, text)?;
    // The folder of files that a site of full.toml serves.
    fs::create_dir(scratch.path().join("public"))?;
    let mut larder = Counted::start(program, &config, scratch.path(), idle)?;

    let expected = content.get(scenario.part.clone()).context("a part beyond the body")?;
    let hot = scenario.page.map_or_else(|| format!("{FOLDER}hot"), |page| page.target());
    if scenario.page.is_some() {
        // It comes in chunks while its fragments arrive, which the client does not read.
        http1::Connection::new(Stream::open(listen, None)?).discard(HOST, &hot)?;
    }
    let mut client = Client::open(scenario, listen, certificates.as_ref(), &larder.idle)?;
    let misses = scenario.work == Work::Miss;
    if !misses {
        larder.idle.wait()?;
        let answer = client.ask(&hot, &[])?;
        ensure!(answer.status == 200 && answer.body == content, "wrong at first: status {}", answer.status);
    }
    if scenario.purged {
        larder.idle.wait()?;
        client.purge("before")?;
    }
    for number in 0..before + counted {
        if number == before {
            larder.begin()?;
        }
        // Of one length, so that the last is as much work as the first.
        let name = format!("{number:08}");
        if matches!(scenario.work, Work::Purge | Work::PurgeAndHit) {
            larder.idle.wait()?;
            client.purge(&name)?;
        }
        if scenario.work != Work::Purge {
            let target = if misses { format!("{FOLDER}{name}") } else { hot.clone() };
            let mut asks = scenario.asks.clone();
            asks.extend(scenario.differs.then(|| ("X-Number".to_owned(), name)));
            larder.idle.wait()?;
            let answer = client.ask(&target, &asks)?;
            ensure!(answer.status == scenario.status, "status {}", answer.status);
            ensure!(answer.body == expected, "a wrong body of {} bytes", answer.body.len());
        }
    }
    let instructions = larder.counted()?;
    let fragments = scenario.page.map_or(0, |page| page.fragments as u64);
    let wanted = if misses { before + counted } else { 1 + fragments };
    ensure!(origin.asked() == wanted, "the origin was asked {} times, not {wanted}", origin.asked());
    Ok(instructions)
}

/// What the origin answers: for pages and fragments what they are, else this body, each with these fields.
fn answers(fields: Vec<Field>, content: Vec<u8>) -> impl Fn(&str) -> Vec<u8> + Send + Sync {
    move |target| match pages::answer(target) {
        Some(page) => message(&fields, &page.content),
        None => message(&fields, &content),
    }
}

fn message(fields: &[Field], content: &[u8]) -> Vec<u8> {
    let mut message = String::from(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600\r\nETag: \"one\"\r\n\
         Last-Modified: Mon, 03 Nov 2025 10:00:00 GMT\r\n",
    );
    for (name, value) in fields {
        message.extend([name, ": ", value, "\r\n"]);
    }
    message.push_str(&format!("Content-Length: {}\r\n\r\n", content.len()));
    [message.as_bytes(), content].concat()
}

/// The scenario's config with the origin that runs, without an admin, with a log where it is to be counted, and with
/// certificates for its first site where it is asked over TLS.
fn config_text(
    scenario: &Scenario,
    origin: SocketAddr,
    listen: SocketAddr,
    certificates: Option<&Certificates>,
) -> Result<String> {
    let text = &scenario.config;
    ensure!(text.contains(ORIGIN) && text.contains(LOG), "it does not say `{ORIGIN}` and `{LOG}`");
    let text = text.replace(ORIGIN, &format!("http://{origin}"));
    let text = if scenario.log { text.replace(LOG, "access = \"./access.log\"") } else { text };
    let Some(certificates) = certificates else {
        return Ok(format!("listen = [\"{listen}\"]\nadmin = false\n{text}"));
    };
    let (before, site) = text.split_once("[[site]]").context("it has no site")?;
    let (rest_of_line, site) = site.split_once('\n').context("its site is empty")?;
    let (cert, key) = (certificates.file("server.pem"), certificates.file("server.key"));
    Ok(format!(
        "listen = [{{ address = \"{listen}\", tls = true }}]\nadmin = false\n\
         {before}[[site]]{rest_of_line}\ntls = {{ cert = {cert:?}, key = {key:?} }}\n{site}"
    ))
}

enum Client {
    Kept(http1::Connection),
    Each(SocketAddr, Idle),
    Http2(http2::Connection),
}

impl Client {
    fn open(
        scenario: &Scenario,
        address: SocketAddr,
        certificates: Option<&Certificates>,
        idle: &Idle,
    ) -> Result<Self> {
        let open = |protocol: &[u8]| -> Result<Stream> {
            let config: Option<Arc<ClientConfig>> =
                certificates.map(|certificates| certificates.client_config(&[protocol]));
            Stream::open(address, config.as_ref())
        };
        Ok(match scenario.way {
            Way::Kept => Self::Kept(http1::Connection::new(open(b"http/1.1")?)),
            Way::Each => Self::Each(address, idle.clone()),
            Way::Http2 => Self::Http2(http2::Connection::begin(open(b"h2")?)?),
        })
    }

    fn ask(&mut self, target: &str, fields: &[Field]) -> Result<Answer> {
        match self {
            Self::Kept(connection) => connection.exchange(HOST, target, fields),
            Self::Each(address, idle) => {
                let last = [fields, &[("Connection".to_owned(), "close".to_owned())]].concat();
                // As under load: the request is there by the time the connection is accepted.
                let mut connection = idle.stopped(|| {
                    let mut connection = http1::Connection::new(Stream::open(*address, None)?);
                    connection.send("GET", HOST, target, &last)?;
                    Ok(connection)
                })?;
                let answer = connection.answer()?;
                connection.ended()?;
                Ok(answer)
            }
            Self::Http2(connection) => connection.exchange(HOST, target, fields),
        }
    }

    /// Purges what has this tag, in the words of FOSHttpCache.
    fn purge(&mut self, tag: &str) -> Result<()> {
        let Self::Kept(connection) = self else { bail!("purges take a kept connection of HTTP/1.1") };
        let fields = [TOKEN, ("xkey-purge", tag)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        connection.send("PURGEKEYS", HOST, "/", &fields)?;
        let answer = connection.answer()?;
        ensure!(answer.status == 200 && answer.body.starts_with(b"Purged"), "status {}", answer.status);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_config_gets_this_origin_and_its_log() {
        let origin = "127.0.0.1:45678".parse().unwrap();
        for scenario in all(&crate::checkout()).unwrap() {
            let text = config_text(&scenario, origin, origin, None).unwrap();
            assert!(!text.contains(ORIGIN) && text.contains("http://127.0.0.1:45678"), "{}", scenario.name);
            assert_eq!(text.contains("./access.log"), scenario.log, "{}", scenario.name);
        }
        let lost = Scenario { config: String::new(), ..hit("lost", 0) };
        assert!(config_text(&lost, origin, origin, None).is_err());
    }

    #[test]
    fn a_browser_asks_with_twenty_fields_and_two_kilobytes_of_cookies() {
        let fields = long_history();
        let cookie = fields.iter().find(|(name, _)| name == "Cookie").unwrap();
        assert_eq!(fields.len(), 20);
        assert!((2000..2200).contains(&cookie.1.len()), "{}", cookie.1.len());
    }
}
