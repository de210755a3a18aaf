//! `larder log`: what happens now in a running larder, a line per request as it comes.
//!
//! In: a filter, and the stream of the admin address's live view. Out: lines on standard output, each written at once; all that is said about
//! them goes to standard error. A faulty filter is told here, with its place, before any larder is asked.
//! Ctrl-C, a reader who has seen enough, `-n` and `--for` are good ends. Deliberately absent: colours.

pub(super) mod line;
pub(super) mod stream;
pub(super) mod view;

use std::process::ExitCode;
use std::time::Duration;

use http::StatusCode;
use larder_observe::filter::Filter;
use serde_json::Value;

use super::admin::{AdminArguments, AdminClientError, encoded, run};
use super::ended::Ended;
use super::exit;
use super::output::{say, write_out};
use super::signals::interrupted;
use super::stats::rates::interval;
use super::table::counted;
use line::{event_line, request_line, steps_line};
use stream::StreamBlock;
use view::{LiveView, WHAT};

/// What `--recent` alone stands for.
const RECENT: &str = "20";

/// Behind the options in `--help`.
const ABOUT_LINES: &str = "A line has the time of day in UTC, method, host and target; the status, how larder came by the answer, \
    why, the time it took, bytes, the rule, and as x64 the number of requests that it stands for.";

#[derive(Debug, clap::Args)]
#[command(after_help = ABOUT_LINES)]
pub(super) struct LogArguments {
    /// Show only requests that match, such as 'cache!=hit and time>100ms'; put it first, in quotes
    filter: Option<String>,
    /// Begin with so many requests that larder remembers, at most 1000 [default without N: 20]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = RECENT, value_parser = clap::value_parser!(u16).range(1..=1000))]
    recent: Option<u16>,
    /// Show every request; without it, at most 100 a second and one hit in 64
    #[arg(long)]
    all: bool,
    /// Add a line to each request: where its time went
    #[arg(long, conflicts_with = "json")]
    steps: bool,
    /// Print each request as JSON, one object per line, and no events
    #[arg(long)]
    json: bool,
    /// End after so many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time: 10s, 500ms, 5m
    #[arg(long = "for", value_name = "DURATION", value_parser = interval)]
    during: Option<Duration>,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn log(arguments: &LogArguments) -> ExitCode {
    if let Some(filter) = &arguments.filter
        && let Err(error) = Filter::parse(filter)
    {
        say(format_args!("larder: error: in the filter, {error}"));
        for line in error.caret(filter).lines() {
            say(format_args!("  {line}"));
        }
        return ExitCode::from(exit::USAGE);
    }
    let ended = run(async {
        tokio::select! {
            // Before larder is asked, so that the signal has its handler by then.
            biased;
            () = interrupted() => Ok(()),
            () = over(arguments.during) => Ok(()),
            ended = follow(arguments) => ended,
        }
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(ended) => ended.told(),
    }
}

/// Waits until the time is over, where there is one.
async fn over(during: Option<Duration>) {
    match during {
        Some(during) => tokio::time::sleep(during).await,
        None => std::future::pending().await,
    }
}

/// Prints what comes, until so much is printed or nobody reads it any more.
async fn follow(arguments: &LogArguments) -> Result<(), Ended> {
    let larder = arguments.admin.larder()?;
    let address = larder.address().to_owned();
    // What is remembered is shown once.
    let again = target(arguments, None);
    let mut view = LiveView::open(larder, &target(arguments, arguments.recent), again).await?;
    if !arguments.all {
        say(
            "larder: this is a sample, at most 100 requests a second and one hit in 64: --all shows every request",
        );
    }
    let mut printer = LogPrinter::new(arguments);
    loop {
        let mut out = String::new();
        let mut then = Then::GoOn;
        for block in view.next().await? {
            then = printer
                .print(&block, &mut out)
                .map_err(|_| AdminClientError::NoLarder(address.clone(), WHAT, StatusCode::OK))?;
            if then != Then::GoOn {
                break;
            }
        }
        // A pipe that nobody empties holds up a thread of its own: Ctrl-C ends the command all the same.
        let written = tokio::task::spawn_blocking(move || write_out(out.as_bytes())).await;
        let is_read =
            written.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(Ended::Writing)?;
        match then {
            _ if !is_read => return Ok(()),
            Then::End => return Ok(()),
            Then::ConnectAgain => view.give_up("this command was too slow for what came").await?,
            Then::GoOn => {}
        }
    }
}

/// What the live view is asked for.
fn target(arguments: &LogArguments, recent: Option<u16>) -> String {
    let filter = encoded(arguments.filter.as_deref().unwrap_or_default());
    let all = if arguments.all { "&all=true" } else { "" };
    let recent = recent.map_or_else(String::new, |recent| format!("&recent={recent}"));
    format!("/api/v1/live?requests={filter}{all}{recent}")
}

/// What to do behind a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    /// It was the last one.
    End,
    /// larder has closed the stream, because it was not read in time.
    ConnectAgain,
}

/// Makes lines of blocks.
struct LogPrinter {
    is_json: bool,
    has_steps: bool,
    is_all: bool,
    /// So many requests are to be printed yet.
    left: Option<u64>,
}

impl LogPrinter {
    const fn new(arguments: &LogArguments) -> Self {
        let LogArguments { json, steps, all, count, .. } = arguments;
        Self { is_json: *json, has_steps: *steps, is_all: *all, left: *count }
    }

