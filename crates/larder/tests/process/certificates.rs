//! Certificates of a running larder: what is wrong with them at start, at a reload and in place; renewals that no client notices; and what clients are told by name, redirect
//! and policy.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::certificates::Certificates;
use larder_testkit::client::{Connection, Request, Response};
use larder_testkit::origin::{Answer, Origin};
use larder_tls::{ClientCertificate, TlsSettings, client_config, offering};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::HandshakeKind;

use crate::support::{
    BOUND, Process, Signal, asking, assert_whole, cache_status, cacheable, script, until, within,
};

/// A folder with a certificate for `localhost`, and a config that uses it.
struct Secured {
    certificates: Certificates,
    origin: Origin,
}

impl Secured {
    fn new() -> Self {
        Self {
            certificates: Certificates::new(),
            origin: Origin::simple(vec![cacheable("/page*", 1000)]).unwrap(),
        }
    }

    fn folder(&self) -> &Path {
        self.certificates.folder()
    }

    /// Writes the config, with `lines` in the site and `more` at the top.
    fn config(&self, lines: &str, more: &str) -> PathBuf {
        let path = self.folder().join("larder.toml");
        let text = format!(
            "listen = [{{ address = \"127.0.0.1:0\", tls = true }}, \"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkers = 2\n{more}\n\
             [origins.app]\nservers = \"{}\"\n[[site]]\nhosts = \"localhost\"\norigin = \"app\"\n\
             tls = {{ cert = \"server.pem\", key = \"server.key\" }}\n{lines}\n",
            self.origin.url()
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    fn connector(&self, with_certificate: bool) -> TlsConnector {
        let client = with_certificate.then(|| ClientCertificate {
            cert: self.certificates.file("client.pem"),
            key: self.certificates.file("client.key"),
        });
        let ca_file = Some(self.certificates.file("ca.pem"));
        let config = client_config(&TlsSettings { ca_file, client, ..TlsSettings::default() }).unwrap();
        offering(&config, &[b"http/1.1"]).into()
    }

    async fn connect(&self, larder: &Process) -> Connection {
        Connection::open_tls(larder.addr, "localhost", &self.connector(false), BOUND).await.unwrap()
    }

    /// Puts another certificate of the same authority in the place of the server's, in two steps as tools do it.
    fn renew(&self) {
        let (pem, key) = self.certificates.another("localhost");
        for (name, text) in [("server.pem", pem), ("server.key", key)] {
            let (new, old) = (self.folder().join(format!("{name}.new")), self.folder().join(name));
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, old).unwrap();
        }
    }
}

/// The certificate that a client is shown.
fn shown(connection: &Connection) -> Vec<u8> {
    connection.session().unwrap().peer_certificates().unwrap()[0].to_vec()
}

/// What the command ends with, and all that it says.
pub(super) async fn finished(arguments: &[&str]) -> (i32, String) {
    let mut process = Process::start(arguments);
    let code = process.end().await;
    let lines: Vec<_> = process.stdout().into_iter().chain(process.stderr()).collect();
    (code, lines.join("\n"))
}

async fn get(connection: &mut Connection, path: &str) -> Response {
    connection.exchange(&asking(path)).await.unwrap()
}

#[tokio::test]
async fn a_site_is_served_over_tls_and_clear_text_is_sent_there() {
    let world = Secured::new();
    let path = world.config("hsts = { max_age = \"2d\", subdomains = true }", "[log]\naccess = \"stdout\"");
    let larder = Process::run_config(&path).await;
    let mut client = world.connect(&larder).await;
    for expected in ["fwd=uri-miss", "; hit"] {
        let response = get(&mut client, "/page").await;
        assert_whole(&response, "/page", 1000);
        assert!(cache_status(&response).contains(expected), "{response}");
        let hsts: Vec<_> = response.fields.all("strict-transport-security").collect();
        assert_eq!(hsts, ["max-age=172800; includeSubDomains"]);
    }
    larder
        .prints("\"tls.protocol.version\":\"1.3\",\"tls.next_protocol\":\"http/1.1\",\"tls.resumed\":false")
        .await;
    let clear = clear_text(&larder).await;
    let mut client = Connection::open(clear, BOUND).await.unwrap();
    let response = client.exchange(&Request::new("GET", "/page?x=%2F", "localhost")).await.unwrap();
    assert_eq!(
        (response.status, response.fields.first("location")),
        (308, Some("https://localhost/page?x=%2F"))
    );
    assert!(cache_status(&response).contains("detail=https"), "{response}");
    assert!(!response.fields.has("strict-transport-security"));
    assert_eq!(world.origin.log().count(), 1);
}

#[tokio::test]
async fn a_purge_over_tls_is_logged_and_sampled_as_one() {
    let world = Secured::new();
    let path = world.config("", "[log]\naccess = \"stdout\"");
    let larder = Process::run_config(&path).await;
    let mut client = world.connect(&larder).await;
    let refused = client.exchange(&Request::new("PURGE", "/page", "localhost")).await.unwrap();
    assert!(refused.status >= 400, "nobody may purge: {refused}");
    let is_it =
        |line: &String| line.contains("\"PURGE\"") && line.contains("\"tls.protocol.version\":\"1.3\"");
    until("it is logged", async || larder.stdout().iter().any(is_it)).await;
    let found = |filter: &str| format!("/api/v1/requests?where={filter}");
    until("it is remembered", async || {
        let samples = crate::support::get(larder.admin, &found("tls%3D1.3%20and%20method%3DPURGE")).await;
        samples.body.windows(9).any(|window| window == b"\"tls\":\"1.")
    })
    .await;
    let none = crate::support::get(larder.admin, &found("tls%3D1.2")).await;
    assert!(!none.body.windows(7).any(|window| window == b"\"PURGE\""), "{none}");
}

/// Where larder listens in clear text.
async fn clear_text(larder: &Process) -> std::net::SocketAddr {
    let stats = crate::support::get(larder.admin, "/stats").await;
    let stats: serde_json::Value = serde_json::from_slice(&stats.body).unwrap();
    let all = stats["listeners"].as_array().unwrap();
    let clear = all.iter().find(|listener| listener["kind"] == "http").unwrap();
    clear["address"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_is_wrong_with_certificates_is_told_with_its_line_and_nothing_starts() {
    let world = Secured::new();
    let path = world.config("", "");
    let other = Certificates::with("other.example", |_| ());
    std::fs::copy(other.file("server.pem"), world.folder().join("server.pem")).unwrap();
    let file = path.display();
    let (cert, key) = (world.folder().join("server.pem"), world.folder().join("server.key"));
    let expected = format!(
        "{file}:10:36: site[0].tls.key: {}: the key of another certificate than {}",
        key.display(),
        cert.display()
    );
    for command in ["check", "run"] {
        let (code, said) = finished(&[command, "-c", path.to_str().unwrap()]).await;
        assert_eq!(code, 3, "{command}: {said}");
        assert!(said.ends_with(&expected), "{command}: {said}");
    }
    std::fs::copy(other.file("server.key"), &key).unwrap();
    let (code, said) = finished(&["check", "-c", path.to_str().unwrap()]).await;
    let expected = format!(
        "{file}:10:7: site[0].tls: no certificate of this site is for localhost\n  hint: it is for other.example"
    );
    assert!(code == 3 && said.ends_with(&expected), "{said}");
}

#[tokio::test]
async fn a_reload_with_a_bad_certificate_changes_nothing() {
    let world = Secured::new();
    let path = world.config("", "");
    let larder = Process::run_config(&path).await;
    let before = shown(&world.connect(&larder).await);
    std::fs::write(world.folder().join("server.key"), "half of a k").unwrap();
    world.config("response = { set = { X-New = \"1\" } }", "");
    larder.signal(Signal::HUP);
    larder.says("the old config stays in force").await;
    let mut client = world.connect(&larder).await;
    assert_eq!(shown(&client), before);
    assert!(!get(&mut client, "/page").await.fields.has("x-new"));
    // Mended, it is taken, and what was open goes on.
    world.renew();
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    assert_eq!(get(&mut client, "/page").await.status, 200);
    let mut client = world.connect(&larder).await;
    assert_ne!(shown(&client), before);
    assert_eq!(get(&mut client, "/page").await.fields.first("x-new"), Some("1"));
}

#[tokio::test]
async fn reloads_and_renewals_under_load_fail_no_request() {
    let world = Arc::new(Secured::new());
    let path = world.config("ttl = \"1h\"", "");
    let larder = Arc::new(Process::run_config(&path).await);
    get(&mut world.connect(&larder).await, "/page").await;
    let (is_over, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (world, larder, is_over, served) =
                (Arc::clone(&world), Arc::clone(&larder), Arc::clone(&is_over), Arc::clone(&served));
            tokio::spawn(async move {
                let mut client = world.connect(&larder).await;
                while !is_over.load(Ordering::Relaxed) {
                    // Half of them stay, half connect anew.
                    if number % 2 == 0 {
                        client = world.connect(&larder).await;
                    }
                    assert_whole(&get(&mut client, "/page").await, "/page", 1000);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut certificates = std::collections::BTreeSet::new();
    for reload in 1..=5 {
        certificates.insert(shown(&world.connect(&larder).await));
        world.renew();
        larder.signal(Signal::HUP);
        let before = served.load(Ordering::Relaxed);
        until("it is reloaded, and requests go on", async || {
            larder.stderr().iter().filter(|line| line.contains("larder: reloaded")).count() == reload
                && served.load(Ordering::Relaxed) > before + 10
        })
        .await;
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        within("a client", client).await.unwrap();
    }
    assert_eq!(certificates.len(), 5);
    assert_eq!(world.origin.log().count(), 1);
}

#[tokio::test]
async fn clients_show_certificates_where_the_site_asks_for_them() {
    let world = Secured::new();
    let site = "client_ca = \"ca.pem\"\nforward_client_cert = true\nttl = \"1h\"\nredirect_https = false";
    let open = "[[site]]\nhosts = \"open.example\"\norigin = \"app\"\ntls = { cert = \"open.pem\", key = \"open.key\" }\n";
    let (pem, key) = world.certificates.another("open.example");
    std::fs::write(world.folder().join("open.pem"), pem).unwrap();
    std::fs::write(world.folder().join("open.key"), key).unwrap();
    let path = world.config(&format!("{site}\n{open}"), "");
    let larder = Process::run_config(&path).await;
    let connector = world.connector(true);
    let mut staff = Connection::open_tls(larder.addr, "localhost", &connector, BOUND).await.unwrap();
    for _ in 0..2 {
        assert_whole(&get(&mut staff, "/page").await, "/page", 1000);
    }
    let told = world.origin.log().last().unwrap().fields.first("client-cert").unwrap().to_owned();
    assert!(told.starts_with(":MII") && told.ends_with(':'), "{told}");
    // A response to one client's certificate is not stored: the origin has not said that others may have it.
    let forged = Request::new("GET", "/page", "localhost").field("Client-Cert", ":AAAA:");
    let response = staff.exchange(&forged).await.unwrap();
    assert_eq!(response.status, 200);
    let log = world.origin.log();
    assert_eq!(log.last().unwrap().fields.all("client-cert").collect::<Vec<_>>(), [told]);
    // Neither is what says so alone by a lifetime: each client's certificate is asked about.
    let before = log.count();
    for count in [before + 1, before + 2] {
        let response = staff.exchange(&Request::new("GET", "/page-for-an-hour", "localhost")).await.unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(world.origin.log().count(), count, "{response}");
    }
    // Of a connection under other rules the site is not served, in either direction.
    let crossing = Request::new("GET", "/page", "open.example");
    let response = staff.exchange(&crossing).await.unwrap();
    assert!(response.status == 421 && cache_status(&response).contains("detail=tls-policy"), "{response}");
    let mut stranger = Connection::open_tls(larder.addr, "open.example", &connector, BOUND).await.unwrap();
    for (host, status) in [("localhost", 421), ("open.example", 200)] {
        let response = stranger.exchange(&Request::new("GET", "/page", host)).await.unwrap();
        assert_eq!(response.status, status, "{host}: {response}");
    }
    let mut clear = Connection::open(clear_text(&larder).await, BOUND).await.unwrap();
    let response = clear.exchange(&Request::new("GET", "/page", "localhost")).await.unwrap();
    assert_eq!(response.status, 421, "not in clear text either: {response}");
    let refused = Connection::open_tls(larder.addr, "localhost", &world.connector(false), BOUND).await;
    let refused = match refused {
        // In TLS 1.3 it learns of it by what it reads.
        Ok(mut connection) => connection.exchange(&asking("/page")).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(refused.to_string().contains("CertificateRequired"), "{refused}");
}

#[tokio::test]
async fn a_page_brings_nothing_of_a_site_that_asks_for_certificates() {
    let template = "a<esi:include src=\"//localhost/part\" onerror=\"continue\"/>b";
    let fields = ["Cache-Control: no-store", "Surrogate-Control: content=\"ESI/1.0\""];
    let part = Answer::new(200, &["Cache-Control: no-store"], "secret");
    let world = Secured {
        certificates: Certificates::new(),
        origin: Origin::simple(vec![
            script("/template", Answer::new(200, &fields, template)),
            script("/part", part),
        ])
        .unwrap(),
    };
    let open =
        "[[site]]\nhosts = \"open.example\"\norigin = \"app\"\nfragments = { hosts = [\"localhost\"] }\n";
    // The other site serves a page of its own to those who have shown one.
    let path = world.config(&format!("client_ca = \"ca.pem\"\nredirect_https = false\n{open}"), "");
    let larder = Process::run_config(&path).await;
    let mut visitor = Connection::open(clear_text(&larder).await, BOUND).await.unwrap();
    let page = visitor.exchange(&Request::new("GET", "/template", "open.example")).await.unwrap();
    assert_eq!((page.status, page.body.as_ref()), (200, b"ab".as_slice()), "{page}");
    assert_eq!(world.origin.log().count(), 1);
    assert_eq!(larder.metrics().await.value("larder_fragment_failures_total{reason=\"host\"}"), Some(1.0));
}

#[tokio::test]
async fn a_session_is_resumed_after_a_reload_but_not_under_other_rules() {
    let world = Secured::new();
    let path = world.config("", "");
    let larder = Process::run_config(&path).await;
    let connector = world.connector(true);
    let is_resumed = async || {
        let mut client = Connection::open_tls(larder.addr, "localhost", &connector, BOUND).await.unwrap();
        // Tickets come behind the handshake.
        assert_eq!(get(&mut client, "/page").await.status, 200);
        client.session().unwrap().handshake_kind() == Some(HandshakeKind::Resumed)
    };
    assert_eq!((is_resumed().await, is_resumed().await), (false, true));
    let reloaded = async |lines: &str, times: usize| {
        world.config(lines, "");
        larder.signal(Signal::HUP);
        let is_it = |line: &&String| line.contains("larder: reloaded");
        until("it is reloaded", async || larder.stderr().iter().filter(is_it).count() == times).await;
    };
    reloaded("ttl = \"1s\"", 1).await;
    assert!(is_resumed().await);
    reloaded("client_ca = \"ca.pem\"\nclient_auth = \"optional\"", 2).await;
    // Whoever shows a certificate shows it each time.
    assert_eq!((is_resumed().await, is_resumed().await), (false, false));
    let metrics = larder.metrics().await;
    for (result, count) in [("opened", 2.0), ("refused", 0.0)] {
        let series = format!("larder_tls_tickets_total{{result=\"{result}\"}}");
        assert_eq!(metrics.value(&series), Some(count), "{result}");
    }
    for (resumed, count) in [("true", 2.0), ("false", 3.0)] {
        let series = format!("larder_tls_handshake_seconds_count{{resumed=\"{resumed}\"}}");
        assert_eq!(metrics.value(&series), Some(count), "resumed: {resumed}");
    }
}

#[tokio::test]
async fn certs_tells_of_each_certificate_and_warns_of_the_end() {
    let certificates = Certificates::with("localhost", |params| {
        params.not_after = std::time::SystemTime::now()
            .checked_add(std::time::Duration::from_secs(3 * 86_400 + 3600))
            .unwrap()
            .into();
        params.not_before = std::time::SystemTime::now()
            .checked_sub(std::time::Duration::from_secs(87 * 86_400))
            .unwrap()
            .into();
    });
    let world = Secured { certificates, origin: Origin::simple(vec![cacheable("/page*", 1000)]).unwrap() };
    let path = world.config("", "");
    let (code, said) = finished(&["check", "-c", path.to_str().unwrap()]).await;
    assert!(code == 0 && said.contains("of site localhost expires in 3 d, on "), "{said}");
    let larder = Process::run_config(&path).await;
    larder.says("of site localhost expires in 3 d, on ").await;
    let admin = larder.admin.to_string();
    let (code, said) = finished(&["certs", "--admin", &admin]).await;
    assert!(
        code == 1 && said.contains("localhost  file    ECDSA P-256   3 d  ") && said.contains("WARNING"),
        "{said}"
    );
    let (_, said) = finished(&["certs", "--json", "--admin", &admin]).await;
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["certificates"][0]["names"], serde_json::json!(["localhost"]));
    let metrics = larder.metrics().await;
    let series = format!(
        "larder_certificate_not_after_seconds{{certificate=\"{}\"}}",
        world.folder().join("server.pem").display()
    );
    assert_eq!(metrics.value(&series), told["certificates"][0]["not_after"].as_f64());
}
