//! The thread of a member: both of its connections, and the turns between its calls.
//!
//! In: what the member asks for next. Out: calls, their answers, effects in their order. One task does all of it: the control call
//! and the reading call are under way at once, and an answer is worked off whole before the next is looked at.

use std::sync::Arc;
use std::time::Duration;

use larder_fleet::script::{self, Keys, SCRIPT};
use larder_fleet::{EntryId, Epoch, Lane, LogCall, LogReply, Lost, Ticket};
use larder_observe::Diagnostics;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::carrier::{Carrier, Purge};
use super::member::SharedMember;
use super::random::draw;
use super::settings::FleetSettings;
use crate::clock;
use crate::error::{Failure, RemoteError};
use crate::redis::{About, CallError, Caller, Dial, Lists, RedisSettings};

/// How long a reading call waits at the server for entries.
const READ_PAUSE: Duration = Duration::from_millis(900);
/// The longest that nothing is looked at.
const TURN_MAX: Duration = Duration::from_millis(500);
/// The largest part of a reply: what one purge says.
const PART_MAX: usize = 256 << 10;
/// The bounds of a reply: 256 entries, or 1024 members. A stream answers lists in five levels.
const LISTS: Lists = Lists { nested: 5, elements: 8192, bytes: 16 << 20 };
/// So often within so long a member is displaced by another one of its name, and not by its own silence.
const DISPLACED_MAX: usize = 3;
const DISPLACED_WITHIN: Duration = Duration::from_secs(20);
/// Threads for what may wait: names, and files that purges of others take away.
const BLOCKING_MAX: usize = 16;
/// How long purges without a place are appended still, when larder ends.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

type Answer = Result<LogReply<Purge>, CallError>;
/// What a call leaves: its connection, and its answer.
type Answered = (Box<Caller>, Ticket, Answer);

/// A call under way. It goes on while an earlier answer is worked off, and ends with this value.
struct UnderWay(JoinHandle<Answered>, Ticket);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A connection, or the call that has it.
enum Line {
    Idle(Box<Caller>),
    Busy(UnderWay),
}

/// Starts the thread. It ends when the member has left.
pub(super) fn start(
    settings: FleetSettings,
    dial: Arc<Dial>,
    diagnostics: Diagnostics,
    shared: Arc<SharedMember>,
    carrier: impl Carrier,
) -> Result<(), RemoteError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .build()
        .map_err(RemoteError::Thread)?;
    let turns = Turns {
        control: None,
        reading: None,
        keys: Keys::new(&settings.prefix),
        shares_responses: settings.shares_responses,
        server: settings.server,
        dial,
        shared,
        diagnostics,
        carrier,
        silent_from: None,
        about: None,
        displaced: Vec::new(),
    };
    let run = move || {
        runtime.block_on(turns.run());
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name("fleet".into()).spawn(run).map(drop).map_err(RemoteError::Thread)
}

struct Turns<C> {
    /// `None` before the first call.
    control: Option<Line>,
    reading: Option<Line>,
    keys: Keys,
    /// The server's clock counts.
    shares_responses: bool,
    server: RedisSettings,
    dial: Arc<Dial>,
    shared: Arc<SharedMember>,
    diagnostics: Diagnostics,
    carrier: C,
    /// When it leaves without a word, once it is to leave.
    silent_from: Option<Instant>,
    /// What the server said of itself last.
    about: Option<About>,
    /// When the log did not know this member any more, of late.
    displaced: Vec<Instant>,
}

impl<C: Carrier> Turns<C> {
    async fn run(mut self) {
        let dial = Arc::clone(&self.dial);
        // It ends with the runtime.
        tokio::spawn(async move { dial.watch().await });
        while !self.shared.is_leaving() || self.has_last_words() {
            if let Ok(id) = draw() {
                self.shared.pay(EntryId(id));
            }
            for lane in [Lane::Control, Lane::Reading] {
                self.begin(lane);
            }
            self.turn().await;
            self.carry_out().await;
        }
        self.leave().await;
    }

    /// Whether purges have no place yet, and there is time to append them.
    fn has_last_words(&mut self) -> bool {
        let now = Instant::now();
        let until = *self.silent_from.get_or_insert(now + LAST_WORDS_MAX);
        now < until && self.shared.member().has_unplaced()
    }

