//! What a client really sends: a listener that passes every byte on to larder, and keeps a copy of the requests.
//!
//! In: the address to pass on to. Out: an address for the client, and for each connection the bytes that came from it.
//! Nothing is read as HTTP on the way, so nothing is changed. larder sees a client on loopback, as without it.
//! Its threads end when both sides of their connection have.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use parking_lot::Mutex;

/// Requests by connection, in the order in which the connections were made.
type Kept = Arc<Mutex<Vec<Vec<u8>>>>;

/// A listener that runs until it is dropped.
pub(super) struct Recorder {
    pub(super) address: SocketAddr,
    kept: Kept,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Starts one in front of `to`.
    pub(super) fn start(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
        let address = listener.local_addr()?;
        let (kept, is_over) = (Kept::default(), Arc::new(AtomicBool::new(false)));
        let listening = {
            let (kept, is_over) = (Arc::clone(&kept), Arc::clone(&is_over));
            std::thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    // A client whose connection cannot be passed on sees it close.
                    let _ = pass_on(client, to, &kept);
                }
            })
        };
        Ok(Self { address, kept, is_over, listening: Some(listening) })
    }

    /// What came since the last call, as text, by connection; connections without a byte are left out.
    pub(super) fn take(&self) -> Vec<String> {
        let mut kept = self.kept.lock();
        let taken = kept.iter_mut().map(std::mem::take).filter(|bytes| !bytes.is_empty());
        taken.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the listener, which looks at the mark then.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn pass_on(client: TcpStream, to: SocketAddr, kept: &Kept) -> Result<()> {
    let server = TcpStream::connect(to)?;
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let number = {
        let mut kept = kept.lock();
        kept.push(Vec::new());
        kept.len() - 1
    };
    let kept = Arc::clone(kept);
    std::thread::spawn(move || {
        copy(from_client, to_server, |bytes| {
            if let Some(of_this) = kept.lock().get_mut(number) {
                of_this.extend_from_slice(bytes);
            }
        });
    });
    std::thread::spawn(move || copy(server, client, |_| {}));
    Ok(())
}

/// Copies until one of them ends, and tells the other.
fn copy(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&[u8])) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let read = bytes.get(..read).unwrap_or_default();
        see(read);
        if to.write_all(read).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_client_sends_is_passed_on_and_kept_by_connection() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Recorder::start(server.local_addr().unwrap()).unwrap();
        for said in ["one", "two"] {
            let mut client = TcpStream::connect(recorder.address).unwrap();
            let (mut at_server, _) = server.accept().unwrap();
            client.write_all(said.as_bytes()).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut seen = String::new();
            at_server.read_to_string(&mut seen).unwrap();
            assert_eq!(seen, said);
            at_server.write_all(b"heard").unwrap();
            drop(at_server);
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "heard");
        }
        assert_eq!(recorder.take(), ["one", "two"]);
        assert!(recorder.take().is_empty());
    }
}
