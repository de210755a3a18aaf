//! The terminal as a screen, and as it was before.
//!
//! In: standard output, which is a terminal. Out: a screen of its own, without a cursor, and keys one by one. It is given back when the value goes,
//! when the process panics, and when the command says so. What cannot be given back is lost in silence: there is no terminal to tell it to.
//! Deliberately absent: signals that are sent to stop the process; only the key for it is known here.

use std::io::{Stdout, Write as _, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::ExecutableCommand as _;
use crossterm::cursor::Show;
use crossterm::event::Event;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Position;
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::mpsc;

/// So many keys wait for the screen at most; more wait in the terminal.
const EVENTS: usize = 64;

/// Whether the terminal is a screen now. To leave it twice would set the cursor back to where it was before the message of a panic.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A screen on the terminal.
pub(super) struct TopTerminal {
    screen: Terminal<CrosstermBackend<Stdout>>,
}

impl TopTerminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It is none, or it has gone.
    pub(super) fn take() -> std::io::Result<Self> {
        restored_on_panic();
        let screen = entered();
        if screen.is_err() {
            restore();
        }
        Ok(Self { screen: screen? })
    }

    /// Draws, as far as something has changed. After a panic there is nothing to draw on.
    ///
    /// # Errors
    /// The terminal has gone.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> std::io::Result<()> {
        match IS_TAKEN.load(Ordering::Relaxed) {
            true => self.screen.draw(draw).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Draws everything anew with the next picture.
    ///
    /// # Errors
    /// The terminal has gone.
    pub(super) fn repaint(&mut self) -> std::io::Result<()> {
        // `Terminal::clear` asks the terminal where its cursor is, and takes the answer from the keys.
        let size = self.screen.size()?;
        self.screen.resize((Position::ORIGIN, size).into())
    }

    /// Gives the terminal back, has the process stand still as Ctrl-Z does it, and takes the terminal again when it goes on.
    ///
    /// # Errors
    /// The terminal has gone.
    pub(super) fn suspend(&mut self) -> std::io::Result<()> {
        restore();
        kill_process(getpid(), Signal::TSTP)?;
        self.screen = entered()?;
        self.repaint()
    }
}

impl Drop for TopTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Keys and changes of the size, as they come. No more of them come when the terminal has gone.
///
/// They are read on a thread of their own, as a read can block in the midst of a sequence: Alt-\[ begins one that nothing may end. The thread ends
/// with the process.
///
/// # Errors
/// There is no thread for them.
pub(super) fn events() -> std::io::Result<mpsc::Receiver<Event>> {
    let (events, receiver) = mpsc::channel(EVENTS);
    let read = move || {
        while let Ok(event) = crossterm::event::read() {
            if events.blocking_send(event).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("larder-keys".to_owned()).spawn(read)?;
    Ok(receiver)
}

fn entered() -> std::io::Result<Terminal<CrosstermBackend<Stdout>>> {
    IS_TAKEN.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    stdout().execute(EnterAlternateScreen)?;
    let mut screen = Terminal::new(CrosstermBackend::new(stdout()))?;
    screen.hide_cursor()?;
    Ok(screen)
}

fn restore() {
    if !IS_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = disable_raw_mode();
    let _ = stdout().execute(LeaveAlternateScreen);
    let _ = stdout().execute(Show);
    let _ = stdout().flush();
}

/// The message of a panic is for the terminal as it was before.
fn restored_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use larder_testkit::tmux::Tmux;

    use super::*;

    #[test]
    #[ignore = "takes the terminal: the test behind it runs it in one of its own"]
    fn panics_on_the_screen() {
        let mut terminal = TopTerminal::take().unwrap();
        terminal.draw(|frame| frame.render_widget("a picture", frame.area())).unwrap();
        panic!("what a fault says");
    }

    #[tokio::test]
    async fn a_panic_is_told_on_the_terminal_as_it_was_before() {
        let Some(tmux) = Tmux::start() else { return };
        let program = std::env::current_exe().unwrap();
        let test = "cli::top::terminal::tests::panics_on_the_screen";
        let run = format!("{} --ignored --exact {test} --nocapture; echo code=$?", program.display());
        tmux.line(&format!("RUST_BACKTRACE=0 {run}"));
        tmux.shows(&["what a fault says", "panicked at", "1 failed", "code=101"]).await;
        assert!(!tmux.screen().contains("a picture"));
        tmux.ended(101).await;
    }
}
