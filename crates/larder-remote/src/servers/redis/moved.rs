//! A master that is another one from now on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use larder_observe::Diagnostics;
use larder_testkit::redis::RedisOnPort;
use tokio::time::{Instant, timeout};

use super::super::setup::MAX_OBJECT;
use super::{Scripted, command, settings};
use crate::label::Label;
use crate::probe::probe;
use crate::protocol::{Dialer, Protocol};
use crate::redis::{Dial, RedisPlace, RedisSettings, SentinelSettings};
use crate::server::Server;
use crate::{Address, SystemNames};

fn at(port: u16) -> Address {
    Address::Tcp { host: "127.0.0.1".into(), port }
}

/// A Sentinel that names this port.
async fn naming(port: &Arc<AtomicU16>) -> Scripted {
    let port = Arc::clone(port);
    Scripted::start(move |mut connection| {
        let port = Arc::clone(&port);
        async move {
            while let Some(command) = command(&mut connection).await {
                let port = port.load(Ordering::SeqCst).to_string();
                let reply = match command[0].as_str() {
                    "PING" => "+PONG\r\n".to_owned(),
                    _ => format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len()),
                };
                connection.send(reply.as_bytes()).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_new_master_is_not_left_alone_because_of_the_former_one() {
    let redis = RedisOnPort::start();
    // Nothing listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let named = Arc::new(AtomicU16::new(gone));
    let sentinel = naming(&named).await;
    let place = RedisPlace::Sentinel(SentinelSettings {
        sentinels: vec![sentinel.address.clone()],
        master: "main".to_owned(),
        user: None,
        password: None,
    });
    let settings = RedisSettings { place, timeout: Duration::from_secs(5), ..settings(at(0)) };
    let dial = Arc::new(Dial::new(&settings, b"", Arc::new(SystemNames), &Diagnostics::silent()).unwrap());
    let server = Server::new("redis", Label::Fixed("main".to_owned()), Diagnostics::silent());
    let breaker = server.breaker();
    breaker.connect_failed(Instant::now());
    // The next probe is due in half a minute.
    (0..6).for_each(|_| breaker.probe_failed(Instant::now()));
    let (protocol, value_max) = (Protocol::Redis(Arc::clone(&dial)), Arc::new(AtomicUsize::new(MAX_OBJECT)));
    let dialer = Dialer { protocol, value_max };
    let fails_over = async {
        while dial.elected() != Some(at(gone)) {
            dial.later_round().await;
        }
        // The former one was probed once for being known at all.
        breaker.probe_failed(Instant::now());
        named.store(redis.port, Ordering::SeqCst);
        timeout(Duration::from_secs(20), breaker.until(false)).await.unwrap();
    };
    tokio::select! {
        () = dial.watch() => {}
        () = probe(&server, &dialer, settings.timeout) => {}
        () = fails_over => {}
    }
    assert!(server.may_ask());
}
