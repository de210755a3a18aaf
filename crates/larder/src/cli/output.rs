//! What commands write to standard output and to standard error.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

pub(crate) use larder_observe::printable;

use super::exit;

/// Writes to standard output. A reader that has seen enough, such as `head`, is no failure: false says to stop.
pub(super) fn write_out(bytes: &[u8]) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    // What is left in its buffer would be written at the end of the process, and lost without a word.
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes all there is to standard output, and ends well if that does.
pub(super) fn print_all(bytes: &[u8]) -> ExitCode {
    match write_out(bytes) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    }
}

/// A line on stderr. Where it cannot be written there is nobody to be told of that.
pub(super) fn say(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// One line on stderr, with everything that hangs behind the error.
pub(super) fn complain(error: &dyn std::error::Error) {
    say(format_args!("larder: error: {}", chain(error)));
}

/// An error with everything that hangs behind it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    printable(&line)
}
