//! Nothing that this program starts outlives it, however it ends.
//!
//! In: a process group that was started, a folder that was made, a file system that was mounted, a loop device, or a
//! setting of the kernel's, as a [`Watched`] that lasts as long as they do.
//! Out: where this program ends without having dropped it (Ctrl-C, TERM, KILL, a panic that aborts), it is undone all
//! the same: settings first, so that nothing is held back any more, then groups, mounts, devices, folders. Every child has a process group of its own, so the terminal's Ctrl-C
//! reaches this program only; a server that stays behind would spoil the next measurement, unseen.
//! A process of its own does it, for nothing else survives KILL: it reads from a pipe what there is, and the pipe
//! closes with this program. It sleeps otherwise. Neither a signal handler nor `PR_SET_PDEATHSIG` would reach the
//! children of a child: the workers of nginx run on when their master is killed.
//! Deliberately absent: telling one group from a later one with the same number. A group is taken off the list when it
//! has ended, before its number can be given away again.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::children::{GRACE, pause};

/// The only argument of the process that watches.
const COMMAND: &str = "watch-orphans";

/// Whether this program has a `main` that becomes the watching process. Tests have none.
static CAN_WATCH: AtomicBool = AtomicBool::new(false);

/// To be called first in `main`. In the process that watches it returns when all is undone, with the exit code to
/// return; in every other it returns `None` at once.
pub fn watch_over_children() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(COMMAND) && arguments.next().is_none() {
        let read = watch_until_closed(BufReader::new(std::io::stdin()));
        return Some(if read.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    CAN_WATCH.store(true, Ordering::Relaxed);
    None
}

/// The watching process, started with the first group or folder. `None` where it could not be started, and in
/// programs that do not call [`watch_over_children`]: tests.
static WATCHER: LazyLock<Option<Mutex<ChildStdin>>> = LazyLock::new(|| {
    if !CAN_WATCH.load(Ordering::Relaxed) {
        return None;
    }
    match start() {
        Ok(input) => Some(Mutex::new(input)),
        Err(error) => {
            eprintln!("what is started now is not ended if this program is killed: {error:#}");
            None
        }
    }
});

fn start() -> Result<ChildStdin> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::null());
    // A group of its own: the terminal's Ctrl-C must not end it first.
    let mut child = command.process_group(0).spawn().context("the watch over children")?;
    child.stdin.take().context("no pipe to the watch over children")
}

/// A process group, folder, mount, loop device or setting that does not outlive this program. Dropped when it has ended,
/// or is gone.
pub struct Watched {
    what: String,
}

impl Watched {
    /// The process group that this process leads.
    pub fn group(leader: u32) -> Self {
        Self::begin(format!("group {leader}"))
    }

    /// A folder with all that is in it.
    pub fn folder(path: &Path) -> Self {
        Self::begin(format!("folder {}", path.display()))
    }

    /// What is mounted at this folder, or will be.
    pub fn mount(folder: &Path) -> Self {
        Self::begin(format!("mount {}", folder.display()))
    }

    /// The loop devices that have this file behind them, or will have.
    pub fn loops(image: &Path) -> Self {
        Self::begin(format!("loops {}", image.display()))
    }

    /// A setting that is undone by writing `text` into `file`.
    pub fn setting(file: &Path, text: &str) -> Self {
        Self::begin(format!("setting {}\t{text}", file.display()))
    }

    fn begin(what: String) -> Self {
        say(&format!("+ {what}\n"));
        Self { what }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        say(&format!("- {}\n", self.what));
    }
}

fn say(line: &str) {
    if let Some(watcher) = &*WATCHER {
        // A watcher that is gone cannot be told anything; everything is still ended by its drop.
        let _ = watcher.lock().write_all(line.as_bytes());
    }
}

/// The life of the watching process: reads what there is until standard input closes, by whatever end of the parent,
/// then ends and removes what is left.
fn watch_until_closed(input: impl BufRead) -> Result<()> {
    let mut left = BTreeSet::new();
    for line in input.lines() {
        let line = line?;
        match line.split_once(' ') {
            Some(("+", what)) => left.insert(what.to_owned()),
            Some(("-", what)) => left.remove(what),
            _ => false,
        };
    }
    let of = |kind: &str| left.iter().filter_map(|what| what.strip_prefix(kind)).collect::<Vec<_>>();
    for (file, text) in of("setting ").iter().filter_map(|setting| setting.split_once('\t')) {
        let _ = fs::write(file, text);
    }
    let groups = of("group ");
    end_all(groups.iter().filter_map(|group| Pid::from_raw(group.parse().ok()?)).collect());
    for folder in of("mount ") {
        unmount(Path::new(folder));
    }
    for image in of("loops ") {
        detach(Path::new(image));
    }
    for folder in of("folder ") {
        // Gone already, or beyond our rights: there is nobody to tell.
        let _ = fs::remove_dir_all(folder);
    }
    Ok(())
}

