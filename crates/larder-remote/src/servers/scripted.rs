//! A server that does what a test says, connection by connection.

use std::sync::Arc;

use crate::Address;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One connection as the server has it.
pub struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
    /// 0 for the first one.
    pub number: usize,
}

impl Connection {
    /// The next line without its end, or `None` at the end of the connection.
    pub async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.read.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            if self.stream.read_buf(&mut self.read).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Sends bytes, which nobody may read any more.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Answers `mn` as a server with meta commands.
    pub async fn greet(&mut self) {
        assert_eq!(self.line().await.as_deref(), Some("mn"));
        self.send(b"MN\r\n").await;
    }
}

/// The key of a line of a look-up.
pub fn key_of(line: &str) -> &str {
    line.split(' ').nth(1).unwrap()
}

/// The reply that holds `body`.
pub fn value(line: &str, body: &str) -> Vec<u8> {
    format!("VA {} k{} f0 t60\r\n{body}\r\n", body.len(), key_of(line)).into_bytes()
}

/// A server, ended with this value.
pub struct Scripted {
    pub address: Address,
    task: JoinHandle<()>,
}

impl Scripted {
    /// Runs `serve` for each connection, in a task of its own.
    pub async fn start<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(Connection) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = Arc::new(serve);
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let serve = Arc::clone(&serve);
                tokio::spawn(async move { serve(Connection { stream, read: Vec::new(), number }).await });
            }
        });
        Self { address: Address::Tcp { host: "127.0.0.1".into(), port }, task }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}
