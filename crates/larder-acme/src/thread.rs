//! The thread that orders: what is due is started, what has ended is noted, what others have stored is taken.
//!
//! In: the requests of the handle, the clock, the directory. Out: jobs on one runtime of this thread, at most [`AT_ONCE`], and their
//! results in files, on the board, and served. One process leads: it holds the lock of the directory and orders. Others follow: they look
//! each minute for what it has stored, and for the lock. A job that panics is a failed attempt. After a failure that concerns all names
//! nothing is started for a minute, so that many names do not ask a dead authority one after the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_http::time::WallTime;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::sleep;

use crate::client::CaClient;
use crate::error::{Failure, FailureKind};
use crate::event::Event;
use crate::managed::Managed;
use crate::order::{Attempt, Issued};
use crate::renewal::{self, Suggested};
use crate::requests::{Requests, Shared};
use crate::schedule::{self, Why};
use crate::setup::Setup;
use crate::storage::StorageLock;
use crate::surroundings::Surroundings;

/// Most orders and questions under way.
pub(crate) const AT_ONCE: usize = 4;
/// Longest time between two looks at clock and directory: a timer does not know that a machine has slept.
const LOOK: Duration = Duration::from_secs(60);
/// After a failure that concerns all names.
const PAUSE: Duration = Duration::from_secs(60);
/// The authority is asked for its window again in so long where it could not be.
const ASK_AGAIN: Duration = Duration::from_secs(3600);

/// How a job has ended.
enum Ended {
    Order(Result<Box<Issued>, Failure>),
    Question(Result<Suggested, Failure>),
}

/// See the head of the file.
pub(crate) struct Worker {
    setup: Setup,
    around: Surroundings,
    shared: Arc<Shared>,
    names: BTreeMap<String, Managed>,
    lock: Option<StorageLock>,
    jobs: JoinSet<Ended>,
    /// Whose they are.
    running: HashMap<Id, String>,
    paused_until: WallTime,
    /// That another process leads has been reported, or that this one does.
    reported: Option<bool>,
}

impl Worker {
    pub(crate) fn new(
        mut setup: Setup,
        lock: Option<StorageLock>,
        around: Surroundings,
        shared: Arc<Shared>,
    ) -> Self {
        let names = mem::take(&mut setup.loaded);
        let worker = Self {
            setup,
            around,
            shared,
            names,
            lock,
            jobs: JoinSet::new(),
            running: HashMap::new(),
            paused_until: WallTime(0),
            reported: None,
        };
        worker.show_all();
        worker
    }

    /// Works until it is asked to stop.
    pub(crate) async fn run(mut self) {
        loop {
            let requests = mem::take(&mut *self.shared.requests.lock());
            if requests.stop {
                return;
            }
            self.take(requests);
            self.lead_or_follow();
            let wait = self.start_due();
            self.show_all();
            tokio::select! {
                () = self.shared.wake.notified() => {}
                Some(ended) = self.jobs.join_next_with_id() => self.note(ended),
                () = sleep(wait) => {}
            }
        }
    }

    fn now(&self) -> WallTime {
        self.around.clock.now().wall
    }

    fn report(&self, event: Event) {
        (self.around.report)(event);
    }

    fn take(&mut self, requests: Requests) {
        if let Some(setup) = requests.setup {
            self.replace(setup);
        }
        for name in requests.renew {
            if let Some(managed) = self.names.get_mut(&name) {
                managed.asked = true;
            }
        }
    }

    /// Works by other settings from now on.
    fn replace(&mut self, mut setup: Setup) {
        let (before, after) = (&self.setup.settings, &setup.settings);
        let is_same_place = before.dir == after.dir;
        if is_same_place && before.directory_url == after.directory_url {
            setup.accounts = Arc::clone(&self.setup.accounts);
        } else {
            self.abort_all();
        }
        if !is_same_place {
            self.lock = None;
            self.names.clear();
        }
        let mut loaded = mem::take(&mut setup.loaded);
        let wanted: BTreeSet<&String> = setup.settings.names.iter().collect();
        for (name, managed) in mem::take(&mut self.names) {
            if wanted.contains(&name) {
                // What has been managed so far knows more than what was just read.
                loaded.insert(name, managed);
            } else if let Some(job) = managed.job {
                job.abort();
            }
        }
        for name in wanted {
            if !loaded.contains_key(name) {
                let managed = self.load(&setup, name);
                loaded.insert(name.clone(), managed);
            }
        }
        self.shared.board.keep(|name| loaded.contains_key(name));
        self.names = loaded;
        self.setup = setup;
    }

