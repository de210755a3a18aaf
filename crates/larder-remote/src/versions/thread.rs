//! The thread of the versions at one server: its connection, and the turns between its calls.
//!
//! In: names that requests wait for, changes that the server tells. Out: readings, and what the table knows. One call is under way at a time,
//! with all names that wait by then as one. What is asked for meanwhile goes with the next: it may have been changed since the first was
//! sent.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::redis::Cmd;
use larder_observe::Diagnostics;
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::command::{begin, commands, touch, usable};
use super::known::seconds;
use super::links::Links;
use super::name::VersionName;
use super::reader_state::{SharedVersions, VersionAsk};
use super::settings::VersionsSettings;
use super::table::{Entered, Key};
use super::version::{Version, VersionReading};
use crate::clock;
use crate::error::{Failure, RemoteError};
use crate::redis::{CallError, Changed, Dial, Lists, RedisReply};

/// The largest string that a reply may have. A longer one ends the connection.
const STRING_MAX: usize = 1 << 20;
/// The bounds of a reply: the values of as many fields as are asked for at once, or the keys of a change.
const LISTS: Lists = Lists { nested: 4, elements: 65_536, bytes: 4 << 20 };
/// Names that are read as one.
const BATCH_MAX: usize = 512;
/// Names that were forgotten and are read again as one.
const AGAIN_MAX: usize = 2048;
/// Between two of these.
const AGAIN_PAUSE: Duration = Duration::from_millis(20);
/// What was used that lately is read again when it was forgotten, and its keys are touched.
const LATELY: Duration = Duration::from_secs(10);
/// Keys that are touched as one.
const TOUCHED_MAX: usize = 1000;
/// The first pause after a connection that could not be made, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Versions that are begun within a second, so that requests for URLs that no page links to do not fill the server.
const BEGUN_MAX: u32 = 100;
/// A connection that has lasted less is not made anew at once.
const LASTED: Duration = Duration::from_secs(1);
/// Threads for names of hosts.
const BLOCKING_MAX: usize = 4;

/// Starts the thread. It ends with the last handle by which it is asked.
pub(super) fn start(
    settings: VersionsSettings,
    dial: Arc<Dial>,
    diagnostics: Diagnostics,
    shared: Arc<SharedVersions>,
    asked: mpsc::Receiver<VersionAsk>,
) -> Result<(), RemoteError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .build()
        .map_err(RemoteError::Thread)?;
    let turns = Turns { settings, dial, diagnostics, shared, asked, changed: Arc::default() };
    let run = move || {
        runtime.block_on(turns.run());
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name("versions".into()).spawn(run).map(drop).map_err(RemoteError::Thread)
}

struct Turns {
    settings: VersionsSettings,
    dial: Arc<Dial>,
    diagnostics: Diagnostics,
    shared: Arc<SharedVersions>,
    asked: mpsc::Receiver<VersionAsk>,
    /// A change was told.
    changed: Arc<Notify>,
}

/// Requests that wait, and the names of all of them.
#[derive(Default)]
struct Batch {
    waiting: Vec<(Vec<VersionName>, oneshot::Sender<Vec<VersionReading>>)>,
    begun: Vec<VersionName>,
    names: usize,
}

