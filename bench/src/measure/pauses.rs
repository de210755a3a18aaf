//! The machine's own pauses: when nothing ran on a core that should have, whoever was being measured.
//!
//! In: the cores of a measurement. Out: [`Pauses`], the stretches of time in which either core was held up. On each core
//! stands a watcher, a process of its own with real-time priority (SCHED_FIFO), above everything that is measured. It
//! sleeps for a millisecond at a time and notes when the interrupt that ends its sleep came more than one late.
//! Why a server under test is not to blame for that: no thread can put off a timer interrupt, only the hypervisor that
//! does not run this core, or code in the kernel with interrupts off, which lasts for microseconds. What a thread can
//! put off is the turn of a watcher that is awake: a kernel built or booted without preemption finishes a system call or
//! a softirq first, for whoever made it. The kernel counts that wait apart (`/proc/thread-self/schedstat`, the second
//! figure), and it is no pause here: a server's long system call stays in its waits.
//! Not noted: pauses of less than a millisecond, the part of one that lies before the watcher should have woken, and one
//! that begins while it waits for its turn.
//! Deliberately absent: a watcher with ordinary priority, which would count waiting behind a server as a pause.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// Above every ordinary thread, below the kernel's own.
const PRIORITY: &str = "10";
/// How long a watcher sleeps, and how late it has to be woken to note it.
const SLEEP: Duration = Duration::from_millis(1);
/// Beyond it nothing more is noted, so nothing more is taken off; two minutes of nothing but pauses.
const NOTED_MAX: usize = 65_536;
/// What a watcher may say at its end: two numbers of up to 20 digits per pause.
const SAID_MAX: usize = NOTED_MAX * 42;
/// How long a watcher may take to begin, and to say what it noted.
const SAY_MAX: Duration = Duration::from_secs(10);
/// A watcher's first line.
const READY: &str = "watching\n";

/// What a watcher noted: when it should have been awake, on the monotonic clock, and how late it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Noted {
    start: Duration,
    length: Duration,
}

/// The life of a watcher's process: watches until standard input closes (also by the parent's death), then prints one
/// line per pause, start and length in nanoseconds.
///
/// # Errors
/// The kernel does not count how long this thread waits for its turn, or standard output is gone.
pub(crate) fn watch() -> Result<()> {
    watch_until_closed(&std::io::stdin(), &mut std::io::stdout().lock())
}

fn watch_until_closed(input: &impl AsFd, output: &mut impl Write) -> Result<()> {
    let turns = File::open("/proc/thread-self/schedstat").context("this kernel has no schedstat")?;
    let mut noted = Vec::with_capacity(NOTED_MAX);
    output.write_all(READY.as_bytes())?;
    output.flush()?;
    // The time from one waking to the next is seen whole: `woke` is where the next sleep begins.
    let (mut slept, mut waited) = (monotonic(), waited_for_turn(&turns)?);
    while !closed_within(input, SLEEP)? {
        let woke = monotonic();
        let waited_now = waited_for_turn(&turns)?;
        let queued = waited_now.saturating_sub(waited);
        noted.extend(late(slept, woke, queued).filter(|_| noted.len() < NOTED_MAX));
        (slept, waited) = (woke, waited_now);
    }
    for Noted { start, length } in noted {
        writeln!(output, "{} {}", start.as_nanos(), length.as_nanos())?;
    }
    Ok(output.flush()?)
}

/// The pause in a sleep that began at `slept` and was over at `woke`, the last `queued` of it spent awake without a turn.
fn late(slept: Duration, woke: Duration, queued: Duration) -> Option<Noted> {
    let start = slept + SLEEP;
    let length = woke.saturating_sub(start).saturating_sub(queued);
    (length > SLEEP).then_some(Noted { start, length })
}

fn monotonic() -> Duration {
    clock_gettime(ClockId::Monotonic).try_into().unwrap_or_default()
}

/// How long this thread has ever been ready to run while something else had the core.
fn waited_for_turn(turns: &File) -> Result<Duration> {
    let mut text = [0; 128];
    let length = turns.read_at(&mut text, 0).context("schedstat")?;
    let text = std::str::from_utf8(text.get(..length).unwrap_or_default())?;
    let waited = text.split_whitespace().nth(1).and_then(|figure| figure.parse().ok());
    waited.map(Duration::from_nanos).context("schedstat without a second figure")
}

