//! A name server on loopback that says what a test tells it, over UDP and TCP on one port.
//!
//! In: answers by name and kind, which may change at any time. Out: those answers, and how often each was asked for.
//! Its messages are written by hand, so that nothing of the library under test is on both sides.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

pub const A: u16 = 1;
pub const AAAA: u16 = 28;
pub const SRV: u16 = 33;

pub const SERVFAIL: u8 = 2;
pub const NXDOMAIN: u8 = 3;
pub const REFUSED: u8 = 5;

/// One record's data.
#[derive(Clone, Debug)]
pub enum Data {
    A([u8; 4]),
    Aaaa(Ipv6Addr),
    Srv(u16, u16, u16, &'static str),
    Cname(&'static str),
}

/// What is done about a question.
#[derive(Clone, Debug)]
pub enum Reply {
    Records(Vec<Data>),
    /// Over UDP cut short and empty; the records over TCP.
    OverTcp(Vec<Data>),
    /// An answer with this code and without records.
    Code(u8),
    /// An answer with another number first, then the true one.
    AfterForeign(Vec<Data>),
    Silence,
}

#[derive(Default)]
struct Book {
    replies: HashMap<(String, u16), Reply>,
    asked: HashMap<(String, u16), usize>,
}

/// Answers until dropped. A name nobody told it about does not exist; a kind nobody told it about is empty.
pub struct NameServer {
    pub address: SocketAddr,
    book: Arc<Mutex<Book>>,
    total: watch::Receiver<usize>,
    tasks: Vec<AbortHandle>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl NameServer {
    pub async fn start() -> Self {
        // A port that is free for UDP may be taken for TCP.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let book = Arc::<Mutex<Book>>::default();
        let (count, total) = watch::channel(0);
        let count = Arc::new(count);
        let tasks = vec![
            tokio::spawn(serve_udp(udp, book.clone(), count.clone())).abort_handle(),
            tokio::spawn(serve_tcp(tcp, book.clone(), count)).abort_handle(),
        ];
        Self { address, book, total, tasks }
    }

    pub fn set(&self, name: &str, kind: u16, reply: Reply) {
        self.book.lock().replies.insert((name.to_owned(), kind), reply);
    }

    /// `name` has these IPv4 addresses.
    pub fn hosts(&self, name: &str, addresses: &[[u8; 4]]) {
        self.set(name, A, Reply::Records(addresses.iter().copied().map(Data::A).collect()));
    }

    /// `name` is offered at these.
    pub fn service(&self, name: &str, targets: &[(u16, u16, u16, &'static str)]) {
        let records =
            targets.iter().map(|(priority, weight, port, host)| Data::Srv(*priority, *weight, *port, host));
        self.set(name, SRV, Reply::Records(records.collect()));
    }

    pub fn forget(&self, name: &str) {
        self.book.lock().replies.retain(|(known, _), _| known != name);
    }

    pub fn asked(&self, name: &str, kind: u16) -> usize {
        self.book.lock().asked.get(&(name.to_owned(), kind)).copied().unwrap_or(0)
    }

    /// Waits until `name` has been asked for `times` more times.
    pub async fn asked_again(&self, name: &str, kind: u16, times: usize) {
        let aim = self.asked(name, kind) + times;
        let mut total = self.total.clone();
        let asked = async {
            while self.asked(name, kind) < aim {
                total.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.expect("it is asked in good time");
    }
}

async fn serve_udp(socket: UdpSocket, book: Arc<Mutex<Book>>, count: Arc<watch::Sender<usize>>) {
    let mut buffer = [0; 512];
    loop {
        let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
        for answer in answers(&buffer[..length], &book, false) {
            // Whoever asked may have gone.
            let _ = socket.send_to(&answer, client).await;
        }
        count.send_modify(|count| *count += 1);
    }
}

async fn serve_tcp(listener: TcpListener, book: Arc<Mutex<Book>>, count: Arc<watch::Sender<usize>>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let length = stream.read_u16().await.unwrap();
        let mut query = vec![0; length.into()];
        stream.read_exact(&mut query).await.unwrap();
        for answer in answers(&query, &book, true) {
            stream.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        }
        count.send_modify(|count| *count += 1);
    }
}

fn answers(query: &[u8], book: &Mutex<Book>, is_tcp: bool) -> Vec<Vec<u8>> {
    let (name, kind, end) = question(query);
    let question = &query[..end];
    let mut book = book.lock();
    *book.asked.entry((name.clone(), kind)).or_default() += 1;
    let reply = book.replies.get(&(name.clone(), kind)).cloned();
    let is_known = book.replies.keys().any(|(known, _)| *known == name);
    match reply {
        None if is_known => vec![answer(question, 0, &[])],
        None => vec![answer(question, NXDOMAIN, &[])],
        Some(Reply::Silence) => Vec::new(),
        Some(Reply::Code(code)) => vec![answer(question, code, &[])],
        Some(Reply::OverTcp(_)) if !is_tcp => {
            let mut cut = answer(question, 0, &[]);
            cut[2] |= 0x02;
            vec![cut]
        }
        Some(Reply::AfterForeign(records)) => {
            let fine = answer(question, 0, &records);
            let mut foreign = answer(question, 0, &[Data::A([192, 0, 2, 66])]);
            foreign[0] ^= 0xff;
            vec![foreign, fine]
        }
        Some(Reply::Records(records) | Reply::OverTcp(records)) => vec![answer(question, 0, &records)],
    }
}

/// The name asked for, the kind, and where the question ends.
fn question(query: &[u8]) -> (String, u16, usize) {
    let mut at = 12;
    let mut labels = Vec::new();
    while query[at] > 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8(query[at + 1..=at + length].to_vec()).unwrap());
        at += 1 + length;
    }
    (labels.join("."), u16::from_be_bytes([query[at + 1], query[at + 2]]), at + 5)
}

fn answer(question: &[u8], code: u8, records: &[Data]) -> Vec<u8> {
    let mut bytes = question.to_vec();
    bytes[2] = 0x81;
    bytes[3] = 0x80 | code;
    let count = u16::try_from(records.len()).unwrap();
    bytes[6..8].copy_from_slice(&count.to_be_bytes());
    bytes[10..12].copy_from_slice(&[0, 0]);
    // Records belong to the name asked for, or to the alias that came before them.
    let mut owner = vec![0xc0, 12];
    for record in records {
        let (kind, data) = match record {
            Data::A(ip) => (A, ip.to_vec()),
            Data::Aaaa(ip) => (AAAA, ip.octets().to_vec()),
            Data::Srv(priority, weight, port, host) => {
                let mut data: Vec<u8> =
                    [priority, weight, port].into_iter().flat_map(|number| number.to_be_bytes()).collect();
                data.extend(wire_name(host));
                (SRV, data)
            }
            Data::Cname(alias) => (5, wire_name(alias)),
        };
        bytes.extend(&owner);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 0]);
        bytes.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(&data);
        if let Data::Cname(alias) = record {
            owner = wire_name(alias);
        }
    }
    bytes
}

fn wire_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
