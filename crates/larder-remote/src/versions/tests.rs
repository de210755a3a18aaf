//! Versions on a real server.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use larder_testkit::redis::{RawRedis, RedisServer};
use tokio::time::sleep;

use super::*;
use crate::redis::{Password, RedisPlace, RedisSettings};
use crate::{Address, SystemNames};

/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_millis(200);

struct Sample {
    versions: Versions,
}

impl Sample {
    fn start(server: &RedisServer) -> Self {
        Self::with(RedisSettings {
            place: RedisPlace::Server(Address::Unix(server.socket())),
            tls: None,
            user: None,
            password: None,
            database: 0,
            timeout: TIMEOUT,
            max_object: 1 << 20,
        })
    }

    fn with(server: RedisSettings) -> Self {
        let settings = VersionsSettings { server };
        let versions = Versions::start(settings, Arc::new(SystemNames), Diagnostics::silent());
        Self { versions: versions.unwrap() }
    }

    fn known(&self, name: &VersionName) -> Option<String> {
        self.versions.known(name, |version| version.text.to_string())
    }

    async fn read(&self, name: &VersionName) -> VersionReading {
        self.versions.read(vec![name.clone()]).await.pop().unwrap()
    }

    /// Waits until it is known, and this.
    async fn becomes(&self, name: &VersionName, text: &str) {
        until(|| self.known(name).as_deref() == Some(text), || format!("{name} {:?}", self.known(name)))
            .await;
    }
}

async fn until(holds: impl Fn() -> bool, what: impl Fn() -> String) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited too long: {}", what());
        sleep(Duration::from_millis(1)).await;
    }
}

fn field(text: &str) -> VersionName {
    VersionName::new(b"versions", Some(text.as_bytes())).unwrap()
}

fn version(text: &str) -> VersionReading {
    VersionReading::Version(Version { text: text.into(), time: 0 })
}

fn set(raw: &mut RawRedis, field: &str, text: &str) {
    raw.ask(&[b"HSET", b"versions", field.as_bytes(), text.as_bytes()]);
}

/// How often the server has carried out a command.
fn calls(raw: &mut RawRedis, command: &str) -> u64 {
    let stats = String::from_utf8(raw.ask(&[b"INFO", b"commandstats"]).unwrap()).unwrap();
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")).map(str::to_owned));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn what_was_read_is_known_without_a_command_until_it_changes() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    set(&mut raw, "/a", "1");
    set(&mut raw, "/b", "5");
    let sample = Sample::start(&server);
    let (a, b) = (field("/a"), field("/b"));
    assert_eq!(sample.known(&a), None);
    assert_eq!(sample.versions.read(vec![a.clone(), b.clone()]).await, [version("1"), version("5")]);
    assert_eq!(calls(&mut raw, "hmget"), 1);
    for _ in 0..100_000 {
        assert_eq!(sample.known(&a).as_deref(), Some("1"));
    }
    assert_eq!(calls(&mut raw, "hmget"), 1);
    // A change of one field makes all of them unknown, and one call brings back what is in use.
    raw.ask(&[b"HINCRBY", b"versions", b"/a", b"1"]);
    sample.becomes(&a, "2").await;
    sample.becomes(&b, "5").await;
    assert!(calls(&mut raw, "hmget") <= 3);
    assert_eq!(sample.versions.report().known, 2);
}

#[tokio::test]
async fn many_who_wait_are_read_for_as_one() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    for number in 0..600 {
        set(&mut raw, &format!("/{number}"), &number.to_string());
    }
    let sample = Arc::new(Sample::start(&server));
    // The connection is there.
    sample.read(&field("/0")).await;
    server.stop();
    let mut reads = tokio::task::JoinSet::new();
    for number in 0..600 {
        let sample = Arc::clone(&sample);
        reads.spawn(async move { (number, sample.read(&field(&format!("/{}", number % 600))).await) });
    }
    tokio::task::yield_now().await;
    server.resume();
    while let Some(read) = reads.join_next().await {
        let (number, reading) = read.unwrap();
        assert_eq!(reading, version(&number.to_string()));
    }
    let hmget = calls(&mut raw, "hmget");
    assert!(hmget <= 6, "{hmget}");
}

