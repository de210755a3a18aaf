//! A Redis that speaks TLS, wants certificates of its clients, and has users with passwords: all of them may be renewed while larder
//! runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use larder_testkit::certificates::Certificates;
use larder_testkit::redis::RedisOnPort;
use tempfile::TempDir;

use super::{Scene, checked, is_hit, shares, together};
use crate::support::written;

/// A server with a user `larder`, whose rights are those of the guide.
pub(super) struct Guarded {
    server: RedisOnPort,
    certificates: Certificates,
    files: TempDir,
}

/// Certificates of 2004.
pub(super) fn expired() -> Certificates {
    Certificates::with("localhost", |params| {
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
        params.not_before = then.into();
        params.not_after = (then + std::time::Duration::from_secs(1)).into();
    })
}

/// A server that speaks TLS alone, with these certificates and further options.
fn serve(certificates: &Certificates, options: &[&str]) -> RedisOnPort {
    let file = |name: &str| certificates.file(name).to_str().unwrap().to_owned();
    let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    RedisOnPort::start_with("--tls-port", &[&["--port", "0"], &files[..], options].concat())
}

impl Guarded {
    pub(super) fn start() -> Self {
        let certificates = Certificates::new();
        let files = tempfile::tempdir().unwrap();
        fs::write(files.path().join("password"), "f1rst\n").unwrap();
        let rights = [
            "--user",
            "larder",
            "on",
            ">f1rst",
            "~larder:1:*",
            "+@read",
            "+@write",
            "+@scripting",
            "+@connection",
            "+info",
            "+time",
        ];
        let server = serve(&certificates, &rights);
        Self { server, certificates, files }
    }

    /// What a config says of it.
    pub(super) fn said(&self) -> String {
        let Self { server, certificates, files } = self;
        format!(
            "url = \"rediss://localhost:{}\", user = \"larder\", password_file = {:?}, ca_file = {:?}, client_cert = {:?}, \
             client_key = {:?}",
            server.port,
            files.path().join("password"),
            certificates.file("ca.pem"),
            certificates.file("client.pem"),
            certificates.file("client.key"),
        )
    }

    /// Has the default user, who may do everything, say something.
    fn tell(&self, words: &[&str]) {
        let authority = self.certificates.file("ca.pem");
        self.tell_trusting(&["--cacert", authority.to_str().unwrap()], words);
    }

    /// The same whatever the file of authorities says.
    pub(super) fn tell_unverified(&self, words: &[&str]) {
        self.tell_trusting(&["--insecure"], words);
    }

    fn tell_trusting(&self, trust: &[&str], words: &[&str]) {
        let Self { server, certificates, .. } = self;
        let mut command = Command::new("redis-cli");
        command.args(["--tls", "-h", "localhost", "-p", &server.port.to_string()]).args(trust);
        for (option, name) in [("--cert", "client.pem"), ("--key", "client.key")] {
            command.arg(option).arg(certificates.file(name));
        }
        let output = command.args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !said.starts_with("ERR"), "{words:?}: {said} {output:?}");
    }

    /// The server reads its files again where a setting of them is set.
    fn reads_its_files(&self) {
        let path = self.certificates.file("server.pem");
        self.tell_unverified(&["CONFIG", "SET", "tls-cert-file", path.to_str().unwrap()]);
    }

    /// Has the server show the certificate of another authority. Larders trust it beside the former ones.
    pub(super) fn shows(&self, other: &Certificates) {
        let file = self.certificates.file("ca.pem");
        let trusted = fs::read_to_string(&file).unwrap() + &fs::read_to_string(other.file("ca.pem")).unwrap();
        fs::write(file, trusted).unwrap();
        for name in ["server.pem", "server.key"] {
            fs::copy(other.file(name), self.certificates.file(name)).unwrap();
        }
        self.reads_its_files();
    }
}