    fn abort_all(&mut self) {
        self.jobs.abort_all();
        for managed in self.names.values_mut() {
            managed.job = None;
            managed.orders = false;
        }
    }

    /// Reads a name, and has its certificate served.
    fn load(&self, setup: &Setup, name: &str) -> Managed {
        let leads = self.lock.is_some();
        let (managed, served) =
            Managed::load(&setup.storage, &setup.settings, name, leads, &self.around.report);
        if let Some((chain, key)) = served {
            self.around.certificates.install(name, chain, key);
        }
        managed
    }

    /// Takes the lock where it is free; takes what others have stored where it is not.
    fn lead_or_follow(&mut self) {
        let had_lock = self.lock.is_some();
        if !had_lock {
            match self.setup.storage.lock() {
                Ok(lock) => self.lock = lock,
                Err(error) => self.report(Event::Storage { failure: error.into() }),
            }
        }
        let leads = self.lock.is_some();
        self.shared.leads.store(leads, Ordering::Relaxed);
        if self.reported != Some(leads) {
            self.reported = Some(leads);
            self.report(if leads { Event::Leads } else { Event::Follows });
        }
        let takes_over = leads && !had_lock;
        let storage = &self.setup.storage;
        let is_to_be_read = |managed: &&Managed| {
            takes_over
                || managed.unreadable && storage.is_readable(&managed.name)
                || !leads && managed.has_changed(storage)
        };
        let changed = self.names.values().filter(is_to_be_read);
        for name in changed.map(|managed| managed.name.clone()).collect::<Vec<_>>() {
            let mut managed = self.load(&self.setup, &name);
            // What an operator has asked for is no part of what was read.
            managed.asked = self.names.get(&name).is_some_and(|before| before.asked);
            self.names.insert(name, managed);
        }
    }

    /// Starts what is due; how long until something else is, [`LOOK`] at most.
    fn start_due(&mut self) -> Duration {
        if self.lock.is_none() {
            return LOOK;
        }
        let now = self.now();
        // A clock that went back does not make the pause longer.
        self.paused_until = self.paused_until.min(schedule::later(now, PAUSE));
        let settings = Arc::clone(&self.setup.settings);
        let (mut orders, mut questions, mut wait) = (Vec::new(), Vec::new(), LOOK);
        for managed in self.names.values_mut().filter(|managed| managed.job.is_none()) {
            managed.settle(now);
            if managed.unreadable {
                continue;
            }
            let next = managed.next(&settings, now);
            let not_before = if next.why == Why::Asked { next.at } else { next.at.max(self.paused_until) };
            if not_before <= now {
                orders.push((next.at, managed.name.clone()));
                continue;
            }
            wait = wait.min(not_before.since(now));
            if let Some(ask_at) = managed.ask_at(&settings).map(|at| at.max(self.paused_until)) {
                if ask_at <= now {
                    questions.push(managed.name.clone());
                } else {
                    wait = wait.min(ask_at.since(now));
                }
            }
        }
        orders.sort();
        for name in orders.into_iter().map(|(_, name)| name) {
            if self.has_room() {
                self.start_order(&name);
            }
        }
        for name in questions {
            if self.has_room() {
                self.start_question(&name);
            }
        }
        // Milliseconds of a timer may end before those of the clock.
        wait.max(Duration::from_millis(10))
    }

    /// Without an account one job goes alone, so that not each of them creates one.
    fn has_room(&self) -> bool {
        let most = if self.setup.accounts.is_open() { AT_ONCE } else { 1 };
        self.jobs.len() < most
    }

    fn start_order(&mut self, name: &str) {
        let Some(managed) = self.names.get_mut(name) else { return };
        if let Err(failure) = make_place(&self.setup, &self.around, managed) {
            self.failed(name, failure);
            return;
        }
        let attempt = Attempt {
            name: name.to_owned(),
            settings: Arc::clone(&self.setup.settings),
            storage: Arc::clone(&self.setup.storage),
            accounts: Arc::clone(&self.setup.accounts),
            challenges: Arc::clone(&self.around.challenges),
            client: CaClient::new(Arc::clone(&self.setup.connector), self.around.clock.clone()),
            report: Arc::clone(&self.around.report),
            proof: managed.proof(&self.setup.settings),
            replaces: managed.replaces(&self.setup.settings),
        };
        managed.orders = true;
        let job = self.jobs.spawn(async move { Ended::Order(Box::pin(attempt.run()).await.map(Box::new)) });
        self.runs(name, job);
    }

