//! A server that answers every request, in a way that the test may change while it runs, and says which one it is.
//!
//! In: an address on loopback and a mood. Out: the testkit's origin there, whose content is the server's name; what it was
//! asked, and whether it has connections. It ends when dropped.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::ServerAddress;
use crate::sockets::origins::{address, closes, fine, silent, until};
use crate::sockets::patience::PATIENCE;
use larder_testkit::origin::{Answer, Origin};
use parking_lot::Mutex;

/// What is done about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// An answer with this status.
    Answers(u16),
    /// Reads and says nothing.
    Silent,
    /// Closes instead of answering.
    Closes,
    /// For `/half`, half of the content, and the rest when the mood changes; for others, good answers.
    Halfway,
    /// A good answer whose content never ends.
    Endless,
}

/// The present mood, and how many there were before: the rest of a content waits at a gate of that name.
type Moods = Arc<Mutex<(Mood, usize)>>;

/// One server.
pub struct Replica {
    pub at: SocketAddr,
    origin: Origin,
    moods: Moods,
}

/// `N` servers on one port of 127.0.0.1, 127.0.0.2 and so on, called a, b, c and so on.
pub fn replicas<const N: usize>() -> [Replica; N] {
    'port: loop {
        let mut replicas: Vec<Replica> = Vec::new();
        for (last, name) in (1..).zip('a'..).take(N) {
            let port = replicas.first().map_or(0, |first| first.at.port());
            match Replica::start((Ipv4Addr::new(127, 0, 0, last), port).into(), name) {
                Ok(replica) => replicas.push(replica),
                // Free on one address and taken on another.
                Err(_) => continue 'port,
            }
        }
        break replicas.try_into().ok().unwrap();
    }
}

impl Replica {
    fn start(at: SocketAddr, name: char) -> Result<Self, larder_testkit::Error> {
        let moods = Moods::new(Mutex::new((Mood::Answers(200), 0)));
        let present = moods.clone();
        let origin = Origin::answering(at, PATIENCE, move |seen| {
            let (mood, number) = *present.lock();
            answer(mood, number, name, &seen.target)
        })?;
        Ok(Self { at: origin.addr(), origin, moods })
    }

    pub fn address(&self) -> ServerAddress {
        address(&self.origin)
    }

    pub fn ip(&self) -> [u8; 4] {
        match self.at.ip() {
            std::net::IpAddr::V4(ip) => ip.octets(),
            std::net::IpAddr::V6(_) => unreachable!("only IPv4 is bound"),
        }
    }

    pub fn becomes(&self, mood: Mood) {
        let before = {
            let mut moods = self.moods.lock();
            let before = moods.1;
            *moods = (mood, before + 1);
            before
        };
        self.origin.gates().release(&before.to_string());
    }

    /// How often `path` was asked for.
    pub fn asked(&self, path: &str) -> usize {
        self.origin.log().count_of(path) as usize
    }

    /// Waits until `path` has been asked for `times` more times.
    pub async fn asked_again(&self, path: &str, times: usize) {
        let aim = self.asked(path) + times;
        until(&self.origin, |log| log.count_of(path) as usize >= aim).await;
    }

    /// The head of the last request.
    pub fn last_head(&self) -> String {
        String::from_utf8(self.origin.log().last().unwrap().head.to_vec()).unwrap()
    }

    /// Waits until nobody is connected.
    pub async fn is_left_alone(&self) {
        until(&self.origin, |log| log.connections_open() == 0).await;
    }
}

fn answer(mood: Mood, number: usize, name: char, target: &str) -> Answer {
    match mood {
        Mood::Answers(status) => Answer::new(status, &[], &name.to_string()),
        Mood::Silent => silent(),
        Mood::Closes => closes(),
        Mood::Halfway if target == "/half" => {
            Answer::literal(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{name}"))
                .wait_for(&number.to_string())
                .send(&name.to_string())
                .keep_open()
        }
        Mood::Halfway => fine(&name.to_string()),
        Mood::Endless => {
            Answer::literal("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").flood_with("1\r\nx\r\n")
        }
    }
}
