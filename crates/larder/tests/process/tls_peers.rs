//! TLS as others see it: OpenSSL's client, sslscan, testssl.sh, and a browser, in front of the binary.
//!
//! Where one of these programs is not installed, its tests are skipped and say so (`make units` installs them, and `make torture` the
//! one that takes a minute).

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use larder_testkit::browser::Browser;
use larder_testkit::certificates::{Certificates, SanType};
use larder_testkit::origin::{Answer, Origin};

use crate::support::{BOUND, Process, cacheable, script, until, within};

/// A larder with a certificate for `a.test`, `b.test` and 127.0.0.1, which is that of every host.
struct Scene {
    larder: Process,
    origin: Origin,
    certificates: Certificates,
}

const PICTURES: usize = 24;

impl Scene {
    async fn start() -> Self {
        let certificates = Certificates::with("a.test", |params| {
            params.subject_alt_names.push(SanType::DnsName("b.test".try_into().unwrap()));
            params.subject_alt_names.push(SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()));
        });
        let pictures: String = (0..PICTURES).map(|number| format!("<img src=/picture/{number}>")).collect();
        let fields = |kind: &str| ["Cache-Control: max-age=60".to_owned(), format!("Content-Type: {kind}")];
        let answer = |kind: &str, body: &str| Answer {
            fields: fields(kind).to_vec(),
            body: Some(body.to_owned()),
            ..Answer::default()
        };
        let picture = "<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>";
        let scripts = vec![
            cacheable("/page*", 1000),
            script("/album", answer("text/html", &format!("<!doctype html><title>Album</title>{pictures}"))),
            script("/picture/*", answer("image/svg+xml", picture)),
            cacheable("*", 10),
        ];
        let origin = Origin::simple(scripts).unwrap();
        let larder = Process::run_config(&config(&certificates, &origin)).await;
        Self { larder, origin, certificates }
    }

    /// What OpenSSL's client says that connects with these arguments, changes its keys as the letters in `keys` tell it to, and asks for
    /// a page where it `asks`.
    async fn openssl(&self, arguments: &[&str], keys: &str, asks: bool) -> Option<String> {
        let mut command = piped("openssl", BOUND)?;
        command.args(["s_client", "-connect", &self.larder.addr.to_string()]).args(arguments);
        let keys = keys.to_owned();
        let run = move || typing(command, &keys, asks);
        Some(within("openssl", tokio::task::spawn_blocking(run)).await.unwrap())
    }
}

fn config(certificates: &Certificates, origin: &Origin) -> PathBuf {
    let path = certificates.file("larder.toml");
    let text = format!(
        "listen = [{{ address = \"127.0.0.1:0\", tls = true }}]\nadmin = \"127.0.0.1:0\"\nworkers = 1\n\
         [origins.app]\nservers = \"{}\"\n[[site]]\norigin = \"app\"\n\
         tls = {{ cert = \"server.pem\", key = \"server.key\" }}\nhsts = {{ max_age = \"1y\" }}\n",
        origin.url()
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// A program whose errors are said where all else is, and which is ended after so long; `None`, with a line that says so, where it is not installed.
#[expect(clippy::disallowed_macros, clippy::print_stderr, reason = "a test that is skipped says so")]
fn piped(program: &str, longest: Duration) -> Option<Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        eprintln!("skipped: there is no {program} on this machine");
        return None;
    }
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec timeout --kill-after=5 \"$0\" \"$@\" 2>&1",
        &longest.as_secs().to_string(),
        program,
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Some(command)
}

const ASKING: &[u8] = b"GET /page HTTP/1.0\r\nHost: a.test\r\n\r\n";
/// What the client says when it has changed its keys.
const CHANGED: &str = "KEYUPDATE";

