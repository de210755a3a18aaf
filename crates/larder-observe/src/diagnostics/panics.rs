//! Panics as messages: the standard library's own report writes to stderr on the thread that panicked, which then waits as long
//! as stderr does.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::time::Duration;

use super::Diagnostics;

/// How long the main thread waits for its panic to be written: the process ends with it.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Diagnostics {
    /// From now on panics of this process are errors like others, in place of the standard library's report. With
    /// `RUST_BACKTRACE` set the backtrace follows. For the whole process, so it is for the binary.
    pub fn take_panics(&self) {
        let diagnostics = self.clone();
        std::panic::set_hook(Box::new(move |panic| diagnostics.tell_panic(panic)));
    }

    fn tell_panic(&self, panic: &PanicHookInfo<'_>) {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        self.error("panic", &place, format_args!("thread {name} panicked at {place}: {message}"));
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            self.print(backtrace);
        }
        if name == "main" {
            self.flush(LAST_WORDS);
        }
    }
}
