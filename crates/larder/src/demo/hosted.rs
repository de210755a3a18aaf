//! An app of a demo on a thread of its own, behind larder's own listener.
//!
//! In: a service. Out: its address, a free port of loopback. Neither the load nor the larder in front of the app can borrow its time,
//! because it has a thread and a runtime to itself. Dropping an [`AppThread`] ends it.
//! Deliberately absent: what the app answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use larder_http::time::Clock;
use larder_listen::{AnyService, Drain, Metrics, Settings, Slots, accept_loop, bind};
use tokio::sync::oneshot;

/// Connections that an app takes: the most clients that a demo may have, larder's own, and a browser's.
const CONNECTIONS_MAX: usize = 512;

/// A running app.
pub(super) struct AppThread {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AppThread {
    /// Serves `service` on a free port of loopback.
    ///
    /// # Errors
    /// No socket, no thread or no runtime is to be had.
    pub(super) fn start(service: AnyService, clock: Clock) -> anyhow::Result<Self> {
        let bound = bind((Ipv4Addr::LOCALHOST, 0).into(), 1)?;
        let address = bound.listener.address;
        let socket = bound.sockets.into_iter().next().context("the app has no socket")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the app's runtime")?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                let accepting = accept_loop(
                    socket,
                    Arc::new(ArcSwap::from_pointee(Settings { clock, ..Settings::default() })),
                    service,
                    Slots::new(CONNECTIONS_MAX),
                    Arc::new(Metrics::default()),
                    Drain::new().signal(),
                    Arc::default(),
                );
                tokio::select! {
                    // It ends early where the socket cannot be registered; clients are refused then, and say so.
                    _ = accepting => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name("demo-app".into())
            .spawn(run)
            .context("cannot start the app's thread")?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AppThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