/// Takes away what is mounted at `folder`, as soon as nobody uses it. Not mounted is what is wanted.
pub fn unmount(folder: &Path) {
    let umount = |options: &[&str]| {
        let mut command = Command::new("umount");
        command.args(options).arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status()
    };
    let deadline = Instant::now() + GRACE;
    while is_mounted(folder) {
        if umount(&[]).is_err() {
            return;
        }
        if Instant::now() > deadline {
            // Out of sight at least, and gone with its last user.
            let _ = umount(&["--lazy"]);
            return;
        }
        pause();
    }
}

fn is_mounted(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_here = |line: &str| line.split(' ').nth(1).is_some_and(|place| Path::new(place) == folder);
    mounts.lines().any(is_here)
}

/// Detaches every loop device that has `image` behind it.
pub fn detach(image: &Path) {
    let mut list = Command::new("losetup");
    let list = list.args(["--noheadings", "--output", "NAME", "--associated"]).arg(image);
    // No such program: then there is no such device either.
    let Ok(listed) = list.stdin(Stdio::null()).stderr(Stdio::null()).output() else { return };
    for device in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
        let _ = Command::new("losetup").args(["--detach", device]).stderr(Stdio::null()).status();
    }
}

/// Ends these groups at once, and kills what has not ended within the time that a server has.
fn end_all(mut groups: Vec<Pid>) {
    let deadline = Instant::now() + GRACE;
    for group in &groups {
        terminate(*group);
    }
    while !groups.is_empty() && Instant::now() < deadline {
        groups.retain(|group| test_kill_process_group(*group).is_ok());
        pause();
    }
    for group in groups {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Asks a group to end. It may stand still, and then it does not see TERM before it goes on. Errors mean that the
/// group is gone already, which is what is wanted.
pub fn terminate(group: Pid) {
    let _ = kill_process_group(group, Signal::TERM);
    let _ = kill_process_group(group, Signal::CONT);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Child;
    use std::time::Duration;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").process_group(0).spawn().unwrap()
    }

    fn ends(mut child: Child) -> bool {
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            pause();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        false
    }

    #[test]
    fn what_is_left_when_the_pipe_closes_is_ended_and_removed() {
        let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("file"), "x").unwrap();
        let (left, stopped, done) = (sleeper(), sleeper(), sleeper());
        kill_process_group(Pid::from_child(&stopped), Signal::STOP).unwrap();
        let said = format!(
            "+ group {}\n+ group {}\n+ group {done}\n+ folder {}\n+ folder {kept}\n- group {done}\n- folder {kept}\n",
            left.id(),
            stopped.id(),
            folder.path().display(),
            done = done.id(),
            kept = kept.path().display()
        );
        // The children are this process's own, and stay as zombies until somebody waits for them.
        let ended = std::thread::spawn(move || (ends(left), ends(stopped)));
        watch_until_closed(said.as_bytes()).unwrap();
        assert_eq!(ended.join().unwrap(), (true, true));
        assert!(!folder.path().exists());
        assert!(kept.path().exists());
        let mut done = done;
        assert!(done.try_wait().unwrap().is_none());
        done.kill().unwrap();
        done.wait().unwrap();
    }

    #[test]
    fn a_setting_is_undone_unless_it_was_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let (left, kept) = (folder.path().join("left"), folder.path().join("kept"));
        for file in [&left, &kept] {
            fs::write(file, "7:0 40000000").unwrap();
        }
        let [left_line, kept_line] = [&left, &kept].map(|file| format!("setting {}\t7:0 0", file.display()));
        watch_until_closed(format!("+ {left_line}\n+ {kept_line}\n- {kept_line}\n").as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(left).unwrap(), "7:0 0");
        assert_eq!(fs::read_to_string(kept).unwrap(), "7:0 40000000");
    }

    #[test]
    fn what_was_never_mounted_or_attached_is_no_trouble() {
        let folder = tempfile::tempdir().unwrap();
        let (mount, image) = (folder.path().join("mount"), folder.path().join("image"));
        watch_until_closed(format!("+ mount {}\n+ loops {}\n", mount.display(), image.display()).as_bytes())
            .unwrap();
        assert!(is_mounted(Path::new("/proc")) && !is_mounted(&mount));
    }

    #[test]
    fn lines_of_another_kind_are_left_alone() {
        watch_until_closed(&b"\n+ group 0\n+ group x\n? group 1\n+ folder \n+ setting none\n"[..]).unwrap();
    }
}
