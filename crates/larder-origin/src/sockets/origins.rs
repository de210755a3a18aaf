//! The testkit's scripted origin, as these tests use it: answers in turn, its address, its log in good time; and one with a
//! thread of its own, for what happens while the test's thread does nothing.

use std::sync::{Arc, mpsc};

use crate::ServerAddress;
use crate::sockets::patience::{PATIENCE, within};
use larder_testkit::origin::{Answer, Log, Origin, PathScript};
use tokio::runtime::{Builder, Runtime};

/// Gives these answers in order, whatever is asked for, and the last one again and again.
pub fn in_turn(answers: impl Into<Vec<Answer>>) -> Origin {
    Origin::simple(vec![PathScript::new("*", answers)]).unwrap()
}

/// The usual answer.
pub fn fine(content: &str) -> Answer {
    Answer::new(200, &[], content)
}

/// No answer at all: the connection closes.
pub fn closes() -> Answer {
    Answer { vanish: true, ..Answer::default() }
}

/// No answer, for as long as the other side waits.
pub fn silent() -> Answer {
    Answer::literal("").stay_silent()
}

pub fn address(origin: &Origin) -> ServerAddress {
    ServerAddress::Http { host: origin.addr().ip().to_string(), port: origin.addr().port() }
}

/// Waits until the origin's log is as `holds` says.
pub async fn until(origin: &Origin, holds: impl FnMut(&Log) -> bool) {
    within(origin.log().until(holds)).await;
}

/// Waits until a connection, counted from 1, has ended, and returns what it brought.
pub async fn ended(origin: &Origin, connection: u64) -> String {
    until(origin, |log| log.is_over(connection)).await;
    received(origin.log(), connection)
}

/// What a connection, counted from 1, has brought so far.
pub fn received(log: &Log, connection: u64) -> String {
    String::from_utf8_lossy(&log.received(connection)).into_owned()
}

/// An origin with a thread of its own, so that it goes on while the test's thread does not turn its event loop.
pub struct Apart {
    pub origin: Arc<Origin>,
    runtime: Runtime,
}

impl Apart {
    pub fn in_turn(answers: impl Into<Vec<Answer>>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let origin = {
            let _inside = runtime.enter();
            Arc::new(in_turn(answers))
        };
        Self { origin, runtime }
    }

    /// Stops this thread until the origin's log is as `holds` says.
    pub fn block_until(&self, mut holds: impl FnMut(&Log) -> bool + Send + 'static) {
        let (tell, told) = mpsc::channel();
        let origin = self.origin.clone();
        self.runtime.spawn(async move {
            origin.log().until(&mut holds).await;
            // A test that has failed waits no more.
            let _ = tell.send(());
        });
        told.recv_timeout(PATIENCE).expect("the origin comes to this");
    }
}
