//! `larder top`: what a running larder does and why, live on the whole screen.
//!
//! In: the stream of the admin address's live view with the figures of each second, its past, and keys. Out: a screen, drawn at most four times a
//! second, and at once after a key. q, Ctrl-C and a signal are good ends, and give the terminal back as it was.
//! Where standard output is no terminal, nothing is asked: `larder stats --json` is for programs.

mod acts;
mod asks;
mod choice;
mod due;
mod fed;
mod feed;
mod figures;
mod history;
mod keys;
mod request;
mod screen;
mod state;
mod stats;
mod tab;
mod terminal;
mod times;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossterm::event::Event;
use http::Method;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::admin::{AdminArguments, RunningLarder, run};
use super::ended::Ended;
use super::exit;
use super::output::say;
use asks::{TopAnswer, TopAsk};
use feed::keep_fed;
use keys::{TopAction, action};
use screen::ScreenLook;
use state::{TopFed, TopView};
use terminal::TopTerminal;

/// Between two pictures, where no key came.
const PICTURE_TIME: Duration = Duration::from_millis(250);
/// How often ages are told anew, and questions asked that are due.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// So much may have come that was not looked at yet.
const QUEUE: usize = 64;
/// A key asks nothing more while so many questions are under way.
const ASKS_MAX: usize = 32;

/// Behind the options in `--help`.
const ABOUT_KEYS: &str = "Keys: 1 to 8 and Tab change the tab, arrows choose a row, Enter explains its URL, d purges it after a question, / filters, s sorts, \
    space stops the picture, h sets figures of an hour ago beside, w changes the window, ? lists all keys, q quits.";

#[derive(Debug, clap::Args)]
#[command(after_help = ABOUT_KEYS)]
pub(super) struct TopArguments {
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn top(arguments: &TopArguments) -> ExitCode {
    if !std::io::stdout().is_terminal() {
        say("larder: error: top draws on a terminal, and standard output is none");
        say("  hint: larder stats --json prints the figures, larder log the requests");
        return ExitCode::from(exit::USAGE);
    }
    match run(watched(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ended) => ended.told(),
    }
}

/// Signals that end it.
struct Ends([Signal; 4]);

impl Ends {
    fn listen() -> std::io::Result<Self> {
        let listen = |kind: fn() -> SignalKind| signal(kind());
        Ok(Self([
            listen(SignalKind::terminate)?,
            listen(SignalKind::interrupt)?,
            listen(SignalKind::hangup)?,
            listen(SignalKind::quit)?,
        ]))
    }

    async fn come(&mut self) {
        let [terminate, interrupt, hangup, quit] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
    }
}

/// Watches a larder until that is ended. What is in the way at first is said on the terminal as it was.
async fn watched(arguments: &TopArguments) -> Result<(), Ended> {
    let larder = arguments.admin.larder()?;
    let mut ends = Ends::listen().map_err(Ended::Writing)?;
    let stats = tokio::select! {
        () = ends.come() => return Ok(()),
        stats = larder.ask_for(Method::GET, "/stats", "tells its figures") => stats?,
    };
    let mut view = TopView::new(larder.address(), stats, now());
    let look = ScreenLook::of_environment();
    let mut terminal = TopTerminal::take().map_err(Ended::Writing)?;
    let ended = drawn(&larder, &mut view, look, &mut terminal, &mut ends).await;
    drop(terminal);
    ended
}

/// Draws until it is over.
async fn drawn(
    larder: &RunningLarder,
    view: &mut TopView,
    look: ScreenLook,
    terminal: &mut TopTerminal,
    ends: &mut Ends,
) -> Result<(), Ended> {
    let (feed, mut fed) = mpsc::channel(QUEUE);
    let (wanted, wants) = watch::channel(view.stream());
    // They end with their answers, and with the screen.
    let mut tasks = JoinSet::new();
    tasks.spawn(keep_fed(larder.clone(), wants, feed.clone()));
    let mut keys = terminal::events().map_err(Ended::Writing)?;
    let mut looks = tokio::time::interval(LOOK_TIME);
    let (mut is_new, mut next) = (true, Instant::now());
    while !view.is_over {
        let mut asks = Vec::new();
        tokio::select! {
            () = ends.come() => return Ok(()),
            event = keys.recv() => {
                // The terminal has gone.
                let Some(event) = event else { return Ok(()) };
                asks.extend(pressed(event, view, terminal).map_err(Ended::Writing)?);
                if tasks.len() > ASKS_MAX {
                    asks.clear();
                }
                (is_new, next) = (true, Instant::now());
            }
            Some(came) = fed.recv() => {
                view.now = now();
                if let TopFed::Answer(TopAnswer::Refused(error)) = came {
                    return Err(error.into());
                }
                view.feed(came);
                is_new = true;
            }
            Some(ended) = tasks.join_next() => {
                // The terminal is given back already.
                if let Err(error) = ended && let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
            _ = looks.tick() => {
                view.now = now();
                is_new = true;
            }
            () = tokio::time::sleep_until(next), if is_new => {
                let draw = |frame: &mut ratatui::Frame<'_>| {
                    view.size = (frame.area().width, frame.area().height);
                    screen::draw(frame, view, look);
                };
                terminal.draw(draw).map_err(Ended::Writing)?;
                (is_new, next) = (false, Instant::now() + PICTURE_TIME);
            }
        }
        asks.extend(view.due());
        for ask in asks {
            let (larder, feed) = (larder.clone(), feed.clone());
            tasks.spawn(async move { drop(feed.send(TopFed::Answer(ask.ask(larder).await)).await) });
        }
        let stream = view.stream();
        wanted.send_if_modified(|wanted| {
            let is_other = *wanted != stream;
            *wanted = stream;
            is_other
        });
    }
    Ok(())
}

/// Does what a key says, and gives what is to be asked for it.
fn pressed(event: Event, view: &mut TopView, terminal: &mut TopTerminal) -> std::io::Result<Vec<TopAsk>> {
    let Event::Key(key) = event else { return Ok(Vec::new()) };
    let Some(action) = action(key, view.focus()) else { return Ok(Vec::new()) };
    match action {
        TopAction::Suspend => terminal.suspend()?,
        TopAction::Repaint => terminal.repaint()?,
        _ => {}
    }
    Ok(view.act(action).into_iter().collect())
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