    fn line(&mut self, lane: Lane) -> &mut Option<Line> {
        match lane {
            Lane::Control => &mut self.control,
            Lane::Reading => &mut self.reading,
        }
    }

    fn caller(&self) -> Box<Caller> {
        Box::new(Caller::new(Arc::clone(&self.dial), (PART_MAX, LISTS), SCRIPT))
    }

    /// Begins the next call of a lane, if one is due. One that is under way and void is dropped with its connection.
    fn begin(&mut self, lane: Lane) {
        let is_waiting = self.shared.member().is_waiting(lane);
        let caller = match self.line(lane).take() {
            Some(Line::Busy(under_way)) if is_waiting => {
                *self.line(lane) = Some(Line::Busy(under_way));
                return;
            }
            Some(Line::Idle(caller)) => caller,
            Some(Line::Busy(_)) | None => self.caller(),
        };
        let next = match draw() {
            Ok(fresh) => self.shared.member().next_call(lane, clock::now(), || Epoch(fresh)),
            // No call without a name for what it may begin; the next turn tries again.
            Err(_) => None,
        };
        let line = match next {
            Some((ticket, call)) => {
                let is_timed =
                    self.shares_responses && matches!(call, LogCall::Renew { .. } | LogCall::Attach { .. });
                let clock = is_timed.then(|| Arc::clone(&self.shared));
                let at = (self.keys.clone(), self.server.timeout, clock);
                Line::Busy(UnderWay(tokio::spawn(ask(caller, at, ticket, call)), ticket))
            }
            None => Line::Idle(caller),
        };
        *self.line(lane) = Some(line);
    }

    /// Waits for what comes first: an answer, something to do, or the next moment at which something is due.
    async fn turn(&mut self) {
        let due = self.shared.member().due(clock::now()).min(TURN_MAX);
        let shared = Arc::clone(&self.shared);
        let (lane, answered) = tokio::select! {
            biased;
            answered = answered(&mut self.control) => (Lane::Control, answered),
            answered = answered(&mut self.reading) => (Lane::Reading, answered),
            () = shared.woken() => return,
            () = sleep(due) => return,
        };
        let (caller, ticket, answer) = match answered {
            Ok(answered) => answered,
            // Where the task is lost, so is its connection.
            Err(ticket) => {
                *self.line(lane) = None;
                self.shared.member().failed(lane, ticket, clock::now());
                if self.shared.note_failure(lane, Some(CallError::Failed(Failure::Closed).to_string())) {
                    self.tell();
                }
                return;
            }
        };
        self.advise(&caller);
        *self.line(lane) = Some(Line::Idle(caller));
        let is_news = match answer {
            Ok(reply) => {
                if matches!(reply, LogReply::Lost(Lost::Member)) {
                    self.note_displaced();
                }
                self.shared.member().answered(lane, ticket, reply, clock::now());
                self.shared.note_failure(lane, None)
            }
            Err(error) => {
                self.shared.member().failed(lane, ticket, clock::now());
                self.shared.note_failure(lane, Some(error.to_string()))
            }
        };
        if is_news {
            self.tell();
        }
    }

    /// The log does not know this member any more. A larder of the same name takes the place of this one, and this one takes its, without
    /// an end.
    fn note_displaced(&mut self) {
        let (now, name) = (Instant::now(), self.shared.report().name);
        self.displaced.retain(|at| *at + DISPLACED_WITHIN > now);
        self.displaced.push(now);
        if self.displaced.len() >= DISPLACED_MAX {
            self.displaced.clear();
            self.diagnostics.warn(
                "fleet",
                "displaced",
                format_args!(
                    "another larder seems to be a member of the fleet under the name {name} as well: each takes the lease from the other; \
                     give one of them another name in [fleet] name"
                ),
            );
        }
    }

    /// Warns of what the server does when it is full, once for each server that says so.
    fn advise(&mut self, caller: &Caller) {
        let about = caller.about();
        if about.is_none() || about == self.about.as_ref() {
            return;
        }
        self.about = about.cloned();
        if let Some(advice) = about.and_then(About::advice) {
            let label = &self.server.place;
            self.diagnostics.warn(
                "fleet",
                &format!("{label} policy"),
                format_args!("Redis {label}: {advice}"),
            );
        }
    }

