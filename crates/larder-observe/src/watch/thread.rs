//! The thread that drains the tap and reads figures.
//!
//! In: a watch, a clock, and what has figures. Out: drains as often as the watch wants them, and a tick a second, until the handle is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use larder_http::time::Clock;

use super::{FigureSource, Watch};
use crate::error::ObserveError;

/// A running thread. To drop it is to stop it; what the workers have handed over by then is drained first.
#[derive(Debug)]
pub struct WatchThread {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WatchThread {
    /// Starts to drain and to tick. Figures are counted from here on.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        watch: Arc<Watch>,
        clock: Clock,
        figures: Arc<dyn FigureSource>,
    ) -> Result<Self, ObserveError> {
        watch.tick(clock.now(), &*figures);
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let body = move || {
            watch.tap.drained_here();
            loop {
                // Read before the drain: what was handed over before the asking is drained before the answer.
                let is_last = asked.load(Ordering::Acquire);
                let now = clock.now();
                watch.drain(now);
                watch.tick(now, &*figures);
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