    /// Appends the lines of a block. Those of a newer larder that are not known here have none.
    fn print(&mut self, block: &StreamBlock, out: &mut String) -> serde_json::Result<Then> {
        match block.name.as_str() {
            "request" => self.request(&block.data, out),
            "event" if !self.is_json => {
                let event: Value = serde_json::from_str(&block.data)?;
                out.push_str(&event_line(&event));
                out.push('\n');
                Ok(Then::GoOn)
            }
            "skipped" => {
                let skipped: Value = serde_json::from_str(&block.data)?;
                if let Some(number) =
                    skipped.get("skipped").and_then(Value::as_u64).filter(|&number| number > 0)
                {
                    say(self.left_out(number));
                }
                Ok(Then::GoOn)
            }
            "too-slow" => Ok(Then::ConnectAgain),
            _ => Ok(Then::GoOn),
        }
    }

    fn request(&mut self, data: &str, out: &mut String) -> serde_json::Result<Then> {
        let request: serde_json::Map<String, Value> = serde_json::from_str(data)?;
        if self.is_json {
            out.push_str(&one_line(data));
        } else {
            let request = Value::Object(request);
            out.push_str(&request_line(&request));
            if let Some(steps) = steps_line(&request).filter(|_| self.has_steps) {
                out.push('\n');
                out.push_str(&steps);
            }
        }
        out.push('\n');
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        Ok(if self.left == Some(0) { Then::End } else { Then::GoOn })
    }

    fn left_out(&self, number: u64) -> String {
        let were = if number == 1 { "was" } else { "were" };
        let other = if self.is_all { "" } else { ", or use --all" };
        format!(
            "larder: {} {were} left out: narrow the filter{other}",
            counted(number, "request", "requests")
        )
    }
}

/// The same JSON in one line, without anything that a terminal could take for a command.
fn one_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // Within a string JSON has none of these.
            '\n' | '\r' | '\t' => line.push(' '),
            // Beyond them they are within a string. All are in the first plane: four digits are enough.
            c if c.is_control() || larder_observe::is_invisible(c) => {
                line.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: LogArguments,
    }

    fn typed(arguments: &[&str]) -> LogArguments {
        Typed::try_parse_from([&["log"], arguments].concat()).expect("arguments").arguments
    }

    fn block(name: &str, data: &str) -> StreamBlock {
        StreamBlock { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn what_is_typed_is_what_is_asked_for() {
        let check = |arguments: &[&str], expected: &str| {
            let arguments = typed(arguments);
            assert_eq!(target(&arguments, arguments.recent), format!("/api/v1/live?requests={expected}"));
        };
        check(&[], "");
        check(&["cache!=hit and path~\"a|b\""], "cache%21%3Dhit%20and%20path~%22a%7Cb%22");
        check(&["x&all=true#", "--all", "--recent"], "x%26all%3Dtrue%23&all=true&recent=20");
        check(&["--recent", "1000"], "&recent=1000");
        for wrong in [
            &["--recent", "0"][..],
            &["--recent", "1001"],
            &["--recent", "a=b"],
            &["-n", "0"],
            &["--for", "5"],
        ] {
            let parsed = Typed::try_parse_from([&["log"], wrong].concat());
            assert!(parsed.is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_kind_of_block_has_its_lines() {
        let mut printer = LogPrinter::new(&typed(&["--steps", "-n", "2"]));
        let mut out = String::new();
        for (name, data, expected) in [
            ("request", r#"{"at":0,"method":"GET","wait":0.012}"#, Then::GoOn),
            ("event", r#"{"at":1,"kind":"reload","text":"2 sites"}"#, Then::GoOn),
            ("figures", "not known here", Then::GoOn),
            ("skipped", r#"{"skipped":0}"#, Then::GoOn),
            ("too-slow", "{}", Then::ConnectAgain),
            ("request", "{}", Then::End),
        ] {
            assert_eq!(printer.print(&block(name, data), &mut out).unwrap(), expected, "{name}");
        }
        assert_eq!(
            out,
            "00:00:00.000 GET - -  -  -  -\n   waited 12 ms\n00:00:01.000 reload  2 sites\n- - - -  -  -  -\n"
        );
        for (name, data) in [("request", "<html>"), ("request", "[]"), ("event", ""), ("skipped", "{")] {
            assert!(printer.print(&block(name, data), &mut out).is_err(), "{name} {data}");
        }
    }

    #[test]
    fn json_is_passed_on_in_one_harmless_line() {
        let mut printer = LogPrinter::new(&typed(&["--json"]));
        let mut out = String::new();
        let data = "{\"path\":\t\"/\u{202e}\u{9b}\u{7f}é\",\n\"time\": 1.50}";
        assert_eq!(printer.print(&block("request", data), &mut out).unwrap(), Then::GoOn);
        assert_eq!(printer.print(&block("event", "no JSON"), &mut out).unwrap(), Then::GoOn);
        assert_eq!(out, "{\"path\": \"/\\u202e\\u009b\\u007fé\", \"time\": 1.50}\n");
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&out), value(data));
    }

    #[test]
    fn what_was_left_out_is_said_with_what_helps() {
        let said = |arguments: &[&str], number| LogPrinter::new(&typed(arguments)).left_out(number);
        assert_eq!(said(&[], 312), "larder: 312 requests were left out: narrow the filter, or use --all");
        assert_eq!(said(&["--all"], 1), "larder: 1 request was left out: narrow the filter");
    }
}