#[tokio::test]
async fn a_key_of_its_own_is_a_version_too() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    raw.ask(&[b"SET", b"ver:/a", b"abc"]);
    let sample = Sample::start(&server);
    let names = vec![VersionName::new(b"ver:/a", None).unwrap(), VersionName::new(b"ver:/b", None).unwrap()];
    assert_eq!(sample.versions.read(names.clone()).await, [version("abc"), VersionReading::Absent]);
    raw.ask(&[b"SET", b"ver:/a", b"abd"]);
    sample.becomes(&names[0], "abd").await;
    // What does not exist is asked for each time.
    assert_eq!(sample.known(&names[1]), None);
    raw.ask(&[b"SET", b"ver:/b", b"1"]);
    assert_eq!(sample.read(&names[1]).await, version("1"));
}

#[tokio::test]
async fn a_version_begins_with_the_servers_time_and_one_that_is_there_stays() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    set(&mut raw, "/b", "7");
    let sample = Sample::start(&server);
    let key = VersionName::new(b"ver:/a", None).unwrap();
    for name in [field("/a"), field("/b"), key.clone()] {
        sample.versions.begin(name);
    }
    let (mut readings, began) = (Vec::new(), Instant::now());
    while readings.len() < 3 {
        assert!(began.elapsed() < PATIENCE);
        let read = sample.versions.read(vec![field("/a"), field("/b"), key.clone()]).await;
        readings = read
            .into_iter()
            .filter_map(|reading| {
                if let VersionReading::Version(version) = reading { Some(version.text) } else { None }
            })
            .collect();
    }
    assert_eq!(&*readings[1], "7");
    for text in [&readings[0], &readings[2]] {
        assert!(text.parse::<u64>().unwrap() > 1_700_000_000, "{text}");
    }
    // Larder's own write is a change as well: what others write after it is told.
    raw.ask(&[b"HINCRBY", b"versions", b"/b", b"1"]);
    sample.becomes(&field("/b"), "8").await;
}

#[tokio::test]
async fn a_server_that_hangs_is_believed_for_a_moment_and_nobody_waits_for_it() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    set(&mut raw, "/a", "1");
    let sample = Sample::start(&server);
    sample.read(&field("/a")).await;
    server.stop();
    let began = Instant::now();
    until(|| sample.known(&field("/a")).is_none(), || "known".to_owned()).await;
    assert!(began.elapsed() <= TRACKING + Duration::from_millis(500), "{:?}", began.elapsed());
    let began = Instant::now();
    for _ in 0..50 {
        assert_eq!(sample.read(&field("/a")).await, VersionReading::Unknown);
    }
    // Two of them at most have waited: one for the old connection, one for the new one.
    assert!(began.elapsed() < 4 * TIMEOUT, "{:?}", began.elapsed());
    assert_eq!(sample.versions.last(&field("/a")), Some(Version { text: "1".into(), time: 0 }));
    server.resume();
    let began = Instant::now();
    while sample.read(&field("/a")).await != version("1") {
        assert!(began.elapsed() < PATIENCE);
        sleep(Duration::from_millis(5)).await;
    }
    until(
        || sample.versions.report().failure.is_none(),
        || format!("{:?}", sample.versions.report().failure),
    )
    .await;
}

#[tokio::test]
async fn a_server_that_comes_back_empty_has_no_versions_and_one_that_was_set_back_is_told_of() {
    let mut server = RedisServer::start();
    set(&mut server.raw(), "/a", "9");
    let sample = Sample::start(&server);
    assert_eq!(sample.read(&field("/a")).await, version("9"));
    server.kill();
    until(|| sample.known(&field("/a")).is_none(), || "known".to_owned()).await;
    server.restart();
    let began = Instant::now();
    while sample.read(&field("/a")).await != VersionReading::Absent {
        assert!(began.elapsed() < PATIENCE);
        sleep(Duration::from_millis(5)).await;
    }
    set(&mut server.raw(), "/a", "3");
    let VersionReading::Version(back) = sample.read(&field("/a")).await else { panic!("no version") };
    assert!(&*back.text == "3" && back.time > 1_700_000_000, "{back:?}");
    assert_eq!(sample.versions.report().went_back, 1);
}

