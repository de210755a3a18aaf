//! Pebble, the ACME server of Let's Encrypt for tests, with the DNS server of its own beside it, on free ports.
//!
//! In: a `go` that can build them from the modules pinned in tests/pebble. Out: an authority that a test may kill and start again, without
//! memory of what was before; or why there is none, so that a test can say that it is skipped. Every name has the address 127.0.0.1 for it,
//! so that it looks for proofs at the ports that the test names. They are built once into `target/tools`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::certificates::Certificates;

const PROGRAMS: [&str; 2] = ["pebble", "pebble-challtestsrv"];
/// Longest build, with the modules fetched.
const BUILD_MAX: Duration = Duration::from_secs(300);
const START_MAX: Duration = Duration::from_secs(20);

/// What is special about an authority.
#[derive(Clone, Debug, Default)]
pub struct PebbleOptions {
    /// Where it looks for proofs by HTTP-01; 0 where there are none.
    pub http_port: u16,
    /// Where it looks for proofs by TLS-ALPN-01.
    pub tls_port: u16,
    /// So many of a hundred good nonces it rejects.
    pub nonces_rejected: u8,
    /// It wants external accounts, and knows this one: its id, and its key in base64url.
    pub external_account: Option<(String, String)>,
    /// It has a profile `shortlived`, of six days, beside the one of ninety. A client that names none gets any of them.
    pub has_short_profile: bool,
    /// It takes every proof for good without a look.
    pub always_valid: bool,
    /// What it asks clients to wait between two looks, in seconds.
    pub retry_after: u8,
}

/// An authority, ended with this value.
#[derive(Debug)]
pub struct Pebble {
    options: PebbleOptions,
    programs: [PathBuf; 2],
    certificates: Certificates,
    folder: TempDir,
    running: Option<Running>,
    ports: [u16; 2],
}

#[derive(Debug)]
struct Running([Child; 2]);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Pebble {
    /// Starts one, which needs `localhost` as the name of its server.
    ///
    /// # Errors
    /// It cannot be built here: why not.
    pub fn start(options: PebbleOptions) -> Result<Self, String> {
        static BUILT: OnceLock<Result<[PathBuf; 2], String>> = OnceLock::new();
        let programs = BUILT.get_or_init(programs).clone()?;
        let (certificates, folder) = (Certificates::new(), tempfile::tempdir().unwrap());
        let mut pebble = Self { options, programs, certificates, folder, running: None, ports: [0; 2] };
        for _ in 0..20 {
            pebble.ports = [free_port(), free_port()];
            if pebble.run() {
                return Ok(pebble);
            }
        }
        panic!("no port is free");
    }

    /// Where its directory is.
    pub fn directory_url(&self) -> String {
        format!("https://localhost:{}/dir", self.ports[0])
    }

    /// Where it takes orders that are none of ACME: `https://localhost:PORT`.
    pub fn management_port(&self) -> u16 {
        self.ports[1]
    }

    /// Who has signed the certificate of its server.
    pub fn ca_file(&self) -> PathBuf {
        self.certificates.file("ca.pem")
    }

