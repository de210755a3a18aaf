//! The unit for systemd that the guide shows: what it says is run, as far as that goes without systemd.
//!
//! Its commands run as a user without rights but the ambient capability that the unit gives, in a network of its own, with the
//! directories that the unit makes and the config that belongs to it.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use larder_testkit::certificates::Certificates;

use crate::support::{Process, Signal, until};

const USER: u32 = 65_534;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/systemd")
}

fn unit() -> String {
    std::fs::read_to_string(examples().join("larder.service")).unwrap()
}

/// The values of a key, in their order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn the_guide_shows_the_unit_as_it_is() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/operating.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    assert!(
        guide.contains(&format!("```ini\n{}```\n", unit())),
        "docs/guide/operating.md shows another unit"
    );
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("larder.service");
    // It looks for the programs and the user, too.
    let here = unit().replace("/usr/local/bin/larder", env!("CARGO_BIN_EXE_larder"));
    let here = here.replace("User=larder", "User=daemon").replace("Group=larder", "Group=daemon");
    std::fs::write(&path, here).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&path).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && !said.contains("larder.service"), "{said}");
        }
        Err(error) => eprintln!("skipped: no systemd-analyze: {error}"),
    }
}

/// A command line of the unit, for this binary and this config, run as the unit runs it.
struct Machine {
    directory: tempfile::TempDir,
    capability: String,
}

impl Machine {
    /// The directories that the unit makes, with its config. Nothing without root.
    fn new() -> Option<Self> {
        let unit = unit();
        let capability = values(&unit, "AmbientCapabilities")[0].to_owned();
        assert_eq!(values(&unit, "CapabilityBoundingSet"), [capability.as_str()]);
        let may = Command::new("unshare").args(["-n", "true"]).output();
        if !rustix::process::geteuid().is_root() || !may.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: it takes root and network namespaces");
            return None;
        }
        let machine = Self { directory: tempfile::tempdir().unwrap(), capability };
        let config = std::fs::read_to_string(examples().join("larder.toml")).unwrap();
        chown(machine.directory.path(), Some(USER), Some(USER)).unwrap();
        let keys =
            [("/var/cache", "CacheDirectory"), ("/var/log", "LogsDirectory"), ("/var/lib", "StateDirectory")];
        for (made, key) in keys {
            let of_unit = machine.here(&format!("{made}/{}", values(&unit, key)[0]));
            std::fs::create_dir_all(&of_unit).unwrap();
            chown(&of_unit, Some(USER), Some(USER)).unwrap();
        }
        std::fs::create_dir_all(machine.here("/etc/larder")).unwrap();
        // A disk of 10 GiB is more than a test machine may have.
        let config = config.replace("/var/", &format!("{}/", machine.here("/var"))).replace("10GiB", "64MiB");
        std::fs::write(machine.here("/etc/larder/larder.toml"), config).unwrap();
        // The binary may lie where no other user gets to.
        std::fs::copy(env!("CARGO_BIN_EXE_larder"), machine.here("/larder")).unwrap();
        Some(machine)
    }

    fn here(&self, path: &str) -> String {
        format!("{}{path}", self.directory.path().display())
    }

    /// What becomes a command of the unit by `exec`, as its user.
    fn as_unit(&self, command: &str) -> String {
        let command = command.replace("/usr/local/bin/larder", &self.here("/larder"));
        let command = command.replace("/etc/larder/", &format!("{}/", self.here("/etc/larder")));
        let capability = self.capability.to_lowercase().replace("cap_", "");
        format!(
            "exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs --inh-caps=-all,+{capability} \
             --ambient-caps=-all,+{capability} --bounding-set=-all,+{capability} {command}"
        )
    }

    /// Its larder, as the unit starts it.
    async fn start(&self) -> Process {
        let (unit, mut command) = (unit(), Command::new("unshare"));
        let start = self.as_unit(values(&unit, "ExecStart")[0]);
        command.args(["-n", "sh", "-c", &format!("ip link set lo up && {start}")]);
        for state in values(&unit, "StateDirectory") {
            command.env("STATE_DIRECTORY", self.here(&format!("/var/lib/{state}")));
        }
        let mut larder = Process::spawn(command, None);
        larder.greeted().await;
        larder
    }
}

#[tokio::test]
async fn the_unit_has_a_place_for_certificates_that_are_ordered() {
    assert_eq!(values(&unit(), "StateDirectoryMode"), ["0700"], "keys lie there");
    let Some(machine) = Machine::new() else { return };
    // Nobody answers there, which keeps no larder from starting.
    let text = "listen = [\"127.0.0.1:80\", { address = \"127.0.0.1:443\", tls = true }]\n\
                [acme]\nterms_agreed = true\ndirectory = \"https://localhost:1/dir\"\nca_file = \"ca.pem\"\n\
                [origins.app]\nservers = \"http://127.0.0.1:3000\"\n\
                [[site]]\nhosts = \"a.example\"\norigin = \"app\"\ntls = \"acme\"\n";
    std::fs::write(machine.here("/etc/larder/larder.toml"), text).unwrap();
    std::fs::copy(Certificates::new().file("ca.pem"), machine.here("/etc/larder/ca.pem")).unwrap();
    let mut larder = machine.start().await;
    let certificates = machine.here("/var/lib/larder/acme/certs");
    assert!(Path::new(&certificates).is_dir(), "{:?}", larder.stderr());
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
}

#[tokio::test]
async fn the_unit_listens_on_port_80_and_reloads_only_what_is_good() {
    let Some(machine) = Machine::new() else { return };
    let unit = unit();
    let mut larder = machine.start().await;
    assert_eq!(larder.addr.port(), 80);
    let status = std::fs::read_to_string(format!("/proc/{}/status", larder.pid)).unwrap();
    for line in [format!("Uid:\t{USER}\t{USER}\t{USER}\t{USER}"), "CapEff:\t0000000000000400".to_owned()] {
        assert!(status.contains(&line), "no {line:?} in {status}");
    }
    assert!(Path::new(&machine.here("/var/cache/larder/disk/larder")).exists(), "the disk is there");
    let log = machine.here("/var/log/larder/access.log");
    assert!(Path::new(&log).exists(), "the log is there");
    // Reload: the commands one after the other, as far as they succeed.
    let reload = values(&unit, "ExecReload");
    let [check, signal] = reload[..] else { panic!("{reload:?}") };
    assert_eq!(signal, "/bin/kill -HUP $MAINPID");
    let config = machine.here("/etc/larder/larder.toml");
    let good = std::fs::read_to_string(&config).unwrap();
    let checks = |text: &str| {
        std::fs::write(&config, text).unwrap();
        let output = Command::new("sh").args(["-c", &machine.as_unit(check)]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = checks(&good.replace("memory", "memroy"));
    assert!(code == Some(3) && said.contains("unknown key \"memroy\""), "{said}");
    assert_eq!(checks(&good).0, Some(0));
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    std::fs::rename(&log, format!("{log}.1")).unwrap();
    larder.signal(Signal::USR1);
    until("the log is opened anew", async || Path::new(&log).exists()).await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
}