#[tokio::test]
async fn larders_share_and_purge_over_tls_with_the_rights_of_the_guide() {
    let guarded = Guarded::start();
    let scene = Scene::saying(guarded.said());
    let (first, second) = scene.two().await;
    together(&[&first, &second]).await;
    scene.fetched_by(&first, "/a").await;
    assert!(is_hit(&second.get("/a").await));
    scene.fetched_by(&first, "/long-700000").await;
    assert_eq!(second.get("/long-700000").await.body, first.get("/long-700000").await.body);
    assert_eq!(scene.asked("/a") + scene.asked("/long-700000"), 2);
    let now = scene.change();
    assert_eq!(second.purge(r#"{"tags": ["page"]}"#).await.0, 200);
    assert_eq!((first.state("/a").await, second.state("/a").await), (now, now));
}

#[tokio::test]
async fn a_password_and_a_certificate_are_renewed_without_a_restart() {
    let guarded = Guarded::start();
    let scene = Scene::saying(guarded.said());
    let (first, second) = scene.two().await;
    shares(&scene, (&first, &second)).await;
    guarded.tell(&["ACL", "SETUSER", "larder", "resetpass", ">second"]);
    fs::write(guarded.files.path().join("password"), "second").unwrap();
    guarded.tell(&["CLIENT", "KILL", "USER", "larder"]);
    shares(&scene, (&first, &second)).await;
    // A file that cannot be read is told, and what was read before goes on.
    let authority = guarded.certificates.file("ca.pem");
    let good = fs::read(&authority).unwrap();
    fs::write(&authority, "half a file").unwrap();
    guarded.tell_unverified(&["CLIENT", "KILL", "USER", "larder"]);
    shares(&scene, (&first, &second)).await;
    first.process.says(&format!("warning: ca file {}", authority.display())).await;
    fs::write(&authority, &good).unwrap();
    guarded.tell(&["CLIENT", "KILL", "USER", "larder"]);
    shares(&scene, (&first, &second)).await;
    first.process.says("could be read again, and are in use").await;
    // Another authority altogether, with the same names of files.
    let renewed = Certificates::new();
    let replace = |name: &str| fs::copy(renewed.file(name), guarded.certificates.file(name)).unwrap();
    for name in ["ca.pem", "server.pem", "server.key"] {
        replace(name);
    }
    guarded.reads_its_files();
    for name in ["client.pem", "client.key"] {
        replace(name);
    }
    guarded.tell(&["CLIENT", "KILL", "USER", "larder"]);
    shares(&scene, (&first, &second)).await;
}

/// Each of these is told by its reason before larder runs, and a larder that runs answers all the same.
#[tokio::test]
async fn what_is_wrong_with_tls_or_a_password_is_told_and_fails_no_request() {
    let guarded = Guarded::start();
    let expired = expired();
    let other = Certificates::with("other.example", |_| ());
    let server = |of| serve(of, &["--tls-auth-clients", "no"]);
    let (over, misnamed, plain) = (server(&expired), server(&other), RedisOnPort::start());
    let wrong = guarded.files.path().join("wrong");
    fs::write(&wrong, "nothing of the kind\n").unwrap();
    let empty = guarded.files.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    let said = guarded.said();
    let password = guarded.files.path().join("password");
    let with_password = |path: &Path| said.replace(password.to_str().unwrap(), path.to_str().unwrap());
    let without_client = said.split(", client_cert").next().unwrap().to_owned();
    let ours = guarded.certificates.file("ca.pem");
    let trusting = |port: u16, of: &Certificates| {
        format!("url = \"rediss://localhost:{port}\", ca_file = {:?}", of.file("ca.pem"))
    };
    for (said, why) in [
        (with_password(&wrong), "Password authentication failed"),
        (with_password(&empty), "it is empty"),
        (without_client, "the server wants a client certificate, or does not accept the one it was shown"),
        (
            said.replace(ours.to_str().unwrap(), other.file("ca.pem").to_str().unwrap()),
            "no authority that is trusted",
        ),
        (trusting(over.port, &expired), "the certificate has expired"),
        (trusting(misnamed.port, &other), "the certificate is for another name"),
        (format!("url = \"redis://localhost:{}\"", guarded.server.port), "does it want TLS?"),
        (trusting(plain.port, &other), "does it speak TLS at this port?"),
        (format!("url = \"redis://localhost:{}/99\"", plain.port), "DB index is out of range"),
    ] {
        let mut scene = Scene::saying(said);
        scene.timeout = "1s";
        let (_folder, config) = written(&scene.config("web-1", ""));
        let (is_well, told) = checked(&config).await;
        assert!(!is_well && told.contains(why), "{why}: {told}");
        assert!(!told.contains("nothing of the kind") && !told.contains("f1rst"), "{told}");
        let process = crate::support::Process::run_config(&config).await;
        let answer = crate::support::get(process.addr, "/a").await;
        assert_eq!(answer.status, 200, "{why}");
        process.says("the fleet's log at").await;
    }
}