impl Batch {
    fn add(&mut self, ask: VersionAsk) {
        match ask {
            VersionAsk::Read { names, reply } => {
                self.names += names.len();
                self.waiting.push((names, reply));
            }
            VersionAsk::Begin(name) => {
                self.names += 1;
                self.begun.push(name);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.names >= BATCH_MAX
    }
}

/// What ends the thread.
struct Over;

impl Turns {
    async fn run(mut self) {
        let mut pause = PAUSE.0;
        let dial = Arc::clone(&self.dial);
        // It ends with the runtime.
        tokio::spawn(async move { dial.watch().await });
        loop {
            let limit = self.settings.server.timeout;
            let opened = timeout(limit, self.open()).await;
            let opened = opened.unwrap_or(Err(CallError::Failed(Failure::TimedOut)));
            let failure = match opened {
                Ok(mut links) => {
                    let began = Instant::now();
                    let ended = self.serve(&mut links).await;
                    self.shared.known.forget();
                    match ended {
                        // The same versions lie elsewhere.
                        Ok(_) if links.have_moved() => continue,
                        Ok(failure) if began.elapsed() >= LASTED => {
                            self.lost(&failure);
                            pause = PAUSE.0;
                            continue;
                        }
                        Ok(failure) => failure,
                        Err(Over) => return,
                    }
                }
                Err(failure) => failure,
            };
            self.down(&failure);
            if self.wait(pause).await.is_err() {
                return;
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    async fn open(&self) -> Result<Links, CallError> {
        let (shared, notify) = (Arc::clone(&self.shared), Arc::clone(&self.changed));
        let changed: Changed = Arc::new(move |key| {
            match key {
                Some(_) => shared.known.table.changed(key),
                None => shared.known.table.flushed(),
            }
            notify.notify_one();
        });
        Links::open((&self.dial, self.settings.server.timeout), (STRING_MAX, LISTS), changed, &self.shared)
            .await
    }

    /// Requests that come are told that nothing can be had.
    fn down(&self, failure: &CallError) {
        self.shared.is_down.store(true, Ordering::Release);
        self.lost(failure);
    }

    fn lost(&self, failure: &CallError) {
        let said = failure.to_string();
        if self.shared.failure.lock().replace(said.clone()).as_ref() == Some(&said) {
            return;
        }
        let label = &self.settings.server.place;
        self.diagnostics.warn(
            "versions",
            &format!("{label} lost"),
            format_args!(
                "the versions at {label} cannot be had: {said}; requests that need them are validated by the origin"
            ),
        );
    }

    fn well(&self) {
        if self.shared.failure.lock().take().is_some() {
            let label = &self.settings.server.place;
            self.diagnostics.info(
                "versions",
                &format!("{label} well"),
                format_args!("the versions at {label} are read"),
            );
        }
    }

    /// Lets the server alone for a while.
    async fn wait(&mut self, pause: Duration) -> Result<(), Over> {
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(until) => return Ok(()),
                // The request learns it by the end of its channel.
                ask = self.asked.recv() => drop(ask.ok_or(Over)?),
            }
        }
    }

    /// Works with connections until one ends: for this reason.
    async fn serve(&mut self, links: &mut Links) -> Result<CallError, Over> {
        let (mut touched, mut again) = (Instant::now(), Instant::now());
        let mut begun = (Instant::now(), 0);
        loop {
            let mut batch = Batch::default();
            let next_beat = links.next_beat();
            let done = tokio::select! {
                biased;
                failure = links.listen() => return Ok(failure),
                ask = self.asked.recv() => {
                    batch.add(ask.ok_or(Over)?);
                    while !batch.is_full() && let Ok(ask) = self.asked.try_recv() {
                        batch.add(ask);
                    }
                    if begun.0.elapsed() >= Duration::from_secs(1) {
                        begun = (Instant::now(), 0);
                    }
                    batch.begun.truncate((BEGUN_MAX - begun.1) as usize);
                    begun.1 += batch.begun.len() as u32;
                    let done = self.carry_out(links, batch).await;
                    // Also where requests never run out.
                    match done {
                        Ok(()) if touched.elapsed() >= 2 * LATELY => {
                            touched = Instant::now();
                            self.touch(links).await
                        }
                        done => done,
                    }
                }
                () = told_again(&self.changed, again) => {
                    again = Instant::now() + AGAIN_PAUSE;
                    self.read_again(links).await
                }
                () = sleep_until(touched + LATELY) => {
                    touched = Instant::now();
                    self.touch(links).await
                }
                () = sleep_until(next_beat) => links.beat().await,
            };
            if let Err(failure) = done {
                return Ok(failure);
            }
            match links.take_failure() {
                _ if !links.is_vouched() => self.lost(&CallError::Unvouched),
                Some(why) => self.lost(&CallError::Connect(why)),
                None if links.are_well() => self.well(),
                None => {}
            }
        }
    }

    async fn carry_out(&mut self, links: &mut Links, batch: Batch) -> Result<(), CallError> {
        let names = batch.waiting.iter().flat_map(|(names, _)| names).cloned().collect();
        let mut readings = self.read(links, names, true).await?;
        // Who answers may be a former master, and what it says the version of long ago.
        if !(links.are_vouched_soon().await && links.are_current()) {
            readings.clear();
        }
        for (names, reply) in batch.waiting {
            let reading = |name| readings.get(name).cloned().unwrap_or(VersionReading::Unknown);
            // Its request may have left.
            let _ = reply.send(names.iter().map(reading).collect());
        }
        for (node, begun) in by_node(batch.begun, |name| links.node_of(name.key())) {
            let begin: Vec<Cmd> = begun.iter().map(begin).collect();
            let Some(replies) = links.call(node, &begin).await? else { continue };
            for (name, reply) in begun.iter().zip(&replies) {
                if let RedisReply::Says(why) = reply
                    && !links.is_redirection(why)
                {
                    self.complain(name, reply);
                }
            }
        }
        Ok(())
    }

    async fn read_again(&mut self, links: &mut Links) -> Result<(), CallError> {
        let since = seconds(clock::now().saturating_sub(LATELY));
        let forgotten = self.shared.known.table.forgotten(since, AGAIN_MAX);
        self.read(links, forgotten, false).await.map(drop)
    }

    /// A hash whose changes are told is not read any more, and would be the first that the server evicts.
    async fn touch(&mut self, links: &mut Links) -> Result<(), CallError> {
        let since = seconds(clock::now().saturating_sub(LATELY));
        let keys = self.shared.known.table.used_keys(since, TOUCHED_MAX);
        let is_cluster = self.dial.cluster().is_some();
        for (node, keys) in by_node(keys, |key| links.node_of(key)) {
            // In a cluster a command has keys of one slot.
            let at_once = if is_cluster { 1 } else { TOUCHED_MAX };
            let touches: Vec<Cmd> = keys.chunks(at_once).map(touch).collect();
            let replies = links.call(node, &touches).await?;
            let said = replies.into_iter().flatten().find_map(|reply| match reply {
                RedisReply::Says(why) if !links.is_redirection(&why) => Some(why),
                _ => None,
            });
            let Some(why) = said else { continue };
            let label = &self.settings.server.place;
            self.diagnostics.warn(
                "versions",
                &format!("{label} touch"),
                format_args!("{label} may evict versions that are in use, because TOUCH is refused: {why}"),
            );
        }
        Ok(())
    }

    /// Reads these, each once.
    async fn read(
        &mut self,
        links: &mut Links,
        names: Vec<VersionName>,
        are_wanted: bool,
    ) -> Result<HashMap<VersionName, VersionReading>, CallError> {
        let mut readings: HashMap<VersionName, VersionReading> = HashMap::new();
        let mut by_key: HashMap<Vec<u8>, (Vec<VersionName>, Vec<VersionName>)> = HashMap::new();
        for name in names {
            if readings.insert(name.clone(), VersionReading::Unknown).is_none() {
                let (of_key, of_fields) = by_key.entry(name.key().to_vec()).or_default();
                if name.field().is_some() { of_fields.push(name) } else { of_key.push(name) }
            }
        }
        let groups = by_key.into_values().flat_map(|(of_key, of_fields)| {
            let of_fields: Vec<_> = of_fields.chunks(BATCH_MAX).map(<[_]>::to_vec).collect();
            std::iter::once(of_key).chain(of_fields).filter(|group| !group.is_empty())
        });
        let groups: Vec<(Vec<VersionName>, Arc<Key>, u64)> = groups
            .map(|group| {
                let key = self.shared.known.table.key(&group[0]);
                let seen = key.changes();
                (group, key, seen)
            })
            .collect();
        for (node, groups) in by_node(groups, |(group, ..)| links.node_of(group.first()?.key())) {
            for groups in groups.chunks(BATCH_MAX) {
                let commands: Vec<Cmd> = groups.iter().flat_map(|(group, ..)| commands(group)).collect();
                let Some(answers) = links.call(node, &commands).await? else { continue };
                // Each second one is that of `CLIENT CACHING YES`.
                for ((group, key, seen), answers) in groups.iter().zip(answers.chunks(2)) {
                    if let [_, RedisReply::Says(why)] = answers
                        && links.is_redirection(why)
                    {
                        continue;
                    }
                    self.note((group, key, *seen), (answers, are_wanted), &mut readings);
                }
            }
        }
        self.shared.known.table.tidy();
        Ok(readings)
    }

    fn note(
        &self,
        (group, key, seen): (&[VersionName], &Arc<Key>, u64),
        (answers, are_wanted): (&[RedisReply], bool),
        readings: &mut HashMap<VersionName, VersionReading>,
    ) {
        let (caching, answer) = match answers {
            [caching, answer] => (caching, answer),
            _ => return,
        };
        let texts = match (answer, group) {
            (RedisReply::List(texts), group) if texts.len() == group.len() => texts.as_slice(),
            (text @ (RedisReply::Text(_) | RedisReply::Nothing), [_]) => std::slice::from_ref(text),
            _ => return self.complain(&group[0], answer),
        };
        let is_told = *caching == RedisReply::Done;
        if !is_told {
            self.complain(&group[0], caching);
        }
        for (name, text) in group.iter().zip(texts) {
            let reading = match text {
                // What GETRANGE says of a key that is not there.
                RedisReply::Text(text) if text.is_empty() && name.field().is_none() => {
                    self.shared.known.table.absent(name);
                    VersionReading::Absent
                }
                RedisReply::Text(text) => match usable(text) {
                    Some(text) => {
                        let version = self.enter(name, (key, seen), text, are_wanted);
                        // Where the server does not tell of changes, it is known to those who wait, and not to others.
                        if !is_told {
                            self.shared.known.table.is_not_told(name);
                        }
                        VersionReading::Version(version)
                    }
                    None => {
                        self.complain(name, &RedisReply::Says("it is no text of 1 to 256 bytes".to_owned()));
                        VersionReading::Unknown
                    }
                },
                RedisReply::Nothing => {
                    self.shared.known.table.absent(name);
                    VersionReading::Absent
                }
                _ => VersionReading::Unknown,
            };
            readings.insert(name.clone(), reading);
        }
    }

    fn enter(&self, name: &VersionName, key: (&Arc<Key>, u64), text: &str, is_wanted: bool) -> Version {
        let next_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let used = is_wanted.then(|| seconds(clock::now()));
        let Entered { version, went_back_from } =
            self.shared.known.table.enter(name, key, text, (used, next_time));
        if let Some(from) = went_back_from {
            self.shared.counters.went_back();
            self.diagnostics.warn(
                "versions",
                "went back",
                format_args!(
                    "the version {name} was {from} and is {text}: what was stored for it before is not used any more"
                ),
            );
        }
        version
    }

    fn complain(&self, name: &VersionName, answer: &RedisReply) {
        let why = match answer {
            RedisReply::Says(why) => why.as_str(),
            _ => "it is no string",
        };
        let label = &self.settings.server.place;
        self.diagnostics.warn(
            "versions",
            &format!("{label} unfit"),
            format_args!("the version {name} at {label} cannot be used: {why}"),
        );
    }
}

/// What belongs to each node. What belongs to none that is known is left out.
fn by_node<T>(all: Vec<T>, node_of: impl Fn(&T) -> Option<usize>) -> BTreeMap<usize, Vec<T>> {
    let mut nodes: BTreeMap<usize, Vec<T>> = BTreeMap::new();
    for each in all {
        if let Some(node) = node_of(&each) {
            nodes.entry(node).or_default().push(each);
        }
    }
    nodes
}

/// Waits for a change that is told, and at least until then.
async fn told_again(changed: &Notify, until: Instant) {
    changed.notified().await;
    let left = until.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        // The permit is given back if something else comes first.
        let put_back = PutBack(changed);
        sleep(left).await;
        std::mem::forget(put_back);
    }
}

struct PutBack<'a>(&'a Notify);

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