#[tokio::test]
async fn a_flush_makes_everything_unknown() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    set(&mut raw, "/a", "1");
    let sample = Sample::start(&server);
    sample.read(&field("/a")).await;
    raw.ask(&[b"FLUSHALL"]);
    until(|| sample.known(&field("/a")).is_none(), || "known".to_owned()).await;
    assert_eq!(sample.read(&field("/a")).await, VersionReading::Absent);
    // It is told of changes after that as well.
    set(&mut raw, "/a", "1");
    let VersionReading::Version(again) = sample.read(&field("/a")).await else { panic!("no version") };
    assert!(&*again.text == "1" && again.time > 0, "{again:?}");
    set(&mut raw, "/a", "2");
    sample.becomes(&field("/a"), "2").await;
}

#[tokio::test]
async fn what_is_no_version_is_unknown_and_the_others_go_on() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    let long = "v".repeat(1 << 20);
    for (name, text) in
        [("/long", long.as_str()), ("/bytes", "a\x01b"), ("/empty", ""), ("/nan", "NaN"), ("/less", "-5")]
    {
        set(&mut raw, name, text);
    }
    raw.ask(&[b"SET", b"string", b"1"]);
    let sample = Sample::start(&server);
    let check = async |name: VersionName, expected: VersionReading| {
        assert_eq!(sample.read(&name).await, expected, "{name}");
    };
    check(field("/nan"), version("NaN")).await;
    check(field("/less"), version("-5")).await;
    for name in ["/long", "/bytes", "/empty"] {
        check(field(name), VersionReading::Unknown).await;
        assert_eq!(sample.known(&field(name)), None);
    }
    check(VersionName::new(b"string", Some(b"f")).unwrap(), VersionReading::Unknown).await;
    check(VersionName::new(b"versions", None).unwrap(), VersionReading::Unknown).await;
    assert_eq!(sample.known(&field("/nan")).as_deref(), Some("NaN"));
    assert_eq!(sample.versions.report().unknown, 5);
}

#[tokio::test]
async fn a_server_that_refuses_says_why() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    raw.ask(&[b"ACL", b"SETUSER", b"reader", b"on", b">pass", b"~versions", b"+@all", b"-client|tracking"]);
    raw.ask(&[b"ACL", b"SETUSER", b"other", b"on", b">pass", b"~other", b"+@all"]);
    set(&mut raw, "/a", "1");
    let with = |user: &str, password: &str| {
        Sample::with(RedisSettings {
            place: RedisPlace::Server(Address::Unix(server.socket())),
            tls: None,
            user: Some(user.to_owned()),
            password: Some(Password::Text(password.to_owned())),
            database: 0,
            timeout: TIMEOUT,
            max_object: 1 << 20,
        })
    };
    for (user, password, why) in [("reader", "pass", "tracking"), ("reader", "wrong", "WRONGPASS")] {
        let sample = with(user, password);
        until(|| sample.versions.report().failure.is_some(), || "no failure".to_owned()).await;
        let failure = sample.versions.report().failure.unwrap();
        assert!(failure.contains(why), "{failure}");
        assert_eq!(sample.read(&field("/a")).await, VersionReading::Unknown);
    }
    let sample = with("other", "pass");
    assert_eq!(sample.read(&field("/a")).await, VersionReading::Unknown);
    assert_eq!(sample.versions.report().failure, None);
}