/// Sleeps for `limit`, or until the other end of `input` has closed.
fn closed_within(input: &impl AsFd, limit: Duration) -> Result<bool> {
    let mut polled = [PollFd::new(input, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec::try_from(limit)?)) {
        Ok(ready) => Ok(ready > 0),
        // A stop and its continuation, say: the sleep was merely short.
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// One watcher per core, until they are asked or dropped.
pub(super) struct Watchers {
    watchers: Vec<Watcher>,
}

struct Watcher {
    child: Child,
    /// Open as long as it shall watch.
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Watchers {
    /// Starts them; they watch when this returns.
    ///
    /// # Errors
    /// Real-time priority is not to be had (it takes root), or the kernel lacks schedstat.
    pub(super) fn start(cores: &[usize]) -> Result<Self> {
        let watchers = cores.iter().map(|core| Watcher::start(*core)).collect::<Result<_>>()?;
        Ok(Self { watchers })
    }

    /// Ends them; what they noted.
    pub(super) fn end(self) -> Result<Pauses> {
        let (now, since) = both_clocks();
        let mut held_up = Vec::new();
        for watcher in self.watchers {
            for Noted { start, length } in watcher.end()? {
                let start =
                    now.checked_sub(since.saturating_sub(start)).context("a pause before time began")?;
                held_up.push((start, start + length));
            }
        }
        Ok(Pauses::merge(held_up))
    }
}

impl Watcher {
    fn start(core: usize) -> Result<Self> {
        // By this process's id: the path of a program that has been rebuilt meanwhile leads to another one, or nowhere.
        let this_program = format!("/proc/{}/exe", std::process::id());
        let mut child = Command::new("chrt")
            .args(["-f", PRIORITY, "taskset", "-c", &core.to_string(), &this_program, "pauses"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("chrt")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("a watcher without standard output")?;
        let mut watcher = Self { child, input, output };
        let first = said_within(&mut watcher.output, SAY_MAX, |said| said.ends_with(b"\n"))?;
        if first != READY {
            // It has ended, so this too comes to its end.
            let mut why = String::new();
            if let Some(stderr) = watcher.child.stderr.take() {
                stderr.take(1024).read_to_string(&mut why)?;
            }
            bail!("no watcher on core {core}: {}", why.trim());
        }
        Ok(watcher)
    }

    fn end(mut self) -> Result<Vec<Noted>> {
        self.input = None;
        let said = said_within(&mut self.output, SAY_MAX, |_| false)?;
        ensure!(self.child.wait()?.success(), "a watcher failed");
        read_noted(&said)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Errors mean that it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes from `output` until it is `whole`, or closes.
fn said_within(output: &mut ChildStdout, limit: Duration, whole: impl Fn(&[u8]) -> bool) -> Result<String> {
    let deadline = Instant::now() + limit;
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    while !whole(&said) {
        let left = deadline.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "a watcher says nothing");
        if !closed_within(output, left)? {
            continue;
        }
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => said.extend_from_slice(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        ensure!(said.len() <= SAID_MAX, "a watcher says too much");
    }
    Ok(String::from_utf8(said)?)
}

fn read_noted(said: &str) -> Result<Vec<Noted>> {
    let noted = |line: &str| {
        let (start, length) = line.split_once(' ')?;
        let nanoseconds = |figure: &str| figure.parse().ok().map(Duration::from_nanos);
        Some(Noted { start: nanoseconds(start)?, length: nanoseconds(length)? })
    };
    said.lines().map(|line| noted(line).with_context(|| format!("a watcher said {line:?}"))).collect()
}

/// One moment on the clock of this program and on the one that watchers name.
fn both_clocks() -> (Instant, Duration) {
    // A pause between the two readings would shift everything: of several pairs the one that was read fastest.
    let pairs = (0..16).map(|_| {
        let (before, now, since) = (Instant::now(), Instant::now(), monotonic());
        (before.elapsed(), now, since)
    });
    let fastest = pairs.min_by_key(|(took, ..)| *took);
    fastest.map_or_else(|| (Instant::now(), monotonic()), |(_, now, since)| (now, since))
}

/// When the machine stood still on either core.
#[derive(Default)]
pub(super) struct Pauses {
    /// From and to; sorted, and none touches the next.
    held_up: Vec<(Instant, Instant)>,
}

impl Pauses {
    /// Of stretches in any order; where two overlap or touch there is one.
    fn merge(mut stretches: Vec<(Instant, Instant)>) -> Self {
        stretches.sort_unstable();
        let mut held_up: Vec<(Instant, Instant)> = Vec::with_capacity(stretches.len());
        for (from, to) in stretches {
            match held_up.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => held_up.push((from, to)),
            }
        }
        Self { held_up }
    }

    /// How much of each pause lies between `from` and `to`; pauses that lie elsewhere are left out.
    pub(super) fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = Duration> {
        let first = self.held_up.partition_point(|(_, end)| *end <= from);
        let later = self.held_up.get(first..).unwrap_or_default();
        let within = later.iter().take_while(move |(start, _)| *start < to);
        within.map(move |(start, end)| end.min(&to).saturating_duration_since(*start.max(&from)))
    }

    /// The time from `from` to `to` without pauses.
    pub(super) fn take_off(&self, from: Instant, to: Instant) -> Duration {
        let held_up: Duration = self.between(from, to).sum();
        to.saturating_duration_since(from).saturating_sub(held_up)
    }

    /// For tests elsewhere: stretches in milliseconds after `start`.
    #[cfg(test)]
    pub(super) fn of(start: Instant, stretches: &[(u64, u64)]) -> Self {
        let at = |ms| start + Duration::from_millis(ms);
        Self::merge(stretches.iter().map(|(from, to)| (at(*from), at(*to))).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::net::UnixStream;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_pause_is_how_late_the_interrupt_was_and_not_how_long_the_watcher_waited_for_its_turn() {
        let check = |woke, queued, expected: Option<(u64, u64)>| {
            let noted = late(ms(100), ms(woke), ms(queued)).map(|noted| (noted.start, noted.length));
            assert_eq!(noted, expected.map(|(start, length)| (ms(start), ms(length))), "{woke} {queued}");
        };
        check(101, 0, None);
        check(102, 0, None);
        check(103, 0, Some((101, 2)));
        check(127, 0, Some((101, 26)));
        check(127, 26, None);
        check(127, 25, None);
        check(127, 20, Some((101, 6)));
        // A short sleep (a signal), and a count that ran ahead.
        check(100, 0, None);
        check(101, 9, None);
    }

    #[test]
    fn pauses_that_overlap_or_touch_are_one() {
        let start = Instant::now();
        let check = |stretches: &[(u64, u64)], expected: &[(u64, u64)]| {
            let at = |ms| start + Duration::from_millis(ms);
            let expected: Vec<_> = expected.iter().map(|(from, to)| (at(*from), at(*to))).collect();
            assert_eq!(Pauses::of(start, stretches).held_up, expected, "{stretches:?}");
        };
        check(&[], &[]);
        check(&[(5, 9), (1, 3)], &[(1, 3), (5, 9)]);
        check(&[(1, 4), (3, 9)], &[(1, 9)]);
        check(&[(1, 9), (3, 4)], &[(1, 9)]);
        check(&[(1, 4), (4, 6)], &[(1, 6)]);
        check(&[(1, 4), (1, 6), (2, 3), (8, 9)], &[(1, 6), (8, 9)]);
    }

    #[test]
    fn what_is_taken_off_is_each_millisecond_within_the_wait_that_either_watcher_was_held_up_in() {
        const END: u64 = 8;
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stretches: Vec<(u64, u64)> =
            (0..END).flat_map(|from| (from + 1..=END).map(move |to| (from, to))).collect();
        // Every pair of stretches and every wait over them, counted millisecond by millisecond.
        for one in &stretches {
            for other in &stretches {
                let pauses = Pauses::of(start, &[*one, *other]);
                for (from, to) in &stretches {
                    let held_up = |ms: &u64| [one, other].iter().any(|(from, to)| (*from..*to).contains(ms));
                    let left = (*from..*to).filter(|ms| !held_up(ms)).count();
                    let found = pauses.take_off(at(*from), at(*to));
                    assert_eq!(found.as_millis(), left as u128, "{one:?} {other:?} of {from}..{to}");
                }
            }
        }
        assert_eq!(Pauses::default().take_off(at(1), at(4)), ms(3));
        assert_eq!(Pauses::of(start, &[(0, 9)]).take_off(at(4), at(4)), Duration::ZERO);
    }

    #[test]
    fn pauses_are_counted_within_a_stretch_only() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let pauses = Pauses::of(start, &[(0, 2), (3, 5), (8, 12), (20, 30)]);
        let check = |from, to, expected: &[Duration]| {
            assert_eq!(pauses.between(at(from), at(to)).collect::<Vec<_>>(), expected, "{from}..{to}");
        };
        check(4, 10, &[ms(1), ms(2)]);
        // Those that only touch it are elsewhere.
        check(5, 8, &[]);
        check(2, 20, &[ms(2), ms(4)]);
    }

    #[test]
    fn a_watcher_begins_ends_with_its_input_and_says_what_can_be_read() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let (ours, its) = UnixStream::pair().unwrap();
        let watching = std::thread::spawn(move || {
            let mut said = Vec::new();
            watch_until_closed(&its, &mut said).map(|()| said)
        });
        drop(ours);
        let said = String::from_utf8(watching.join().unwrap().unwrap()).unwrap();
        read_noted(said.strip_prefix(READY).unwrap()).unwrap();
    }

    #[test]
    fn what_a_watcher_says_is_read_and_anything_else_refused() {
        let noted = |start, length| Noted {
            start: Duration::from_nanos(start),
            length: Duration::from_nanos(length),
        };
        assert_eq!(read_noted("5 2000000\n7000000 3\n").unwrap(), [noted(5, 2_000_000), noted(7_000_000, 3)]);
        assert_eq!(read_noted("").unwrap(), []);
        for odd in ["5\n", "5 x\n", "-5 1\n", "5 1 2\n", "\n"] {
            assert!(read_noted(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn both_clocks_name_one_moment() {
        let (now, since) = both_clocks();
        let apart = (since + now.elapsed()).abs_diff(monotonic());
        assert!(apart < ms(500), "{apart:?}");
    }
}