/// All that OpenSSL's client says until it ends. It looks at the first letter of whatever it reads at once, so each letter waits until
/// the one before it has had its effect.
fn typing(mut command: Command, keys: &str, asks: bool) -> String {
    let mut child = command.spawn().unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut said = String::new();
    for (number, key) in keys.chars().enumerate() {
        writeln!(keyboard, "{key}").unwrap();
        let mut piece = [0; 4096];
        while said.matches(CHANGED).count() <= number {
            let read = screen.read(&mut piece).unwrap();
            assert!(read > 0, "it ended before its keys were changed: {said}");
            said.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }
    if asks {
        // It may have ended by then.
        let _ = keyboard.write_all(ASKING);
    } else {
        drop(keyboard);
    }
    let mut rest = Vec::new();
    screen.read_to_end(&mut rest).unwrap();
    child.wait().unwrap();
    said + &String::from_utf8_lossy(&rest)
}

#[tokio::test]
async fn openssl_agrees_on_the_two_newest_versions_alone() {
    let scene = Scene::start().await;
    for (version, told) in [("-tls1_3", "TLSv1.3"), ("-tls1_2", "TLSv1.2")] {
        let Some(said) = scene.openssl(&["-servername", "a.test", version], "", true).await else { return };
        assert!(said.contains(&format!("New, {told}, Cipher is")), "{said}");
        assert!(said.contains("HTTP/1.1 200 OK"), "{said}");
    }
    let old = ["-servername", "a.test", "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"];
    let said = scene.openssl(&old, "", false).await.unwrap();
    assert!(said.contains("alert protocol version") && said.contains("Cipher is (NONE)"), "{said}");
    assert_eq!(scene.origin.log().count(), 1, "the second answer is a hit");
}

#[tokio::test]
async fn openssl_resumes_a_session_and_not_under_another_name() {
    let scene = Scene::start().await;
    let session = scene.certificates.file("session.pem");
    let session = session.to_str().unwrap();
    let first = ["-servername", "a.test", "-sess_out", session];
    let Some(said) = scene.openssl(&first, "", true).await else { return };
    assert!(said.contains("New, TLSv1.3"), "{said}");
    // Tickets are for several uses.
    for (name, expected) in [("b.test", "New, TLSv1.3"), ("a.test", "Reused, TLSv1.3")] {
        let said = scene.openssl(&["-servername", name, "-sess_in", session], "", true).await.unwrap();
        assert!(said.contains(expected) && said.contains("HTTP/1.1 200 OK"), "{name}: {said}");
    }
}

#[tokio::test]
async fn openssl_changes_the_keys_within_a_connection() {
    let scene = Scene::start().await;
    // A capital K asks for new keys of both sides.
    for keys in ["K", "KkK"] {
        let Some(said) = scene.openssl(&["-servername", "a.test"], keys, true).await else { return };
        assert!(said.contains("HTTP/1.1 200 OK"), "{said}");
        assert_eq!(said.matches(CHANGED).count(), keys.len(), "{said}");
    }
}

#[tokio::test]
async fn sslscan_finds_nothing_old_and_nothing_weak() {
    let scene = Scene::start().await;
    let Some(mut command) = piped("sslscan", BOUND) else { return };
    command.args(["--no-colour", "--sni-name=a.test", &scene.larder.addr.to_string()]).stdin(Stdio::null());
    let output = within("sslscan", tokio::task::spawn_blocking(move || command.output())).await.unwrap();
    let said = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    let line =
        |begins: &str| said.lines().find(|line| line.starts_with(begins)).unwrap_or_default().to_owned();
    for version in ["SSLv2", "SSLv3", "TLSv1.0", "TLSv1.1"] {
        assert!(line(version).ends_with("disabled"), "{said}");
    }
    for version in ["TLSv1.2", "TLSv1.3"] {
        assert!(line(version).ends_with("enabled"), "{said}");
        assert!(!line(&format!("{version} not vulnerable to heartbleed")).is_empty(), "{said}");
    }
    assert!(said.contains("Session renegotiation not supported"), "{said}");
    let suites: Vec<&str> =
        said.lines().filter(|line| line.starts_with("Accepted") || line.starts_with("Preferred")).collect();
    let is_modern = |line: &&str| {
        line.contains("TLS_AES_") || line.contains("TLS_CHACHA20_") || line.contains(" ECDHE-ECDSA-")
    };
    let is_sealed = |line: &&str| line.contains("GCM") || line.contains("CHACHA20");
    assert_eq!(suites.len(), 6, "{said}");
    assert!(suites.iter().all(is_modern) && suites.iter().all(is_sealed), "{said}");
    assert!(scene.larder.is_running());
}

/// Longest run of testssl.sh, which took a minute and a half.
const TESTSSL_MAX: Duration = Duration::from_secs(900);
/// What it finds to be less than good here: the certificate is good for thousands of years, and of an authority without a
/// name, which publishes nothing; and clients choose among suites none of which is weak, as the slower processors among them are quicker with ChaCha20.
const OF_THE_SCENE: [&str; 4] =
    ["cert_chain_of_trust", "cert_revocation", "cert_validityPeriod", "cipher_order"];

#[tokio::test]
#[ignore = "takes a minute: `make torture` runs it"]
async fn testssl_finds_nothing_old_and_nothing_weak() {
    let scene = Scene::start().await;
    let Some(mut command) = piped("testssl", TESTSSL_MAX) else { return };
    let found = scene.certificates.file("found.json");
    command
        .args(["--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none"])
        .arg("--jsonfile")
        .arg(&found);
    command.args(["--ip", "127.0.0.1", &format!("a.test:{}", scene.larder.addr.port())]).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_ne!(output.status.code(), Some(124), "it took too long: {said}");
    let found: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(found).unwrap()).unwrap();
    let of = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let good = found.iter().filter(|finding| of(finding, "severity") == "OK").count();
    let mut other: Vec<_> = found
        .iter()
        // A warning is a check that could not be made: its client may have left before its ticket came.
        .filter(|finding| !["OK", "INFO", "WARN"].contains(&of(finding, "severity").as_str()))
        .map(|finding| of(finding, "id"))
        .collect();
    other.sort();
    assert_eq!(other, OF_THE_SCENE, "{said}");
    assert!(good >= 35, "{good} findings are good: {said}");
    assert!(scene.larder.is_running());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_loads_a_page_with_pictures_over_http2_and_tls() {
    let scene = Scene::start().await;
    let Some(browser) = Browser::launch_trusting(&scene.certificates.server_pin()).await else { return };
    let page = browser.page().await;
    page.open(&format!("https://{}/album", scene.larder.addr)).await;
    let whole = "document.images.length > 0 && [...document.images].every((image) => image.complete)";
    page.until("all pictures are there", whole).await;
    let told = page
        .text(
            "[document.title, document.images.length, [...document.images].every((image) => image.naturalWidth === 8), \
             performance.getEntriesByType('navigation')[0].nextHopProtocol, \
             [...new Set(performance.getEntriesByType('resource').map((one) => one.nextHopProtocol))].join()].join(' ')",
        )
        .await;
    assert_eq!(told, format!("Album {PICTURES} true h2 h2"));
    assert_eq!(page.reports(), Vec::<String>::new());
    let asked = scene.origin.log().all();
    let pictures = asked.iter().filter(|seen| seen.target.starts_with("/picture/")).count();
    assert_eq!(pictures, PICTURES);
    // Keys that are exchanged with a browser of today withstand quantum computers.
    until("the handshake is counted", async || {
        let series =
            "larder_tls_handshakes_total{version=\"1.3\",group=\"X25519MLKEM768\",resumed=\"false\"}";
        scene.larder.metrics().await.value(series).is_some_and(|count| count >= 1.0)
    })
    .await;
}
