//! The client for Redis: the same look-ups, faults and writes as with memcached, and what Redis alone may say.
//!
//! In: the program `redis-server` on the search path (`make units` installs it), and scripted servers for what it does not do.

mod crowd;
mod faults;
mod lookups;
mod moved;
mod replies;
mod writes;

use std::sync::Arc;

use larder_http::time::Clock;
use larder_observe::Diagnostics;
pub use larder_testkit::redis::RedisServer as Server;

use super::scripted::{Connection, Scripted};
use super::setup::{MAX_OBJECT, TIMEOUT};
use crate::redis::{RedisPlace, RedisSettings};
use crate::{Address, Client, RemoteSettings, RemoteStore, SystemNames};

fn settings(address: Address) -> RedisSettings {
    RedisSettings {
        place: RedisPlace::Server(address),
        tls: None,
        user: None,
        password: None,
        database: 0,
        timeout: TIMEOUT,
        max_object: MAX_OBJECT,
    }
}

fn start(settings: RedisSettings) -> Client {
    let (names, clock) = (Arc::new(SystemNames), Clock::default());
    let settings = RemoteSettings::Redis(Box::new(settings));
    Client::new(RemoteStore::start(settings, names, clock, &Diagnostics::silent()).unwrap())
}

fn client(server: &Server) -> Client {
    start(settings(Address::Unix(server.socket())))
}

/// The next command, or `None` at the end of the connection.
async fn command(connection: &mut Connection) -> Option<Vec<String>> {
    let words: usize = connection.line().await?.strip_prefix('*').unwrap().parse().unwrap();
    let mut command = Vec::new();
    for _ in 0..words {
        connection.line().await?;
        command.push(connection.line().await?);
    }
    Some(command)
}

/// A server that answers `PING`, and each look-up with what `reply` says to its key; `PTTL` is part of that.
async fn answering(reply: impl Fn(usize, &str) -> Vec<u8> + Clone + Send + Sync + 'static) -> Scripted {
    Scripted::start(move |mut connection: Connection| {
        let reply = reply.clone();
        async move {
            while let Some(command) = command(&mut connection).await {
                match command[0].as_str() {
                    "PING" => connection.send(b"+PONG\r\n").await,
                    "GET" => {
                        let reply = reply(connection.number, &command[1]);
                        connection.send(&reply).await;
                    }
                    "PTTL" => {}
                    other => panic!("{other}"),
                }
            }
        }
    })
    .await
}

/// The replies to a look-up that finds `body`.
fn value(body: &str) -> Vec<u8> {
    format!("${}\r\n{body}\r\n:60000\r\n", body.len()).into_bytes()
}
