//! The process as the system sees it, read at each scrape from /proc/self: a few small reads, nothing kept.
//!
//! The families carry the names that all Prometheus clients use, so that common dashboards and alerts work.
//! What cannot be read is left out, never reported as zero.

use std::fs;

use crate::exposition::Exposition;
use crate::family;

/// Adds the process families.
pub(crate) fn expose(out: &mut Exposition) {
    if let Some(fds) = open_fds() {
        out.family(&family::PROCESS_OPEN_FDS).value(&[], fds);
    }
    if let Some(max) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        out.family(&family::PROCESS_MAX_FDS).value(&[], max);
    }
    if let Some(bytes) = resident_bytes() {
        out.family(&family::PROCESS_RESIDENT_BYTES).value(&[], bytes);
    }
    if let Some(threads) = threads() {
        out.family(&family::PROCESS_THREADS).value(&[], threads);
    }
    out.family(&family::PROCESS_CPU_SECONDS).value(&[], cpu_seconds());
}

/// The time that all its threads have spent on a core.
pub(crate) fn cpu_seconds() -> f64 {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9
}

/// Without the descriptor that reads the directory itself.
fn open_fds() -> Option<u64> {
    Some((fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1))
}

pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

fn threads() -> Option<u64> {
    Some(fs::read_dir("/proc/self/task").ok()?.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opened_file_is_one_more_descriptor() {
        let before = open_fds().unwrap();
        let files: Vec<_> = (0..200).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open files at the same time; two hundred stand out.
        assert!(open_fds().unwrap() > before + 100);
        drop(files);
    }

    #[test]
    fn a_running_process_has_memory_and_threads() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(threads().unwrap() >= 1);
    }
}
