//! What an application's check stands on: its folders, and a larder with a configuration of its own.
//!
//! In: the text of a configuration without addresses of its own, or a file under examples. Out: a [`Larder`] on free
//! ports, and what its admin address says. Everything ends when it is dropped.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::fetch::Client;
use harness::children::{Server, free_port, output_within};

/// Settings of a site that give away what is one visitor's: a check that finds nothing behind them finds nothing at all.
pub(super) const CARELESS: &str = "override_ttl = \"1m\"\ncookies = \"ignore\"\nset_cookie = \"store\"\n\
                                   ignore = [\"no-store\", \"private\", \"set-cookie\"]\n";

const READY_MAX: Duration = Duration::from_secs(20);
/// A web server may write a line of its log after the client has its page.
const LOG_MAX: Duration = Duration::from_secs(10);

/// Where a check runs.
pub(super) struct Stage<'a> {
    /// The checkout.
    pub(super) root: &'a Path,
    /// tests/realapp/NAME.
    pub(super) data: PathBuf,
    /// A scratch folder, removed at the end.
    pub(super) work: &'a Path,
    /// larder.
    pub(super) program: &'a Path,
}

/// A larder that runs.
pub(super) struct Larder {
    pub(super) public: SocketAddr,
    pub(super) admin: SocketAddr,
    server: Server,
}

impl Stage<'_> {
    /// Starts larder at `public` with `config`, which names neither `listen` nor `admin`.
    pub(super) fn larder_at(&self, public: SocketAddr, config: &str) -> Result<Larder> {
        let admin = free_port()?;
        let file = self.work.join(format!("larder-{}.toml", public.port()));
        fs::write(&file, config)?;
        let log = fs::File::create(self.work.join(format!("larder-{}.log", public.port())))?;
        let mut command = Command::new(self.program);
        command
            .args(["run", "-c"])
            .arg(&file)
            .args(["--listen", &public.to_string(), "--admin", &admin.to_string()])
            .current_dir(self.work)
            .stdin(Stdio::null())
            .stdout(log);
        let mut server = Server::start("larder", &mut command)?;
        server.wait_for(public, READY_MAX)?;
        Ok(Larder { public, admin, server })
    }

    /// The same on a free port.
    pub(super) fn larder(&self, config: &str) -> Result<Larder> {
        self.larder_at(free_port()?, config)
    }

    /// The text of examples/`name`, with its one origin at `there` replaced by `origin`.
    pub(super) fn example(&self, name: &str, there: &str, origin: SocketAddr) -> Result<String> {
        let file = self.root.join("examples").join(name);
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        ensure!(text.contains(there), "examples/{name} names another origin than {there}");
        Ok(text.replace(there, &format!("http://{origin}")))
    }
}

impl Larder {
    /// Asks it as a client that names `public` in Host.
    pub(super) fn client(&self) -> Client {
        Client { address: self.public, host: self.public, compressed: false }
    }

    /// Asks the application itself, in the words in which larder is asked.
    pub(super) fn client_of(&self, application: SocketAddr) -> Client {
        Client { address: application, host: self.public, compressed: false }
    }

    /// All metrics, as text.
    pub(super) fn metrics(&self) -> Result<String> {
        let answer = Client { address: self.admin, host: self.admin, compressed: false }.get("/metrics")?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// All samples of a metric family together.
    pub(super) fn sum(&self, family: &str) -> Result<u64> {
        Ok(sum(&self.metrics()?, family))
    }

    /// Requests from larder in the application's log, which `asked` counts, once it has all that larder has sent.
    pub(super) fn settled(&self, asked: &dyn Fn() -> Result<usize>) -> Result<usize> {
        let deadline = Instant::now() + LOG_MAX;
        let sent = self.sum("larder_origin_requests_total")?;
        loop {
            let logged = asked()?;
            if logged as u64 >= sent {
                return Ok(logged);
            }
            if Instant::now() > deadline {
                bail!("larder says that it asked {sent} times, the application's log has {logged}");
            }
            harness::children::pause();
        }
    }

    /// What `larder explain` says.
    pub(super) fn explain(&self, stage: &Stage<'_>, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(stage.program);
        command.arg("explain").args(["--admin", &self.admin.to_string()]).args(arguments);
        output_within(&mut command, READY_MAX)
    }

    /// Fails when larder has ended.
    pub(super) fn still_runs(&mut self) -> Result<()> {
        self.server.still_runs()
    }
}

fn sum(metrics: &str, family: &str) -> u64 {
    let samples = metrics.lines().filter(|line| line.starts_with(family));
    samples.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_family_are_added_up() {
        let text = "# HELP a_total x\na_total{k=\"1\"} 3\na_total{k=\"2\"} 4\nb_total 9\n";
        assert_eq!(sum(text, "a_total"), 7);
        assert_eq!(sum(text, "c_total"), 0);
    }
}
