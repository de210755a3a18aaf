//! A Redis with two replicas and three Sentinels that watch over them.

use std::net::TcpStream;
use std::time::Duration;

use larder_testkit::redis::{RawRedis, RedisOnPort};

use crate::support::{until, until_within};

/// A Sentinel that has not been given the processor for two seconds decides nothing for thirty (its TILT mode).
const ELECTED_WITHIN: Duration = Duration::from_secs(60);

/// A master, two replicas, and three Sentinels that know of each other.
pub(crate) struct Watched {
    pub(crate) servers: [RedisOnPort; 3],
    pub(crate) sentinels: [RedisOnPort; 3],
}

impl Watched {
    pub(crate) async fn start() -> Self {
        let quick = ["--repl-diskless-sync-delay", "0"];
        let master = RedisOnPort::start_with("--port", &quick);
        let port = master.port.to_string();
        let replica = || {
            RedisOnPort::start_with("--port", &[&quick[..], &["--replicaof", "127.0.0.1", &port]].concat())
        };
        let servers = [replica(), replica()];
        let [one, two] = servers;
        let sentinel = || RedisOnPort::start_sentinel(master.port, 2);
        let sentinels = [sentinel(), sentinel(), sentinel()];
        let watched = Self { servers: [master, one, two], sentinels };
        until("replicas and Sentinels know each other", async || {
            watched.sentinels.iter().all(|sentinel| {
                let told = sentinel.raw().ask(&[b"INFO", b"sentinel"]).unwrap();
                String::from_utf8_lossy(&told).contains("status=ok")
                    && String::from_utf8_lossy(&told).contains("slaves=2,sentinels=3")
            })
        })
        .await;
        watched
    }

    /// What a config says of it.
    pub(crate) fn said(&self) -> String {
        let addresses = self.sentinels.each_ref().map(|sentinel| format!("\"127.0.0.1:{}\"", sentinel.port));
        format!("sentinel = [{}], master = \"main\"", addresses.join(", "))
    }

    /// The port that the first Sentinel names.
    pub(crate) fn named(&self) -> u16 {
        named_by(&self.sentinels[0])
    }

    /// From now on the replicas do not follow.
    pub(crate) fn replicas_lag(&self) {
        let mut master = self.servers[0].raw();
        master.ask(&[b"ACL", b"SETUSER", b"default", b"-psync", b"-sync"]);
        master.ask(&[b"CLIENT", b"KILL", b"TYPE", b"replica"]);
    }

    pub(crate) async fn fails_over(&mut self) {
        let former = self.servers[0].port;
        self.servers[0].kill();
        until_within(ELECTED_WITHIN, "another one is the master", async || self.named() != former).await;
    }

    /// Waits until all Sentinels name another master than the first one. Returns its port.
    pub(crate) async fn all_name_another(&self) -> u16 {
        let another = || {
            let named: Vec<u16> = self.sentinels.iter().map(named_by).collect();
            let port = *named.first()?;
            (port != self.servers[0].port && named.iter().all(|other| *other == port)).then_some(port)
        };
        until_within(ELECTED_WITHIN, "all Sentinels name another one", async || another().is_some()).await;
        another().unwrap()
    }

    /// Gives all servers a user of larder's own, and says what a config says of it. The file has a password.
    pub(crate) fn with_a_user(&mut self, user: &str, password: &str) -> String {
        for server in &self.servers {
            let password = format!(">{password}");
            let words = [
                &b"ACL"[..],
                b"SETUSER",
                user.as_bytes(),
                b"on",
                password.as_bytes(),
                b"~*",
                b"&*",
                b"+@all",
            ];
            assert_eq!(server.raw().ask(&words).as_deref(), Some(&b"+OK"[..]));
        }
        let file = self.servers[0].folder().join("password");
        std::fs::write(&file, password).unwrap();
        format!("user = {user:?}\npassword_file = {:?}", file.display().to_string())
    }

    /// The master does not know its Sentinels and replicas any more: nobody but larder's user may ask for anything. Returns the only
    /// other connection to it.
    pub(crate) fn isolates_master(&self) -> RawRedis<TcpStream> {
        let mut raw = self.servers[0].raw();
        assert_eq!(raw.ask(&[b"ACL", b"SETUSER", b"default", b"off"]).as_deref(), Some(&b"+OK"[..]));
        raw.ask(&[b"CLIENT", b"KILL", b"USER", b"default"]);
        raw.ask(&[b"CLIENT", b"KILL", b"TYPE", b"replica"]);
        raw
    }
}

/// The port that a Sentinel names.
fn named_by(sentinel: &RedisOnPort) -> u16 {
    let told = sentinel.raw().ask_list(&[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", b"main"]);
    String::from_utf8(told.unwrap()[1].clone()).unwrap().parse().unwrap()
}
