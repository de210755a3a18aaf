//! Runtimes whose threads for what may wait are there from the start.
//!
//! In: nothing. Out: a runtime, or why there is none. Look-ups in plain files, `root` and names wait on threads of the runtime, which
//! are made when they are needed and end when they are idle; where the system then has no further thread (TasksMax, `ulimit -u`)
//! a request would break. So some are made here and stay; where no more can be had, what waits takes turns on these.

use std::io;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

/// The CPUs that this process may use, by affinity and cgroup quota.
pub(crate) fn usable_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Threads that are there from the start.
const KEPT: usize = 4;
/// The most for each runtime: none of them ends.
const MOST: usize = 64;
/// How long they may take to be there.
const MADE_WITHIN: Duration = Duration::from_secs(1);
/// For ever.
const IDLE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A runtime of one thread, with threads for what may wait.
///
/// # Errors
/// The system gives no event queue, or not one thread.
pub(crate) fn build() -> io::Result<Runtime> {
    // The runtime panics where it finds no thread at all.
    thread::Builder::new().spawn(|| ())?.join().map_err(|_| io::ErrorKind::Other)?;
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(MOST).thread_keep_alive(IDLE).build()?;
    let (here, arrived) = channel();
    let mut holds = Vec::with_capacity(KEPT);
    for _ in 0..KEPT {
        // Each waits until all are there, so that none does the work of two.
        let (hold, held) = sync_channel::<()>(0);
        let here = here.clone();
        let job = move || {
            let _ = here.send(());
            let _ = held.recv();
        };
        runtime.handle().spawn_blocking(job);
        holds.push(hold);
    }
    let until = Instant::now() + MADE_WITHIN;
    let made =
        (0..KEPT).take_while(|_| arrived.recv_timeout(until - Instant::now().min(until)).is_ok()).count();
    if made == 0 {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn threads_are_there_before_they_are_needed() {
        let runtime = build().unwrap();
        assert_eq!(runtime.handle().metrics().num_alive_tasks(), 0);
        let names = runtime.block_on(async {
            let look = || thread::current().id();
            [
                tokio::task::spawn_blocking(look).await.unwrap(),
                tokio::task::spawn_blocking(look).await.unwrap(),
            ]
        });
        assert!(names.iter().all(|id| *id != thread::current().id()));
    }
}
