//! How a command that asks a running larder ends where it cannot do what it was asked for.

use std::process::ExitCode;

use super::admin;
use super::exit;
use super::output::{complain, printable, say};

/// Why a command that asks a larder and prints ended early.
pub(super) enum Ended {
    Asking(admin::AdminClientError),
    Writing(std::io::Error),
    /// A file that was named for it.
    File(std::path::PathBuf, std::io::Error),
    /// The body is nothing for a terminal.
    NotText,
    /// The larder does not show what happens now.
    NoLiveView,
}

impl From<admin::AdminClientError> for Ended {
    fn from(error: admin::AdminClientError) -> Self {
        Self::Asking(error)
    }
}

impl Ended {
    pub(super) fn told(&self) -> ExitCode {
        match self {
            Self::Asking(error) => failed(error),
            Self::Writing(error) => {
                complain(error);
                ExitCode::from(exit::FAILURE)
            }
            Self::File(path, error) => {
                say(format_args!("larder: error: {}: {error}", printable(&path.display().to_string())));
                ExitCode::from(exit::FAILURE)
            }
            Self::NotText => {
                say("larder: error: the body is not text, and is not written to a terminal");
                say("  hint: -o FILE writes it to a file, -o - to the terminal all the same");
                ExitCode::from(exit::FAILURE)
            }
            Self::NoLiveView => {
                say(
                    "larder: error: this larder has no live view: it is older than this command, or was started without an \
                     admin address",
                );
                ExitCode::from(exit::FAILURE)
            }
        }
    }
}

/// The end of a command that asked a larder in vain.
pub(super) fn failed(error: &admin::AdminClientError) -> ExitCode {
    if let admin::AdminClientError::Config(errors) = error {
        say(errors);
        return ExitCode::from(exit::CONFIG);
    }
    complain(error);
    if let admin::AdminClientError::NotRunning(..) = error {
        say("  hint: --admin, LARDER_ADMIN or the config file (-c) names another address");
    }
    ExitCode::from(if error.is_of_the_question() { exit::USAGE } else { exit::FAILURE })
}
