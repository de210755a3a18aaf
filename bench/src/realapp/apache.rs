//! Apache, with Debian's PHP module where an application has PHP, on a free port, with nothing of the system's configuration.
//!
//! In: a template of the server's configuration, in which @WORK@ is the scratch folder, @PORT@ the port and @PHP@ the
//! name of the PHP module, and values for marks of its own, such as a second port. Out: a server that is ended when it is
//! dropped, and how often it was asked through larder.
//! The first field of its log, Via, tells what came through larder from what was asked for directly.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use harness::children::{Server, free_port, run_within};

const MODULES: &str = "/usr/lib/apache2/modules";
const PHP_MARK: &str = "@PHP@";
const READY_MAX: Duration = Duration::from_secs(30);
const HAND_OVER_MAX: Duration = Duration::from_secs(60);

/// An Apache that runs.
pub(super) struct Apache {
    pub(super) address: SocketAddr,
    log: PathBuf,
    server: Server,
}

impl Apache {
    /// Starts it with `template`. What lies in `work` belongs to Apache's own user from then on.
    pub(super) fn start(template: &Path, work: &Path) -> Result<Self> {
        Self::start_with(template, work, &[])
    }

    /// The same, with values for marks that only this template has.
    pub(super) fn start_with(template: &Path, work: &Path, more: &[(&str, String)]) -> Result<Self> {
        let address = free_port()?;
        let config = work.join("apache.conf");
        let mut values = vec![("@WORK@", work.display().to_string()), ("@PORT@", address.port().to_string())];
        values.extend(more.iter().cloned());
        let mut text = fill(template, &values)?;
        if text.contains(PHP_MARK) {
            text = text.replace(PHP_MARK, &php_module()?);
        }
        fs::write(&config, text)?;
        hand_over(work)?;
        let mut command = Command::new("apache2");
        command.arg("-f").arg(&config).arg("-DFOREGROUND");
        let mut server = Server::start("Apache", &mut command)?;
        server.wait_for(address, READY_MAX).with_context(|| {
            fs::read_to_string(work.join("apache.log")).unwrap_or_else(|_| "Apache left no log".to_owned())
        })?;
        Ok(Self { address, log: work.join("access.log"), server })
    }

    /// Requests from larder in Apache's log, optionally for one target only.
    pub(super) fn asked(&self, target: Option<&str>) -> Result<usize> {
        self.asked_where(|asked| target.is_none_or(|target| asked == target))
    }

    /// Those whose target is one of those.
    pub(super) fn asked_where(&self, is_it: impl Fn(&str) -> bool) -> Result<usize> {
        let log = fs::read_to_string(&self.log).context("Apache's log")?;
        Ok(log
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .filter(|fields| fields.first().is_some_and(|via| via.ends_with("larder")))
            .filter(|fields| fields.get(2).is_some_and(|target| is_it(target)))
            .count())
    }

    /// Requests with this method in its log that did not come through larder. What PHP does after an answer is over then.
    pub(super) fn answered(&self, method: &str) -> Result<usize> {
        let log = fs::read_to_string(&self.log).context("Apache's log")?;
        let lines = log.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        Ok(lines.filter(|fields| fields.first() == Some(&"-") && fields.get(1) == Some(&method)).count())
    }

    /// Fails when it has ended.
    pub(super) fn still_runs(&mut self) -> Result<()> {
        self.server.still_runs()
    }
}

/// The text of `template` with each mark replaced by its value.
pub(super) fn fill(template: &Path, values: &[(&str, String)]) -> Result<String> {
    let text = fs::read_to_string(template).with_context(|| template.display().to_string())?;
    Ok(values.iter().fold(text, |text, (mark, value)| text.replace(mark, value)))
}

/// Started by root, Apache serves as its own user, who has to be able to write.
fn hand_over(work: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for command in [
        Command::new("chmod").arg("755").arg(work),
        Command::new("chown").args(["-R", "www-data:www-data"]).arg(work),
    ] {
        let status = run_within(command, HAND_OVER_MAX)?;
        ensure!(status.success(), "{command:?}: {status}");
    }
    Ok(())
}

fn php_module() -> Result<String> {
    let mut names = fs::read_dir(MODULES)
        .context(MODULES)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.find(|name| name.starts_with("libphp")).context("Apache has no PHP module")
}
