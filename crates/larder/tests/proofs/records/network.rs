//! Networks of a test's own: servers in one, and larders that each reach them over a link of their own, which can be cut.
//!
//! In: how many links. Out: the test runs in a thread that is in the servers' network, so what it opens and starts is there. A larder is started
//! in a room of its own at the other end of a link. Packets are dropped there in both directions, as by a broken switch: no connection is closed by that.
//! Each network lives in a process that ends with the value, or with the test's process, and has no name. The interfaces of the host are not
//! touched. It takes root, `ip` and `nft`; without them the test is skipped, and says why.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::disks::mounted::skip;

/// Where servers listen.
pub(super) const SERVERS: [u8; 4] = [10, 1, 1, 1];
const SERVERS_TEXT: &str = "10.1.1.1";

/// A network without a name, which a process holds.
struct Room(Child);

impl Room {
    fn new() -> Result<Self, String> {
        let mut command = Command::new("unshare");
        // It ends with the pipe.
        command.args(["-n", "sh", "-c", "echo; exec cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut room =
            Self(command.stderr(Stdio::null()).spawn().map_err(|error| format!("unshare: {error}"))?);
        let began = room.0.stdout.as_mut().unwrap().read_exact(&mut [0]);
        began.map_err(|_| "no network namespaces".to_owned())?;
        Ok(room)
    }

    fn file(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    /// What becomes another program by `exec`, in this network.
    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.file().display())).arg(program);
        command
    }

    fn runs(&self, line: &str) -> Result<(), String> {
        let mut words = line.split(' ');
        let output = self.inside(words.next().unwrap()).args(words).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{line}: {error}"))?;
        let said = || format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
        output.status.success().then_some(()).ok_or_else(said)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The servers' network, and the rooms of larders.
pub(super) struct Network {
    servers: Room,
    rooms: Vec<Room>,
}

/// Runs a test in a network with so many links.
pub(super) fn in_a_network(links: usize, test: impl AsyncFnOnce(Network) + Send + 'static) {
    let network = match Network::new(links) {
        Ok(network) => network,
        Err(why) => return skip(&format!("a network of its own cannot be made: {why}")),
    };
    // A thread of its own, since it stays there.
    let testing = std::thread::spawn(move || {
        let file = File::open(network.servers.file()).unwrap();
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test(network));
    });
    if let Err(panic) = testing.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Network {
    fn new(links: usize) -> Result<Self, String> {
        let servers = Room::new()?;
        servers.runs("ip link set lo up")?;
        servers.runs(&format!("ip addr add {SERVERS_TEXT}/32 dev lo"))?;
        let mut network = Self { servers, rooms: Vec::new() };
        for link in 1..=links {
            let room = Room::new()?;
            network.rooms.push(room);
            network.link(link)?;
        }
        Ok(network)
    }

    fn link(&self, link: usize) -> Result<(), String> {
        let room = &self.rooms[link - 1];
        let at_servers = [
            format!("ip link add name link{link} type veth peer name servers netns {}", room.0.id()),
            format!("ip addr add 10.0.{link}.1/30 dev link{link}"),
            format!("ip link set link{link} up"),
        ];
        let in_room = [
            "ip link set lo up".to_owned(),
            format!("ip addr add {}/30 dev servers", Self::address(link)),
            "ip link set servers up".to_owned(),
            format!("ip route add default via 10.0.{link}.1"),
            "nft add table inet larder".to_owned(),
            "nft add chain inet larder came { type filter hook input priority 0 ; }".to_owned(),
            "nft add chain inet larder went { type filter hook output priority 0 ; }".to_owned(),
        ];
        at_servers.iter().try_for_each(|line| self.servers.runs(line))?;
        in_room.iter().try_for_each(|line| room.runs(line))
    }

    /// Where the larder at this link listens.
    pub(super) fn address(link: usize) -> String {
        format!("10.0.{link}.2")
    }

    /// What becomes another program by `exec`, at the other end of a link.
    pub(super) fn inside(&self, link: usize, program: &str) -> Command {
        self.rooms[link - 1].inside(program)
    }

    /// Nothing comes through any more from and to a port of the servers.
    pub(super) fn cut(&self, link: usize, port: u16) {
        let room = &self.rooms[link - 1];
        room.runs(&format!("nft add rule inet larder came tcp sport {port} drop")).unwrap();
        room.runs(&format!("nft add rule inet larder went tcp dport {port} drop")).unwrap();
    }

    /// All comes through again.
    pub(super) fn mend(&self, link: usize) {
        self.rooms[link - 1].runs("nft flush table inet larder").unwrap();
    }
}