    fn start_question(&mut self, name: &str) {
        let Some(certificate) =
            self.names.get(name).and_then(|managed| managed.held.as_ref()?.identifier.clone())
        else {
            return;
        };
        let (accounts, settings) = (Arc::clone(&self.setup.accounts), Arc::clone(&self.setup.settings));
        let client = CaClient::new(Arc::clone(&self.setup.connector), self.around.clock.clone());
        let question = renewal::ask(accounts, settings, client, certificate);
        let job = self.jobs.spawn(async move { Ended::Question(Box::pin(question).await) });
        self.runs(name, job);
    }

    fn runs(&mut self, name: &str, job: AbortHandle) {
        self.running.insert(job.id(), name.to_owned());
        if let Some(managed) = self.names.get_mut(name) {
            managed.job = Some(job);
        }
    }

    /// A job has ended.
    fn note(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(name) = self.running.remove(&id) else { return };
        let Some(managed) = self.names.get_mut(&name) else { return };
        // Another one may run for the name by now.
        if managed.job.take_if(|job| job.id() == id).is_none() {
            return;
        }
        let was_order = mem::take(&mut managed.orders);
        match ended {
            Ok((_, Ended::Order(Ok(issued)))) => self.issued(&name, *issued),
            Ok((_, Ended::Order(Err(failure)))) => self.failed(&name, failure),
            Ok((_, Ended::Question(result))) => self.answered(&name, result),
            Err(error) if error.is_panic() => {
                let failure =
                    Failure::new(FailureKind::Internal, "larder has failed at this; please report it");
                match was_order {
                    true => self.failed(&name, failure),
                    false => self.answered(&name, Err(failure)),
                }
            }
            Err(_) => {}
        }
    }

    fn issued(&mut self, name: &str, issued: Issued) {
        let (now, replaces, not_after) = (self.now(), issued.replaces, issued.pair.facts.lifetime.not_after);
        let Some(managed) = self.names.get_mut(name) else { return };
        let (chain, key) = managed.issued(issued, &self.setup.storage, &self.setup.settings, now);
        self.around.certificates.install(name, chain, key);
        self.save(name);
        if let Err(error) = self.setup.storage.forget_order(name) {
            self.report(Event::Storage { failure: error.into() });
        }
        self.shared.board.count_issued();
        self.report(Event::Issued { name: name.to_owned(), not_after, replaces });
    }

    fn failed(&mut self, name: &str, failure: Failure) {
        let now = self.now();
        let Some(managed) = self.names.get_mut(name) else { return };
        let wait = managed.failed(&failure, &self.setup.settings, now, random());
        let failures = managed.record.failures;
        if failure.kind.concerns_all_names() {
            self.paused_until = schedule::later(now, PAUSE);
        }
        self.save(name);
        self.shared.board.count_failed(failure.kind);
        self.report(Event::Failed { name: name.to_owned(), failure, failures, wait });
    }

    fn answered(&mut self, name: &str, result: Result<Suggested, Failure>) {
        let now = self.now();
        let Some(managed) = self.names.get_mut(name) else { return };
        let event = match result {
            Ok(suggested) => {
                managed.suggested(suggested.window, suggested.retry_after, now, random());
                Event::Suggested { name: name.to_owned(), next: managed.next(&self.setup.settings, now) }
            }
            Err(failure) => {
                // What was known of its wishes still counts.
                let wait = schedule::ask_again(failure.retry_after.or(Some(ASK_AGAIN)));
                managed.record.ask_ms = schedule::later(now, wait).0;
                Event::NotSuggested { name: name.to_owned(), failure }
            }
        };
        self.save(name);
        self.report(event);
    }

    fn save(&self, name: &str) {
        let Some(managed) = self.names.get(name) else { return };
        if let Err(error) = self.setup.storage.save_state(name, &managed.record) {
            self.report(Event::Storage { failure: error.into() });
        }
        self.show(managed);
    }

    fn show(&self, managed: &Managed) {
        let leads = self.lock.is_some();
        self.shared.board.show(managed.status(&self.setup.settings, self.now(), leads));
    }

    fn show_all(&self) {
        self.names.values().for_each(|managed| self.show(managed));
    }
}

/// Moves aside what is damaged, and completes what a crash has left.
fn make_place(setup: &Setup, around: &Surroundings, managed: &mut Managed) -> Result<(), Failure> {
    if let Some(reason) = managed.damaged.take() {
        let moved_to = setup.storage.set_certificate_aside(&managed.name)?;
        let path = moved_to.with_extension("");
        (around.report)(Event::Damaged { path, moved_to: Some(moved_to), reason });
    }
    setup.storage.complete(&managed.name)?;
    Ok(())
}

/// Evenly drawn. Chances only spread load here, so that a source that fails costs nothing.
fn random() -> u64 {
    let mut bytes = [0; 8];
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}
