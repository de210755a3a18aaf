//! A thousand clients of three larders that ask for the same page at once, which none of them has.
//!
//! In: an application whose page takes 300 ms. Out: how many requests reach it, and how long the clients wait. Every client gets the page.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use tokio::sync::Barrier;

use super::NAMES;
use crate::measure::contender::{Kit, LOAD_CORE};
use crate::measure::load::{Client, on_load_core};
use crate::measure::redis::{By, Redis};
use crate::measure::sharing::{Larder, Wanted, start};
use crate::measure::slow_app::{Habits, SlowApp};

pub(super) const CLIENTS: usize = 1000;
pub(super) const RENDER: Duration = Duration::from_millis(300);
const HOST: &str = "www.example.com";
const TARGET: &str = "/page";

/// What came of it.
pub(super) struct Cold {
    pub(super) are_shared: bool,
    pub(super) origin_requests: u64,
    /// Sorted.
    pub(super) waits: Vec<Duration>,
}

/// Asks.
pub(super) fn ask(kit: &Kit, are_shared: bool) -> Result<Cold> {
    let app = SlowApp::start(Habits { render: RENDER, one_at_a_time: false })?;
    let redis = Redis::start(kit.scratch(), By::UnixSocket, LOAD_CORE)?;
    let shared = are_shared.then_some(&redis);
    let larder = |name| -> Result<Larder> {
        start(kit, app.address, Wanted { site: "ttl = \"60s\"", ..Wanted::new(name, shared) })
    };
    let larders = [larder(NAMES[0])?, larder(NAMES[1])?, larder(NAMES[2])?];
    let addresses = larders.each_ref().map(|larder| larder.address);
    let waits: Result<Vec<Duration>> = on_load_core(async move {
        let ready = Arc::new(Barrier::new(CLIENTS));
        let mut tasks = Vec::with_capacity(CLIENTS);
        for number in 0..CLIENTS {
            let mut client = Client::connect_as(addresses[number % addresses.len()], HOST).await?;
            let ready = Arc::clone(&ready);
            tasks.push(tokio::spawn(async move {
                ready.wait().await;
                let begun = Instant::now();
                let answer = client.ask(TARGET).await.map_err(|broken| anyhow!("{broken:?}"))?;
                ensure!(answer.status == 200 && answer.rendering.is_some(), "status {}", answer.status);
                Ok(begun.elapsed())
            }));
        }
        let mut waits = Vec::with_capacity(CLIENTS);
        for task in tasks {
            waits.push(task.await??);
        }
        Ok(waits)
    })?;
    let mut waits = waits?;
    waits.sort_unstable();
    Ok(Cold { are_shared, origin_requests: app.asked(), waits })
}
