//! What was probably meant by a command that does not exist.
//!
//! In: the error of the command line. Out: the same with a tip, where clap's own tips, which go by spelling, have none: other tools
//! call the same thing by another name, and some type the config file at once.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What other tools call a command, and what it is here.
const ELSEWHERE: [(&[&str], &str); 11] = [
    (&["start", "serve", "server", "daemon", "proxy", "up", "reverse-proxy"], "run"),
    (&["validate", "test", "lint", "configtest", "verify", "adapt"], "check"),
    (&["why", "debug", "trace"], "explain"),
    (&["list", "objects", "keys", "dir"], "ls"),
    (&["show", "cat", "fetch", "curl"], "get"),
    (&["purge", "ban", "remove", "del", "delete", "invalidate", "clear", "flush", "evict"], "rm"),
    (&["preload", "prefetch", "crawl", "prime", "warmup", "warm-up"], "warm"),
    (&["status", "stat", "top", "info", "varnishstat", "metrics"], "stats"),
    (&["scrub", "repair"], "fsck"),
    (&["dump", "backup", "save"], "export"),
    (&["version"], "--version"),
];

/// The error with a tip, where there is one that it lacks.
pub(super) fn explained(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if let Some(tip) = tip(typed) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// A tip for a command that has no name like it here, but one that means the same.
fn tip(typed: &str) -> Option<String> {
    if typed.contains("://") || typed.starts_with("unix:") {
        return Some(format!("to accelerate an app: larder run --origin {typed}"));
    }
    if Path::new(typed).extension().is_some_and(|end| end == "toml") {
        return Some(format!("to run with a config file: larder run {typed}"));
    }
    let lower = typed.to_ascii_lowercase();
    let (_, here) = ELSEWHERE.iter().find(|(names, _)| names.contains(&lower.as_str()))?;
    Some(format!("here that is: larder {here}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_and_files_lead_to_a_command() {
        for (typed, expected) in [
            ("serve", Some("here that is: larder run")),
            ("Purge", Some("here that is: larder rm")),
            ("status", Some("here that is: larder stats")),
            ("shop.toml", Some("to run with a config file: larder run shop.toml")),
            (
                "http://127.0.0.1:3000",
                Some("to accelerate an app: larder run --origin http://127.0.0.1:3000"),
            ),
            ("chekc", None),
        ] {
            assert_eq!(tip(typed).as_deref(), expected, "{typed}");
        }
    }
}
