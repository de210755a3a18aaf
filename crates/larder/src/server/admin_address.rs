//! The admin address: a listener with a thread of its own, so that a scrape never waits behind traffic.
//!
//! In: the config's tokens and names, and what the running larder shows. Out: a server that ends when it is dropped.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use larder_admin::{Admin, Guard, Larder, Token};
use larder_config::{Config, ListenEntry, Secret};
use larder_listen::{AnyService, Drain, Metrics as ListenMetrics, Settings, Slots};
use tokio::sync::oneshot;

use super::admin::Insight;
use super::error::ServerError;

/// Descriptors that are kept for connections to the admin address, for when the process has no others.
const SPARE: usize = 8;

/// The admin address with a thread of its own. Ends when dropped.
pub(super) struct AdminServer {
    address: SocketAddr,
    drain: Drain,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl AdminServer {
    pub(super) fn start(
        address: SocketAddr,
        config: &Config,
        insight: Arc<Insight>,
        connections_max: usize,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Thread { what: "the admin", source };
        let token =
            |secret: &Option<Secret>| secret.as_ref().map(|secret| Token::parse(secret.expose())).transpose();
        let (token, view_token) = (token(&config.admin.token)?, token(&config.admin.view_token)?);
        let hosts = config.admin.hosts.iter().map(|host| host.as_str().to_owned()).collect();
        let bound = super::addresses::listener(&ListenEntry { address: address.into(), tls: false }, config)
            .bind(1)?;
        let address = bound.listener.address;
        let admin = AnyService::new(Admin::new(
            insight.clone() as Arc<dyn Larder>,
            Guard { hosts, token, view_token },
            insight.clock.clone(),
        ));
        let runtime = super::runtime::build().map_err(failed)?;
        let drain = Drain::new();
        let (stop, stopped) = oneshot::channel();
        let settings =
            Arc::new(ArcSwap::from_pointee(Settings { clock: insight.clock.clone(), ..Settings::default() }));
        let signal = drain.signal();
        let run = move || {
            runtime.block_on(async {
                for socket in bound.sockets {
                    let slots = Slots::with_spare(connections_max, SPARE);
                    let metrics = Arc::new(ListenMetrics::default());
                    let accepting = larder_listen::accept_loop(
                        socket,
                        Arc::clone(&settings),
                        admin.clone(),
                        slots,
                        metrics,
                        signal.clone(),
                        Arc::default(),
                    );
                    tokio::spawn(accepting);
                }
                let _ = stopped.await;
            });
            // A name that is still being looked up for an explanation holds nobody up.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { address, drain, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.drain.start();
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
