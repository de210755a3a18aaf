//! The thread that drains the tap.
//!
//! In: a watch and a clock. Out: drains, as often as the watch wants them, until the handle is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use larder_http::time::Clock;

use super::Watch;
use crate::error::ObserveError;

/// A running thread. To drop it is to stop it; what the workers have handed over by then is drained first.
#[derive(Debug)]
pub struct WatchThread {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WatchThread {
    /// Starts to drain.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(watch: Arc<Watch>, clock: Clock) -> Result<Self, ObserveError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let body = move || {
            loop {
                // Read before the drain: what was handed over before the asking is drained before the answer.
                let is_last = asked.load(Ordering::Acquire);
                watch.drain(clock.now());
                if is_last {
                    return;
                }
                std::thread::park_timeout(watch.pause());
            }
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(body);
        let thread = thread.map_err(|source| ObserveError::Thread { name: "watch", source })?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