    fn tell(&self) {
        let (label, report) = (&self.server.place, self.shared.report());
        match report.failure {
            Some(why) => {
                let left = match report.left {
                    Some(left) => format!("for {} s more", left.as_secs()),
                    None => "on".to_owned(),
                };
                self.diagnostics.warn(
                    "fleet",
                    &format!("{label} lost"),
                    format_args!(
                        "the fleet's log at {label} cannot be had: {why}; stored responses are used {left}"
                    ),
                );
            }
            None => self.diagnostics.info(
                "fleet",
                &format!("{label} well"),
                format_args!(
                    "the fleet's log at {label} is read, with {} other members",
                    report.others.len()
                ),
            ),
        }
    }

    /// Does what the member has asked for, and only then lets its lease count.
    async fn carry_out(&mut self) {
        while let Some(effect) = self.shared.next_effect() {
            let number = self.carrier.carry_out(&effect).await;
            self.shared.positions().note(&effect, number);
        }
        self.shared.positions().keep_up(self.carrier.last_invalidation());
        self.shared.publish();
        self.shared.tell_of_changes();
    }

    /// Tells the server that nothing is used here any more, so that nobody waits for this member.
    async fn leave(mut self) {
        let call = self.shared.member().leave();
        if let Some(call) = call {
            // A call may be under way on the line. What it would bring counts for nothing any more.
            let caller = match self.control.take() {
                Some(Line::Idle(caller)) => caller,
                Some(Line::Busy(_)) | None => self.caller(),
            };
            // Where it fails, the others wait for the end of the lease.
            let at = (self.keys.clone(), self.server.timeout, None);
            let _ = ask(caller, at, Ticket::default(), call).await;
        }
        self.shared.note_left();
    }
}

/// The end of the call that a line is busy with. Never, where it is idle. A task that is lost leaves the ticket of its call.
///
/// # Cancel safety
/// The call goes on with the next poll.
async fn answered(line: &mut Option<Line>) -> Result<Answered, Ticket> {
    match line {
        Some(Line::Busy(UnderWay(task, ticket))) => task.await.map_err(|_| *ticket),
        Some(Line::Idle(_)) | None => std::future::pending().await,
    }
}

async fn ask(
    mut caller: Box<Caller>,
    (keys, limit, clock): (Keys, Duration, Option<Arc<SharedMember>>),
    ticket: Ticket,
    call: LogCall<Purge>,
) -> Answered {
    let mut said = run(&mut caller, &keys, limit, (&call, clock.is_some())).await;
    // What a former master says of leases and members holds for nothing at the one that has taken over.
    if said.is_ok()
        && !matches!(call, LogCall::Read { .. } | LogCall::Leave { .. })
        && let Err(error) = caller.confirm(limit).await
    {
        said = Err(error);
    }
    let answer = said.map(|(reply, time)| {
        if let (Some((said, at)), Some(shared)) = (time, clock) {
            shared.positions().note_clock(said, at);
        }
        reply
    });
    (caller, ticket, answer)
}

/// What the server's clock said, and when that was here.
type ClockReading = (Duration, Duration);

/// The answer to a call, and what the server's clock says where that is asked. A member that may not ask for it would share nothing, and
/// no message would say why: so its call fails.
async fn run(
    caller: &mut Caller,
    keys: &Keys,
    limit: Duration,
    (call, is_timed): (&LogCall<Purge>, bool),
) -> Result<(LogReply<Purge>, Option<ClockReading>), CallError> {
    let (arguments, log) = (script::arguments(call), keys.log.as_str());
    let script: (&[&str], &[Vec<u8>]) = (&[&keys.hash, log], &arguments);
    let (said, time) = match call {
        LogCall::Read { after, .. } => {
            (caller.run_behind((log, *after), READ_PAUSE, script, limit).await?, None)
        }
        _ if is_timed => {
            let (said, time) = caller.run_and_time(script, limit).await?;
            (said, Some(time))
        }
        _ => (caller.run(script, limit).await?, None),
    };
    Ok((script::reply(&said).map_err(|_| CallError::Failed(Failure::Malformed))?, time))
}
