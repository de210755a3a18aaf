//! What reached the disks, and what waits in memory for it, read ten times a second while something else goes on.
//!
//! In: disks, and the kernel's count of dirty pages. Out: a [`Sample`] each time, and from them the bytes that reached the
//! disks between two moments, and the most that was dirty. Bytes are the device's own count of what it has
//! completed: journal and tables of the file system are in it, and what was written and removed before it got there is not.
//! A sample that cannot be taken fails the measurement.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::param::page_size;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::contender::LOAD_CORE;
use super::disks::Disk;

const EVERY: Duration = Duration::from_millis(100);

/// One moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sample {
    /// Since the watch began.
    pub(super) at: Duration,
    /// All disks together.
    pub(super) written_bytes: u64,
    /// Of the whole machine.
    pub(super) dirty_bytes: u64,
}

/// Does `work`, and takes samples from before it until after it.
pub(super) fn while_watched<T>(disks: &[Disk], work: impl FnOnce() -> Result<T>) -> Result<(T, Vec<Sample>)> {
    let (stop, stopped) = channel::<()>();
    let (first, began) = channel::<()>();
    let watch = move || -> Result<Vec<Sample>> {
        let mut core = CpuSet::new();
        core.set(LOAD_CORE);
        sched_setaffinity(None, &core).context("pinning the watch")?;
        let (start, mut samples) = (Instant::now(), Vec::new());
        loop {
            samples.push(sample(disks, start)?);
            // Nobody waits for any but the first.
            let _ = first.send(());
            if !matches!(stopped.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout)) {
                samples.push(sample(disks, start)?);
                return Ok(samples);
            }
        }
    };
    std::thread::scope(|scope| {
        let watching = scope.spawn(watch);
        // An error: the watch has failed, and says why below.
        let worked = began.recv().map_err(|_| anyhow!("no first sample")).and_then(|()| work());
        drop(stop);
        let samples = watching.join().map_err(|_| anyhow!("the watch panicked"))??;
        Ok((worked?, samples))
    })
}

fn sample(disks: &[Disk], start: Instant) -> Result<Sample> {
    let mut written = 0_u64;
    for disk in disks {
        written = written.saturating_add(disk.written_bytes()?);
    }
    Ok(Sample { at: start.elapsed(), written_bytes: written, dirty_bytes: dirty_bytes()? })
}

/// What is in memory and has still to be written, of the whole machine.
pub(super) fn dirty_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/vmstat").context("/proc/vmstat")?;
    let pages = pages(&text, "nr_dirty").context("no nr_dirty")?;
    Ok(pages.saturating_mul(page_size() as u64))
}

fn pages(vmstat: &str, name: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Bytes per second that reached the disks between these moments: by the last sample before either, or the first of
/// all. `None` where these are not two.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn reached_per_s(samples: &[Sample], from: Duration, until: Duration) -> Option<f64> {
    let before =
        |moment| samples.iter().rev().find(|sample: &&Sample| sample.at <= moment).or(samples.first());
    let (first, last) = (before(from)?, before(until)?);
    let bytes = last.written_bytes.saturating_sub(first.written_bytes);
    let took = last.at.saturating_sub(first.at);
    (!took.is_zero()).then(|| bytes as f64 / took.as_secs_f64())
}

/// The most that was dirty, beyond what was before the first.
pub(super) fn dirty_peak(samples: &[Sample], idle_bytes: u64) -> u64 {
    let most = samples.iter().map(|sample| sample.dirty_bytes).max().unwrap_or(0);
    most.saturating_sub(idle_bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_kernel_s_count_of_dirty_pages_is_read() {
        let vmstat = "nr_free_pages 1\nnr_dirty_threshold 9\nnr_dirty 42\nnr_writeback 7\n";
        assert_eq!(pages(vmstat, "nr_dirty"), Some(42));
        assert_eq!(pages(vmstat, "nr_writeback"), Some(7));
        assert_eq!(pages(vmstat, "nr_unstable"), None);
        assert!(dirty_bytes().is_ok());
    }

    #[test]
    fn a_rate_is_of_the_samples_before_either_moment() {
        let samples: Vec<Sample> = (1..=50)
            .map(|number| Sample {
                at: Duration::from_millis(100 * number + 1),
                // Nothing for two seconds, then 40 MB/s.
                written_bytes: 4_000_000 * number.saturating_sub(20),
                dirty_bytes: if number == 30 { 900 } else { 100 },
            })
            .collect();
        let rate = |from, until| {
            reached_per_s(&samples, Duration::from_millis(from), Duration::from_millis(until)).map(f64::round)
        };
        // The first sample is never quite at the beginning.
        assert_eq!(rate(0, 5001), Some(24_489_796.0));
        assert_eq!(rate(3050, 4050), Some(40_000_000.0));
        assert_eq!(rate(101, 2001), Some(0.0));
        assert_eq!(rate(1001, 1050), None);
        assert_eq!(reached_per_s(&[], Duration::ZERO, EVERY), None);
        assert_eq!(dirty_peak(&samples, 100), 800);
        assert_eq!(dirty_peak(&samples, 1000), 0);
        assert_eq!(dirty_peak(&[], 0), 0);
    }

    #[test]
    fn samples_are_taken_before_and_after_the_work() {
        let (worked, samples) = while_watched(&[], || Ok(7)).unwrap();
        assert_eq!(worked, 7);
        assert!(samples.len() >= 2);
        let failed = while_watched(&[], || -> Result<()> { Err(anyhow!("broken")) });
        assert!(failed.unwrap_err().to_string().contains("broken"));
    }
}
