//! A shell on a terminal of 80 x 24, which is tmux's: keys go in, the screen comes out.
//!
//! In: Debian's tmux, on a socket of its own, so that no session of others is met. Out: what is on the screen, its modes, and the process that runs
//! there. Where there is no tmux, there is no terminal, and a line says so.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The most that any single wait takes.
const LIMIT: Duration = Duration::from_secs(20);

/// A shell on a terminal of 80 x 24.
#[derive(Debug)]
pub struct Tmux {
    directory: tempfile::TempDir,
}

impl Tmux {
    /// `None`, with a line that says so, where there is no tmux.
    #[expect(clippy::disallowed_macros, clippy::print_stdout, reason = "a test that is skipped says so")]
    pub fn start() -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            println!("skipped: there is no tmux on this machine (Debian has it in the package tmux)");
            return None;
        }
        let tmux = Self { directory: tempfile::tempdir().unwrap() };
        // By words: a single word is given to the shell that SHELL names, and not each shell lets the last command take its place.
        let shell = [
            "env",
            "-u",
            "LARDER_ADMIN",
            "-u",
            "LARDER_ADMIN_TOKEN",
            "-u",
            "NO_COLOR",
            "-u",
            "ENV",
            "PS1=$ ",
            "sh",
        ];
        tmux.run(&[&["new-session", "-d", "-x", "80", "-y", "24"][..], &shell].concat());
        Some(tmux)
    }

    /// Gives tmux a command, and returns what it says.
    pub fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.directory.path().join("socket")).args(["-f", "/dev/null"]);
        // A tmux that runs these tests is none of theirs.
        let output = command.args(arguments).env_remove("TMUX").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses a key, by tmux's name of it.
    pub fn key(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    /// Types a text.
    pub fn typed(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types a line.
    pub fn line(&self, text: &str) {
        self.typed(text);
        self.key("Enter");
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Waits until all of these are on the screen.
    pub async fn shows(&self, what: &[&str]) {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if what.iter().all(|what| screen.contains(what)) {
                return;
            }
            assert!(started.elapsed() < LIMIT, "waited too long until {what:?} is on the screen:\n{screen}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until this is on the screen no more.
    pub async fn shows_no(&self, what: &str) {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if !screen.contains(what) {
                return;
            }
            assert!(
                started.elapsed() < LIMIT,
                "waited too long until {what:?} is on the screen no more:\n{screen}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The process that the shell waits for.
    pub fn child(&self) -> OwnedFd {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let child = children.split_whitespace().next().unwrap().parse().unwrap();
        pidfd_open(Pid::from_raw(child).unwrap(), PidfdFlags::empty()).unwrap()
    }

    /// Waits for its end, and finds the terminal as it was.
    pub async fn ended(&self, code: i32) {
        self.shows(&[&format!("code={code}")]).await;
        assert_eq!(self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(), "0 1");
        self.line("clear; stty -a; echo that was all of it | tr a A");
        self.shows(&["thAt wAs All"]).await;
        let modes = self.screen();
        for mode in ["icanon", "echo", "isig", "icrnl", "opost"] {
            assert!(modes.split_whitespace().any(|word| word == mode), "{mode}: {modes}");
        }
        self.line("clear");
        self.shows_no("thAt wAs All").await;
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let socket = self.directory.path().join("socket");
        let _ = Command::new("tmux").arg("-S").arg(socket).args(["-f", "/dev/null", "kill-server"]).output();
    }
}
