//! A network that fails, between larders and their Redis: connections are cut at each byte, and replies are replaced.
//!
//! In: where Redis listens. Out: an address of the test's own, and what it does to the replies that pass. Every second reply that has a record
//! in it is concerned, and one of 64 others, among them those of the fleet's log: so most calls go well, and the server is not left alone.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// How a record begins.
const RECORD: &[u8] = b"lrdr";
/// A reply with a short record has fewer bytes.
const SHORT: usize = 800;
const STEP: u64 = 37;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Harm {
    Nothing,
    /// The connection ends within a reply, at another byte each time. Of short records each byte has its turn.
    Cut,
    /// Other bytes come in its place.
    Garbage,
    /// So many bytes are announced that no larder has room for them, and few of them come.
    Announced,
}

#[derive(Debug, Default)]
struct Harmful {
    harm: AtomicUsize,
    records: AtomicU64,
    others: AtomicU64,
    harmed: AtomicU64,
    short: AtomicU64,
    /// The bytes behind which replies with short records were cut.
    places: Mutex<BTreeSet<usize>>,
}

/// What larders take for their Redis.
#[derive(Debug)]
pub(super) struct Between {
    pub(super) addr: SocketAddr,
    harmful: Arc<Harmful>,
}

impl Between {
    pub(super) async fn before(server: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let harmful = Arc::new(Harmful::default());
        let of_all = Arc::clone(&harmful);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (server, harmful) = (server.clone(), Arc::clone(&of_all));
                tokio::spawn(async move {
                    if let Ok(server) = UnixStream::connect(server).await {
                        pass(stream, server, &harmful).await;
                    }
                });
            }
        });
        Self { addr, harmful }
    }

    pub(super) fn does(&self, harm: Harm) {
        self.harmful.harm.store(harm as usize, Ordering::SeqCst);
    }

    /// At how many places replies with short records were cut.
    pub(super) fn places(&self) -> usize {
        self.harmful.places.lock().len()
    }

    /// How many replies it has done something to.
    pub(super) fn harmed(&self) -> u64 {
        self.harmful.harmed.load(Ordering::SeqCst)
    }
}

impl Harmful {
    /// Where this reply is cut.
    fn place(&self, reply: &[u8], is_record: bool, number: u64) -> usize {
        let is_short = is_record && reply.len() < SHORT;
        let number = if is_short { self.short.fetch_add(1, Ordering::SeqCst) } else { number };
        // A prime: with steps of it each place comes once before one comes again.
        let place = usize::try_from(number * STEP).unwrap() % reply.len();
        if is_short {
            self.places.lock().insert(place);
        }
        place
    }

    /// What becomes of this reply: what is sent in its place, and whether the connection ends then.
    fn harms(&self, reply: &[u8]) -> Option<(Vec<u8>, bool)> {
        let harm = self.harm.load(Ordering::SeqCst);
        let is_record = reply.windows(RECORD.len()).any(|part| part == RECORD);
        let (count, of) = if is_record { (&self.records, 2) } else { (&self.others, 64) };
        if harm == Harm::Nothing as usize || !count.fetch_add(1, Ordering::SeqCst).is_multiple_of(of) {
            return None;
        }
        let number = self.harmed.fetch_add(1, Ordering::SeqCst);
        if harm == Harm::Cut as usize {
            return Some((reply[..self.place(reply, is_record, number)].to_vec(), true));
        }
        if harm == Harm::Announced as usize {
            return Some(([&b"$104857600\r\n"[..], &[b'x'; 4096]].concat(), false));
        }
        // Among these there is nothing that is true, or of another key.
        let replaced: &[u8] = match number % 6 {
            0 => b"HTTP/1.1 400 Bad Request\r\n\r\n",
            1 => b"$5\r\nother\r\n",
            2 => b"*3\r\n$4\r\nlrdr\r\n:1\r\n$-1\r\n",
            3 => b"%1\r\n$1\r\na\r\n_\r\n",
            4 => b"-ERR no\r\n-ERR no\r\n-ERR no\r\n",
            _ => {
                let bytes = (0..reply.len()).map(|at| (at as u64 * 31 + number * 7919 % 251) as u8);
                return Some((bytes.collect(), false));
            }
        };
        Some((replaced.to_vec(), false))
    }
}

/// Passes bytes on until either side ends.
async fn pass(mut larder: TcpStream, mut server: UnixStream, harmful: &Harmful) {
    let (mut asked, mut reply) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = larder.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut reply) => {
                let Ok(length @ 1..) = read else { return };
                let harmed = harmful.harms(&reply[..length]);
                let (sent, ends) = harmed.as_ref().map_or((&reply[..length], false), |(sent, ends)| (&sent[..], *ends));
                if larder.write_all(sent).await.is_err() || ends {
                    return;
                }
            }
        }
    }
}
