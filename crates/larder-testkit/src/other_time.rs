//! Another time for a process: a library that is loaded before all others adds seconds to the wall clock, and leaves the monotonic clock.
//!
//! In: a C compiler (`cc`). Out: the library, built once for each value. Debian's libfaketime does the same, but not for programs whose
//! allocator is jemalloc: it calls itself without an end while it is loaded.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    const char *text = getenv("LARDER_TEST_SECONDS");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"#;

/// The library. It ends with this value; a process that has loaded it goes on.
#[derive(Debug)]
pub struct OtherTime(TempDir);

impl OtherTime {
    /// Builds it.
    pub fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("time.c");
        std::fs::write(&source, SOURCE).unwrap();
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.path().join("time.so")).arg(&source);
        assert!(command.status().unwrap().success(), "cc");
        Self(folder)
    }

    fn library(&self) -> PathBuf {
        self.0.path().join("time.so")
    }

    /// Has a command run so many seconds later, or earlier.
    pub fn applies_to(&self, command: &mut Command, seconds: i64) {
        command.env("LD_PRELOAD", self.library()).env("LARDER_TEST_SECONDS", seconds.to_string());
    }
}
