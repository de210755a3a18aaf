//! The handle: starts the thread, asks it for things, ends it.
//!
//! In: settings, and what surrounds them. Out: certificates, to [`Certificates::install`](crate::Certificates::install). What is stored is
//! served before [`Acme::start`] returns; the authority is asked later and elsewhere, so that neither it nor DNS nor a clock can stop a
//! start.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use crate::challenges::Challenges;
use crate::error::AcmeError;
use crate::requests::Shared;
use crate::settings::AcmeSettings;
use crate::setup::Setup;
use crate::status::CertificateStatus;
use crate::surroundings::Surroundings;
use crate::thread::Worker;

/// Orders and renews certificates for as long as it lives. Dropping it ends the thread at the next await, lets go of the lock and takes all
/// proofs back; files are as good as after a crash. It waits for the thread, and no longer than for a sync of a file.
pub struct Acme {
    around: Surroundings,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Acme {
    /// Serves what is stored, and starts the thread.
    ///
    /// # Errors
    /// The settings cannot be used, the directory or the file of authorities cannot be read, or no thread can be started.
    pub fn start(settings: AcmeSettings, around: Surroundings) -> Result<Self, AcmeError> {
        let mut setup = Setup::new(settings, &around, |_| false, true, false)?;
        let shared = Arc::new(Shared::default());
        let lock = setup.lock.take();
        shared.leads.store(lock.is_some(), Ordering::Relaxed);
        let worker = Worker::new(setup, lock, around.clone(), Arc::clone(&shared));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // For look-ups of names.
            .max_blocking_threads(4)
            .build()
            .map_err(AcmeError::Thread)?;
        let serve = move || {
            runtime.block_on(worker.run());
            // A look-up of a name that is under way cannot be ended, and is not waited for.
            runtime.shutdown_background();
        };
        let thread =
            thread::Builder::new().name("acme".to_owned()).spawn(serve).map_err(AcmeError::Thread)?;
        Ok(Self { around, shared, thread: Some(thread) })
    }

    /// Takes new settings: names are added and removed, and the certificates of those that were added are served where they are stored. An
    /// order under way goes on unless its name is gone, or directory or authority are other ones. Calls the file system.
    ///
    /// # Errors
    /// As for [`Self::start`]. Then nothing has changed.
    pub fn reload(&self, settings: AcmeSettings) -> Result<(), AcmeError> {
        let leads = self.is_leading();
        let setup = Setup::new(settings, &self.around, |name| self.shared.board.has(name), false, leads)?;
        self.shared.requests.lock().setup = Some(setup);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Asks for a new certificate for `name` now, whatever its schedule says. `false` where the name is unknown. Has no effect while
    /// another process orders.
    pub fn renew_now(&self, name: &str) -> bool {
        let is_known = self.shared.board.has(name);
        if is_known {
            self.shared.requests.lock().renew.insert(name.to_owned());
            self.shared.wake.notify_one();
        }
        is_known
    }

    /// Looks at the clock and at the directory now. The thread does so each minute by itself, by a timer that knows nothing of a clock that
    /// was moved.
    pub fn look(&self) {
        self.shared.wake.notify_one();
    }

    /// Each name in order.
    pub fn status(&self) -> Vec<Arc<CertificateStatus>> {
        self.shared.board.all()
    }

    /// Whether this process orders. `false` while another one with the same directory does.
    pub fn is_leading(&self) -> bool {
        self.shared.leads.load(Ordering::Relaxed)
    }

    /// Whether the thread works. Only an error of larder's own, or a panic in what it calls, can end it.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Attempts since the start by result: `issued`, or the token of a [`FailureKind`](crate::FailureKind). All results, zeros included.
    pub fn orders(&self) -> Vec<(&'static str, u64)> {
        self.shared.board.orders()
    }

    /// Where proofs are shown.
    pub fn challenges(&self) -> &Arc<Challenges> {
        &self.around.challenges
    }
}

impl std::fmt::Debug for Acme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acme").field("board", &self.shared.board).finish_non_exhaustive()
    }
}

impl Drop for Acme {
    fn drop(&mut self) {
        self.shared.requests.lock().stop = true;
        self.shared.wake.notify_one();
        // One that is dropped on its own thread, by what it calls, cannot wait for it.
        let others = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = others {
            // A panic there has been reported by the hook.
            let _ = thread.join();
        }
    }
}
