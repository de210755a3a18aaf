//! A look at a server before it is used: can it be reached, what is it, and may larder do there what it needs.
//!
//! In: settings, and what the server is for. Out: what it says of itself, and each command that is refused. Nothing is written: the
//! server is asked what it would allow (`redis.acl_check_cmd`).

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::redis::{Value, cmd};
use larder_observe::Diagnostics;
use tokio::time::{Instant, timeout_at};

use super::about::About;
use super::call_error::CallError;
use super::dial::Dial;
use super::login::LoggedIn;
use super::reply::time;
use super::scan::{Lists, Scanner};
use super::settings::RedisSettings;
use crate::address::Resolve;
use crate::error::{Failure, RemoteError};

/// The longest string of a reply: the text of `INFO`.
const TEXT_MAX: usize = 256 << 10;
/// The bounds of a reply: the commands that are refused.
const LISTS: Lists = Lists { nested: 2, elements: 64, bytes: 1 << 20 };
/// Each argument is a command with its arguments behind the key, cut at blanks. Answers those that are refused.
const MAY_BE_RUN: &str = "local refused = {} for _, line in ipairs(ARGV) do local words = {} for word in string.gmatch(line, '%S+') do \
                          words[#words + 1] = word == 'KEY' and KEYS[1] or word end local known, allowed = pcall(redis.acl_check_cmd, \
                          unpack(words)) if not (known and allowed) then refused[#refused + 1] = words[1] end end return refused";

/// What a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Values or versions of an application. Which keys these have is the application's to say, so no rights are looked at.
    Application,
    /// Responses that larders share.
    Records,
    /// The purges of a fleet. Its clock counts where responses are shared.
    Fleet {
        /// Whether they are.
        is_timed: bool,
    },
}

impl Use {
    const fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Application => &[],
            Self::Records => &["GET KEY", "PTTL KEY", "SET KEY v NX GET PX 1", "UNLINK KEY", "TOUCH KEY"],
            Self::Fleet { .. } => &[
                "SCRIPT LOAD s",
                "EVALSHA s 1 KEY",
                "INFO server",
                "HGET KEY f",
                "HGETALL KEY",
                "HSET KEY f v",
                "HDEL KEY f",
                "HINCRBY KEY f 1",
                "XADD KEY * f v",
                "XRANGE KEY - +",
                "XREAD STREAMS KEY 0",
                "DEL KEY",
            ],
        }
    }

    /// Whether larder's own keys are evicted there, so that the server's policy matters.
    const fn is_larders_own(self) -> bool {
        matches!(self, Self::Records | Self::Fleet { .. })
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Examined {
    /// What the server is; `None` where it does not tell.
    pub about: Option<About>,
    /// Commands that it refuses, each once.
    pub refused: Vec<String>,
    /// How far its clock and the one here are apart.
    pub clocks_apart: Option<Duration>,
    /// How long a round trip took.
    pub round_trip: Duration,
}

impl Examined {
    /// Why larder cannot work with it as it is, in words.
    pub fn problems(&self) -> Vec<String> {
        let refused = (!self.refused.is_empty()).then(|| {
            format!(
                "larder may not run {}: the rights of its user have to be extended",
                self.refused.join(", ")
            )
        });
        self.about.as_ref().and_then(About::refusal).into_iter().chain(refused).collect()
    }

    /// What its operator might change, for these uses.
    pub fn advice(&self, uses: &[Use]) -> Option<String> {
        uses.iter().any(|of| of.is_larders_own()).then(|| self.about.as_ref()?.advice()).flatten()
    }
}

/// Looks at a server, for as long as its settings allow for each of the questions; in a cluster, at the node that has the fleet's log. The
/// names of larder's own keys begin with `prefix`.
///
/// # Errors
/// Certificates cannot be used.
///
/// # Cancel safety
/// Dropping it closes the connection.
pub async fn examine(
    settings: &RedisSettings,
    (uses, prefix): (&[Use], &str),
    names: Arc<dyn Resolve>,
) -> Result<Result<Examined, String>, RemoteError> {
    let probe = format!("{prefix}:1:{{fleet}}:probe");
    let dial = Dial::new(settings, probe.as_bytes(), names, &Diagnostics::silent())?;
    let limit = settings.timeout;
    let looked = async {
        let scanner = Scanner::with_lists(TEXT_MAX, LISTS);
        let opening = timeout_at(Instant::now() + limit, dial.open(scanner)).await;
        let mut opened = match opening {
            Ok(opened) => opened.map_err(|error| CallError::Connect(error.to_string()))?,
            Err(_) if settings.tls.is_some() => {
                return Err(CallError::Connect(
                    "no reply came in time; does it speak TLS at this port?".to_owned(),
                ));
            }
            Err(_) => return Err(CallError::Failed(Failure::TimedOut)),
        };
        look(&mut opened, (uses, &probe), limit).await
    };
    tokio::select! {
        looked = looked => Ok(looked.map_err(|error| error.to_string())),
        () = dial.watch() => Ok(Err("it cannot be found".to_owned())),
    }
}

async fn look(
    opened: &mut LoggedIn,
    (uses, probe): (&[Use], &str),
    limit: Duration,
) -> Result<Examined, CallError> {
    let mut ask = async |name: &str, arguments: &[&str]| {
        let mut command = cmd(name);
        command.arg(arguments);
        opened.ask(&command, Instant::now() + limit).await.map_err(|failure| match failure {
            // What twemproxy does with a command that it does not know.
            Failure::Closed => CallError::Connect(format!(
                "it was closed at {name}; is there a proxy in between that does not know this command?"
            )),
            failure => CallError::Failed(failure),
        })
    };
    let begun = Instant::now();
    let told = ask("TIME", &[]).await?;
    let round_trip = begun.elapsed();
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clocks_apart = time(&told).map(|there| here.abs_diff(there).saturating_sub(round_trip));
    let about = match ask("INFO", &[]).await? {
        Value::BulkString(info) => About::read(&String::from_utf8_lossy(&info)),
        _ => None,
    };
    let mut commands: Vec<&str> = uses.iter().flat_map(|of| of.commands()).copied().collect();
    commands.extend(uses.contains(&Use::Fleet { is_timed: true }).then_some("TIME"));
    commands.sort_unstable();
    commands.dedup();
    let may_be_run = [&[MAY_BE_RUN, "1", probe], commands.as_slice()].concat();
    let is_too_old = about.as_ref().and_then(About::refusal).is_some();
    let mut refused = Vec::new();
    if commands.is_empty() {
        return Ok(Examined { about, refused, clocks_apart, round_trip });
    }
    match ask("EVAL", &may_be_run).await? {
        // It has no such question, and that it is old is told already.
        _ if is_too_old => {}
        Value::Array(words) => refused.extend(words.into_iter().filter_map(|word| match word {
            Value::BulkString(word) => Some(String::from_utf8_lossy(&word).into_owned()),
            _ => None,
        })),
        Value::ServerError(error) => return Err(CallError::Says(error.to_string())),
        _ => {}
    }
    refused.sort_unstable();
    refused.dedup();
    Ok(Examined { about, refused, clocks_apart, round_trip })
}