    /// What it has said since its first start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// How many certificates it has issued since its first start.
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Starts it again at the same place. It knows nothing of what was before.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "the ports are taken");
    }

    /// Starts the programs; `false` where a port is taken.
    fn run(&mut self) -> bool {
        let [dns, management] = [free_port(), free_port()];
        let config = self.folder.path().join("config.json");
        fs::write(&config, self.config().to_string()).unwrap();
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let at = |port: u16| format!("127.0.0.1:{port}");
        let mut names = Command::new(&self.programs[1]);
        names
            .args(["-dnsserver", &at(dns), "-management", &at(management)])
            .args(["-http01", "", "-https01", "", "-doh", "", "-tlsalpn01", "", "-defaultIPv6", ""])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut authority = Command::new(&self.programs[0]);
        authority
            .arg("-config")
            .arg(&config)
            .args(["-dnsserver", &at(dns)])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_VA_ALWAYS_VALID", u8::from(self.options.always_valid).to_string())
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", self.options.nonces_rejected.to_string())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let mut running = Running([names.spawn().unwrap(), authority.spawn().unwrap()]);
        let begun = Instant::now();
        let [names, authority] = &running.0;
        let ports = [(names.id(), dns), (authority.id(), self.ports[0]), (authority.id(), self.ports[1])];
        loop {
            if running.0.iter_mut().any(|child| child.try_wait().unwrap().is_some()) {
                return false;
            }
            // A connection would not do: another program may have been faster at the port.
            if ports.into_iter().all(|(process, port)| listens(process, port)) {
                self.running = Some(running);
                return true;
            }
            assert!(begun.elapsed() < START_MAX, "pebble does not start: {}", self.log());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn config(&self) -> Value {
        let [listen, management] = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let retry = self.options.retry_after;
        let mut config = json!({
            "listenAddress": listen,
            "managementListenAddress": management,
            "certificate": self.certificates.file("server.pem"),
            "privateKey": self.certificates.file("server.key"),
            "httpPort": self.options.http_port,
            "tlsPort": self.options.tls_port,
            "ocspResponderURL": "",
            "keyAlgorithm": "ecdsa",
            "retryAfter": { "authz": retry, "order": retry },
            "profiles": { "default": { "description": "90 days", "validityPeriod": 7_776_000 } },
        });
        if self.options.has_short_profile {
            config["profiles"]["shortlived"] = json!({ "description": "6 days", "validityPeriod": 518_400 });
        }
        if let Some((id, key)) = &self.options.external_account {
            config["externalAccountBindingRequired"] = true.into();
            config["externalAccountMACKeys"] = json!({ id: key });
        }
        json!({ "pebble": config })
    }
}

/// Whether this process, and no other, listens at a port of IPv4.
fn listens(process: u32, port: u16) -> bool {
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let inodes = sockets.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, at) = fields.get(1)?.split_once(':')?;
        let is_listening = fields.get(3) == Some(&"0A") && u16::from_str_radix(at, 16) == Ok(port);
        is_listening.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&""))) // Its inode.
    });
    let inodes: Vec<String> = inodes.collect();
    let opened = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut opened = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
    !inodes.is_empty() && opened.any(|file| inodes.iter().any(|inode| file.as_os_str() == inode.as_str()))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Builds them where they are not there, or the modules have changed since.
fn programs() -> Result<[PathBuf; 2], String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (modules, tools) = (root.join("tests/pebble"), root.join("target/tools"));
    let programs = PROGRAMS.map(|name| tools.join(name));
    let pinned = fs::read(modules.join("go.sum")).map_err(|error| format!("tests/pebble: {error}"))?;
    let built = tools.join("pebble.sum");
    if fs::read(&built).is_ok_and(|built| built == pinned) && programs.iter().all(|program| program.exists())
    {
        return Ok(programs);
    }
    fs::create_dir_all(&tools).map_err(|error| error.to_string())?;
    let mut command = Command::new("go");
    command.args(["build", "-mod=readonly", "-buildvcs=false", "-o"]).arg(format!("{}/", tools.display()));
    for program in PROGRAMS {
        command.arg(format!("github.com/letsencrypt/pebble/v2/cmd/{program}"));
    }
    let said = tempfile::tempfile().map_err(|error| error.to_string())?;
    // No other tool chain is fetched for it.
    command.env("GOTOOLCHAIN", "local").stderr(said.try_clone().unwrap()).current_dir(&modules);
    let mut child = command.spawn().map_err(|error| format!("there is no `go` here: {error}"))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > BUILD_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("pebble is not built within {} s", BUILD_MAX.as_secs()));
        }
        std::thread::park_timeout(Duration::from_millis(50));
    };
    if !status.success() {
        let (mut said, mut text) = (said, String::new());
        let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
        return Err(format!("pebble cannot be built: {}", text.lines().last().unwrap_or_default()));
    }
    fs::write(built, pinned).map_err(|error| error.to_string())?;
    Ok(programs)
}
