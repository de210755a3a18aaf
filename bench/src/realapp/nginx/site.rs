//! The static site, and the nginx that serves it.
//!
//! In: the stage, whose data folder has nginx.conf. Out: a [`Site`] with two addresses: its own, and that of nginx's cache in front.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::super::fetch::Client;
use super::super::stage::Stage;
use harness::children::{Server, free_port};

const READY_MAX: Duration = Duration::from_secs(20);
/// How long ago the files were changed: without a lifetime of its own, a file is kept for a tenth of that.
const AGE: Duration = Duration::from_secs(10 * 24 * 3600);

pub(super) const PAGES: [&str; 5] =
    ["/", "/about.html", "/assets/style.css", "/assets/app.js", "/short/page.html"];
/// Fits into the store.
pub(super) const BIG: &str = "/assets/big.bin";
pub(super) const BIG_BYTES: usize = 40 << 20;
/// Larger than a store of this size takes.
pub(super) const HUGE: &str = "/assets/huge.bin";
pub(super) const HUGE_BYTES: usize = 160 << 20;

/// nginx, which runs.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    peer: SocketAddr,
    folder: PathBuf,
    _server: Server,
}

impl Site {
    pub(super) fn start(stage: &Stage<'_>) -> Result<Self> {
        let (address, peer) = (free_port()?, free_port()?);
        let folder = stage.work.join("site");
        for below in ["assets", "short"] {
            fs::create_dir_all(folder.join(below))?;
        }
        let text = |name: &str| format!("<p>The text of {name}, over and over.</p>\n").repeat(200);
        for name in ["index.html", "about.html", "assets/style.css", "assets/app.js", "short/page.html"] {
            write(&folder, name, text(name).as_bytes())?;
        }
        write(&folder, "assets/big.bin", &bytes(0, BIG_BYTES))?;
        write(&folder, "assets/huge.bin", &bytes(0, HUGE_BYTES))?;

        let template = fs::read_to_string(stage.data.join("nginx.conf"))?;
        let is_root = rustix::process::geteuid().is_root();
        let config = template
            .replace("{origin}", &address.to_string())
            .replace("{peer}", &peer.to_string())
            .replace("{work}", &stage.work.display().to_string())
            // The files are in a folder that is root's then.
            .replace("{user}", if is_root { "user root;" } else { "" });
        let file = stage.work.join("nginx.conf");
        fs::write(&file, config)?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).arg("-p").arg(stage.work).args(["-e", "stderr"]).stdin(Stdio::null());
        let mut server = Server::start("nginx", command.stdout(Stdio::null()))?;
        server.wait_for(address, READY_MAX)?;
        server.wait_for(peer, READY_MAX)?;
        Ok(Self { address, peer, folder, _server: server })
    }

    pub(super) fn client(&self) -> Client {
        Client { address: self.address, host: self.address, compressed: false }
    }

    /// nginx's cache in front of the same site.
    pub(super) fn peer(&self) -> Client {
        Client { address: self.peer, host: self.peer, compressed: false }
    }

    /// The bytes of the file behind a target.
    pub(super) fn content(&self, target: &str) -> Result<Vec<u8>> {
        let name = if target == "/" { "index.html" } else { target.trim_start_matches('/') };
        fs::read(self.folder.join(name)).with_context(|| target.to_owned())
    }

    /// Puts another file in the place of one, as deployments do.
    pub(super) fn replace(&self, name: &str, text: &str) -> Result<()> {
        let other = self.folder.join("replacing");
        fs::write(&other, text)?;
        fs::rename(other, self.folder.join(name)).context("rename")
    }
}

/// Those of the bytes that every large file has, from `first` to before `end`: each eight tell where they are.
pub(super) fn bytes(first: usize, end: usize) -> Vec<u8> {
    let words = first / 8..end.div_ceil(8);
    let mut all: Vec<u8> = words.flat_map(|word| (word as u64).to_le_bytes()).collect();
    all.truncate(end - first / 8 * 8);
    all.drain(..first % 8);
    all
}

fn write(folder: &std::path::Path, name: &str, content: &[u8]) -> Result<()> {
    let file = folder.join(name);
    fs::write(&file, content).with_context(|| name.to_owned())?;
    let changed = SystemTime::now().checked_sub(AGE).context("the clock")?;
    fs::File::options().write(true).open(&file)?.set_modified(changed).with_context(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_piece_of_the_whole() {
        let whole = bytes(0, 4000);
        assert_eq!(whole.len(), 4000);
        for (first, end) in [(0, 1), (7, 9), (8, 16), (13, 3999), (3999, 4000)] {
            assert_eq!(bytes(first, end), whole[first..end]);
        }
    }
}