/// A message is no answer: the server is asked for a sign of life all the same.
#[tokio::test]
async fn messages_alone_are_no_sign_of_life() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    let sample = Sample::start(&server);
    sample.read(&field("/a")).await;
    let (before, began) = (calls(&mut raw, "ping"), Instant::now());
    while calls(&mut raw, "ping") < before + 2 {
        assert!(began.elapsed() < PATIENCE);
        raw.ask(&[b"FLUSHDB"]);
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn keys_in_use_are_touched() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    set(&mut raw, "/a", "1");
    let sample = Sample::start(&server);
    sample.read(&field("/a")).await;
    let began = Instant::now();
    while calls(&mut raw, "touch") == 0 {
        assert!(began.elapsed() < PATIENCE && sample.known(&field("/a")).is_some());
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(calls(&mut raw, "hmget"), 1);
}

#[tokio::test]
async fn so_many_versions_are_begun_within_a_second_and_no_more() {
    let server = RedisServer::start();
    let sample = Sample::start(&server);
    sample.read(&field("/a")).await;
    let began = Instant::now();
    for number in 0..300 {
        sample.versions.begin(field(&format!("/{number}")));
    }
    // The second read comes after whatever was begun together with the first.
    for _ in 0..2 {
        sample.read(&field("/a")).await;
    }
    let mut raw = server.raw();
    let begun: u64 =
        String::from_utf8(raw.ask(&[b"HLEN", b"versions"]).unwrap()).unwrap()[1..].parse().unwrap();
    assert!(begun >= 100 && begun <= 100 * (1 + began.elapsed().as_secs()), "{begun}");
}

/// Those that the guide names.
#[tokio::test]
async fn a_user_with_the_rights_of_the_guide_can_do_all_of_it() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    let guide = include_str!("../../../../docs/guide/versions.md");
    let rights = guide.lines().find(|line| line.starts_with("~resource_versions")).unwrap();
    let more = guide.lines().find(|line| line.starts_with("With `write = true` it needs `+eval")).unwrap();
    let more = more.split('`').filter(|part| part.starts_with('+')).flat_map(str::split_whitespace);
    let user =
        ["ACL", "SETUSER", "reader", "on", ">pass"].into_iter().chain(rights.split_whitespace()).chain(more);
    let user: Vec<&[u8]> = user.map(str::as_bytes).collect();
    assert_eq!(raw.ask(&user).unwrap(), b"+OK");
    let sample = Sample::with(RedisSettings {
        place: RedisPlace::Server(Address::Unix(server.socket())),
        tls: None,
        user: Some("reader".to_owned()),
        password: Some(Password::Text("pass".to_owned())),
        database: 0,
        timeout: TIMEOUT,
        max_object: 1 << 20,
    });
    let (a, key) = (
        VersionName::new(b"resource_versions", Some(b"/a")).unwrap(),
        VersionName::new(b"resource_versions", None).unwrap(),
    );
    assert_eq!(sample.read(&a).await, VersionReading::Absent);
    sample.versions.begin(a.clone());
    let began = Instant::now();
    while sample.read(&a).await == VersionReading::Absent {
        assert!(began.elapsed() < PATIENCE);
    }
    raw.ask(&[b"DEL", b"resource_versions"]);
    raw.ask(&[b"SET", b"resource_versions", b"7"]);
    assert_eq!(sample.read(&key).await, version("7"));
    assert_eq!(sample.versions.report().failure, None);
    assert!(!raw.ask_list(&[b"ACL", b"LOG"]).is_ok_and(|refused| !refused.is_empty()), "refused commands");
}

/// Whatever is known was the version at some moment since the last sign of life: it never goes back, and a read never brings less than
/// was confirmed before it.
#[tokio::test]
async fn under_changes_nothing_goes_back() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    set(&mut raw, "/a", "0");
    let sample = Sample::start(&server);
    let number = |version: &Version| version.text.parse::<u64>().unwrap();
    let mut seen = 0;
    for bumped in 1..=2000_u64 {
        raw.ask(&[b"HINCRBY", b"versions", b"/a", b"1"]);
        if bumped % 3 == 0 {
            let VersionReading::Version(version) = sample.read(&field("/a")).await else {
                panic!("{bumped}")
            };
            assert_eq!(number(&version), bumped);
        }
        if let Some(known) = sample.versions.known(&field("/a"), number) {
            assert!((seen..=bumped).contains(&known), "{known} after {seen}, {bumped}");
            seen = known;
        }
        tokio::task::yield_now().await;
    }
    sample.becomes(&field("/a"), "2000").await;
    assert_eq!(sample.versions.report().went_back, 0);
}
