//! A worker: one thread, one runtime, its own sockets.

use std::convert::Infallible;
use std::sync::Arc;

use arc_swap::ArcSwap;
use larder_listen::{BoundSocket, DrainSignal, Handshakes, Metrics as ListenMetrics, Settings, Slots};
use larder_observe::WorkerMetrics;
use larder_proxy::{ProxyService, Worker};
use tokio::sync::{mpsc, oneshot};

use super::error::ServerError;

/// A worker's share of a listener.
pub(super) struct WorkerListener {
    pub(super) socket: BoundSocket,
    pub(super) settings: Arc<ArcSwap<Settings>>,
    pub(super) drain: DrainSignal,
    /// Held until nothing more can be accepted here.
    pub(super) accepting: mpsc::Sender<Infallible>,
}

/// The way to a worker's thread. Dropping it ends the worker, and with it every task on it.
pub(super) struct WorkerHandle {
    worker: Arc<Worker>,
    metrics: Arc<ListenMetrics>,
    listeners: mpsc::UnboundedSender<WorkerListener>,
    thread: Option<std::thread::JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
}

impl WorkerHandle {
    pub(super) fn start(
        index: usize,
        worker: Worker,
        counters: Arc<WorkerMetrics>,
        slots: Arc<Slots>,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Thread { what: "a worker", source };
        let runtime = super::runtime::build().map_err(failed)?;
        let tasks = runtime.handle().metrics();
        counters.watch_tasks(move || tasks.num_alive_tasks());
        let worker = Arc::new(worker);
        let metrics = Arc::new(ListenMetrics::default());
        // As many as the config has addresses.
        let (listeners, mut opened) = mpsc::unbounded_channel::<WorkerListener>();
        let (stop, mut stopped) = oneshot::channel();
        let handshakes = Arc::new(Handshakes::default());
        let (service, counted) = (ProxyService(Arc::clone(&worker)), Arc::clone(&metrics));
        let run = move || {
            runtime.block_on(async {
                // One worker is enough to ask servers how they are.
                if index == 0 {
                    let tending = Arc::clone(&service.0);
                    tokio::spawn(async move { tending.tend_origins().await });
                }
                loop {
                    let listener = tokio::select! {
                        listener = opened.recv() => listener,
                        _ = &mut stopped => None,
                    };
                    let Some(WorkerListener { socket, settings, drain, accepting }) = listener else {
                        return;
                    };
                    let accepts = service.clone().accept(
                        socket,
                        settings,
                        Arc::clone(&slots),
                        Arc::clone(&counted),
                        drain,
                        Arc::clone(&handshakes),
                    );
                    tokio::spawn(async move {
                        let _ = accepts.await;
                        drop(accepting);
                    });
                }
            });
            // Blocking reads of files that are still running are not waited for.
            runtime.shutdown_background();
        };
        let thread =
            std::thread::Builder::new().name(format!("worker-{index}")).spawn(run).map_err(failed)?;
        Ok(Self { worker, metrics, listeners, thread: Some(thread), stop: Some(stop) })
    }

    pub(super) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    pub(super) fn metrics(&self) -> &Arc<ListenMetrics> {
        &self.metrics
    }

    pub(super) fn listen(&self, listener: WorkerListener) -> Result<(), ServerError> {
        self.listeners.send(listener).map_err(|_| ServerError::WorkerGone)
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
