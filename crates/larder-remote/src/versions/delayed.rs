//! Versions behind a network that delays what the server says: replies and messages of changes come late, together, or in pieces.
//!
//! A read and a change of what it reads are under way at once, in each round anew. If a reply from before the change counted after its
//! message, the old version would stay known, since the server tells of each change once.
#![allow(clippy::unwrap_used)]

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use larder_testkit::dice::Dice;
use larder_testkit::redis::RedisServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use super::*;
use crate::redis::{RedisPlace, RedisSettings};
use crate::{Address, SystemNames};

const ROUNDS: u64 = 10_000;
/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Passes on what the server says, some of it a while later or in two pieces.
async fn delay(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut dice: Dice,
) -> io::Result<()> {
    let mut piece = vec![0; 16 << 10];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        let (first, second) = piece[..read].split_at(dice.below(read as u64 + 1) as usize);
        for part in [first, second] {
            match dice.below(8) {
                0 => sleep(Duration::from_millis(1)).await,
                turns => {
                    for _ in 0..turns {
                        yield_now().await;
                    }
                }
            }
            to.write_all(part).await?;
        }
    }
}

/// Stands before a server, at a socket of its own.
fn stand_before(server: PathBuf, socket: PathBuf) {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        let mut dice = Dice::new(14);
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = UnixStream::connect(&server).await else { continue };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let dice = Dice::new(dice.draw());
            tokio::spawn(async move {
                let (mut from_client, mut to_server) = (from_client, to_server);
                // Whichever end comes first ends both.
                tokio::select! {
                    _ = copy(&mut from_client, &mut to_server) => {}
                    _ = delay(from_server, to_client, dice) => {}
                }
            });
        }
    });
}

/// What was confirmed last, and when, in milliseconds since `began`.
struct Bumped {
    began: Instant,
    number: AtomicU64,
    at: AtomicU64,
}

impl Bumped {
    fn millis(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn note(&self, number: u64) {
        let now = self.millis();
        // Who reads the number first is at most too patient.
        self.at.store(now, Ordering::SeqCst);
        self.number.store(number, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_from_before_a_change_never_counts_after_it() {
    let server = RedisServer::start();
    let mut raw = server.raw();
    raw.ask(&[b"HSET", b"versions", b"/a", b"0"]);
    let socket = server.socket().with_file_name("delayed");
    stand_before(server.socket(), socket.clone());
    let settings = VersionsSettings {
        server: RedisSettings {
            place: RedisPlace::Server(Address::Unix(socket)),
            tls: None,
            user: None,
            password: None,
            database: 0,
            timeout: Duration::from_secs(5),
            max_object: 1 << 20,
        },
    };
    let versions = Versions::start(settings, Arc::new(SystemNames), Diagnostics::silent()).unwrap();
    let (versions, name) = (Arc::new(versions), VersionName::new(b"versions", Some(b"/a")).unwrap());
    let bumped = Bumped { began: Instant::now(), number: AtomicU64::new(0), at: AtomicU64::new(0) };
    let (bumped, is_over) = (Arc::new(bumped), Arc::new(AtomicBool::new(false)));
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let (versions, name, bumped, is_over) =
            (Arc::clone(&versions), name.clone(), Arc::clone(&bumped), Arc::clone(&is_over));
        readers.spawn(async move {
            let (mut seen, mut reads) = (0, 0_u64);
            while !is_over.load(Ordering::SeqCst) {
                let (number, at, now) =
                    (bumped.number.load(Ordering::SeqCst), bumped.at.load(Ordering::SeqCst), bumped.millis());
                let known = versions.known(&name, |version| version.text.parse::<u64>().unwrap());
                if let Some(known) = known {
                    assert!(known >= seen, "{known} after {seen}");
                    let is_late = now > at + TRACKING.as_millis() as u64;
                    assert!(!is_late || known >= number, "{known}, and {number} since {} ms", now - at);
                    seen = known;
                    sleep(Duration::from_millis(1)).await;
                } else {
                    match versions.read(vec![name.clone()]).await.pop().unwrap() {
                        VersionReading::Version(version) => {
                            let read = version.text.parse::<u64>().unwrap();
                            assert!(read >= number, "{read}, and {number} was there before it was asked");
                        }
                        // A machine that stood still: the server was not heard of for too long.
                        VersionReading::Unknown => {}
                        VersionReading::Absent => panic!("it is there"),
                    }
                    reads += 1;
                }
            }
            reads
        });
    }
    let mut dice = Dice::new(7);
    for round in 1..=ROUNDS {
        // While a read is under way that the last change has caused, or when nothing is.
        for _ in 0..dice.below(30) {
            yield_now().await;
        }
        raw.ask(&[b"HINCRBY", b"versions", b"/a", b"1"]);
        bumped.note(round);
        if round % 10 == 0 {
            let began = Instant::now();
            while versions.known(&name, |version| version.text.parse::<u64>().unwrap()) != Some(round) {
                assert!(began.elapsed() < PATIENCE && !readers.is_empty(), "{round}");
                if let Some(ended) = readers.try_join_next() {
                    panic!("a reader has ended: {ended:?}");
                }
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
    is_over.store(true, Ordering::SeqCst);
    let mut reads = 0;
    while let Some(ended) = readers.join_next().await {
        reads += ended.unwrap();
    }
    assert!(reads > ROUNDS / 10, "{reads}");
    assert_eq!(versions.report().went_back, 0);
}
