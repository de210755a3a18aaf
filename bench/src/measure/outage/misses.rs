//! Misses at a steady rate: each is asked for a page that nobody has.
//!
//! In: an address, a length, a word for the pages. Out: the wait of each miss from the moment when it was sent, in the order in which they were
//! due. There are several connections, so that misses meet a Redis that hangs at the same time.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep_until};

use crate::measure::asker::{Asker, Was};
use crate::measure::load::on_load_core;

const CONNECTIONS: u32 = 8;
/// Of all connections together.
pub(super) const PER_SECOND: u32 = 40;

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Miss {
    /// When it was sent, from the begin of the part.
    pub(super) sent: Duration,
    pub(super) wait: Duration,
}

/// Asks for so long.
///
/// # Errors
/// Any of them was no miss, or had no whole answer.
pub(super) fn ask(address: SocketAddr, bytes: usize, length: Duration, name: &str) -> Result<Vec<Miss>> {
    on_load_core(async move {
        let start = Instant::now();
        let mut tasks = Vec::new();
        for first in 0..CONNECTIONS {
            let mut asker = Asker::connect_for(address, bytes).await?;
            let name = name.to_owned();
            tasks.push(tokio::spawn(async move {
                let mut misses = Vec::new();
                for number in (first..).step_by(CONNECTIONS as usize) {
                    let due = start + Duration::from_secs(u64::from(number)) / PER_SECOND;
                    if due >= start + length {
                        break;
                    }
                    sleep_until(due).await;
                    let sent = Instant::now();
                    let was = asker.ask(&format!("/miss/{name}/{number}")).await?;
                    ensure!(was == Was::Other, "{name}: a hit where a miss was due");
                    misses.push(Miss { sent: sent.duration_since(start), wait: sent.elapsed() });
                }
                Ok(misses)
            }));
        }
        let mut misses = Vec::new();
        for task in tasks {
            misses.extend(task.await??);
        }
        misses.sort_by_key(|miss| miss.sent);
        Ok(misses)
    })?
}
