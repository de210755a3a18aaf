//! Certificates that larder orders by itself, from Pebble, and what is served while there is none.

use std::path::PathBuf;

use larder_testkit::client::{Connection, Request};
use larder_testkit::origin::Origin;
use larder_testkit::pebble::{Pebble, PebbleOptions};
use larder_tls::{TlsSettings, client_config, offering};
use tokio_rustls::TlsConnector;

use crate::process::certificates::finished;
use crate::support::{BOUND, Process, Signal, assert_whole, cache_status, cacheable, until};

const HOST: &str = "shop.example";

/// Ports that are free now, for larder in clear text and over TLS: the authority has to know them before.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

struct Shop {
    folder: tempfile::TempDir,
    origin: Origin,
    ports: [u16; 2],
}

impl Shop {
    fn new(ports: [u16; 2]) -> Self {
        let origin = Origin::simple(vec![cacheable("/page*", 1000)]).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), origin, ports }
    }

    fn config(&self, acme: &str, hosts: &str) -> PathBuf {
        let path = self.folder.path().join("larder.toml");
        let [clear, secured] = self.ports;
        let text = format!(
            "listen = [\"127.0.0.1:{clear}\", {{ address = \"127.0.0.1:{secured}\", tls = true }}]\nadmin = \"127.0.0.1:0\"\n\
             workers = 2\n[acme]\nterms_agreed = true\ndir = \"acme\"\n{acme}\n[origins.app]\nservers = \"{}\"\n\
             [[site]]\nhosts = [{hosts}]\norigin = \"app\"\ntls = \"acme\"\n",
            self.origin.url()
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    async fn connect(&self, host: &str) -> Result<Connection, larder_testkit::Error> {
        // The authority of the test is known to nobody.
        let config = client_config(&TlsSettings { verify: false, ..TlsSettings::default() }).unwrap();
        let connector: TlsConnector = offering(&config, &[b"http/1.1"]).into();
        Connection::open_tls(([127, 0, 0, 1], self.ports[1]).into(), host, &connector, BOUND).await
    }

    async fn clear(&self, target: &str) -> larder_testkit::client::Response {
        let mut client = Connection::open(([127, 0, 0, 1], self.ports[0]).into(), BOUND).await.unwrap();
        client.exchange(&Request::new("GET", target, HOST)).await.unwrap()
    }
}

#[tokio::test]
#[expect(clippy::disallowed_macros, clippy::print_stdout, reason = "a test that is skipped says so")]
async fn a_certificate_is_ordered_served_and_kept() {
    let [clear, secured] = free_ports();
    let options = PebbleOptions { http_port: clear, tls_port: secured, ..PebbleOptions::default() };
    let pebble = match tokio::task::spawn_blocking(|| Pebble::start(options)).await.unwrap() {
        Ok(pebble) => pebble,
        Err(why) => return println!("skipped: {why}"),
    };
    let shop = Shop::new([clear, secured]);
    std::fs::copy(pebble.ca_file(), shop.folder.path().join("ca.pem")).unwrap();
    let authority = format!("directory = \"{}\"\nca_file = \"ca.pem\"", pebble.directory_url());
    let both = format!("\"{HOST}\", \"other.example\"");
    for (challenge, host, hosts, issued) in
        [("tls-alpn-01", HOST, format!("\"{HOST}\""), 1), ("http-01", "other.example", both, 2)]
    {
        let path = shop.config(&format!("{authority}\nchallenges = [\"{challenge}\"]"), &hosts);
        let mut larder = Process::run_config(&path).await;
        until("there is a certificate", async || shop.connect(host).await.is_ok()).await;
        let mut client = shop.connect(host).await.unwrap();
        assert_whole(&client.exchange(&Request::new("GET", "/page", host)).await.unwrap(), "/page", 1000);
        let sent_on = shop.clear("/page").await;
        assert_eq!(
            (sent_on.status, sent_on.fields.first("location")),
            (308, Some("https://shop.example/page"))
        );
        assert_eq!(pebble.issued(), issued, "{challenge}: what was ordered before is kept\n{}", pebble.log());
        let (code, said) = finished(&["certs", "--admin", &larder.admin.to_string()]).await;
        assert!(code == 0 && said.contains("acme") && said.contains("renews on "), "{said}");
        let metrics = larder.metrics().await;
        assert_eq!(metrics.value("larder_acme_orders_total{result=\"issued\"}"), Some(1.0));
        assert_eq!(
            metrics.value(&format!("larder_acme_failing{{certificate=\"{host}\",type=\"none\"}}")),
            Some(0.0)
        );
        if challenge == "http-01" {
            let admin = larder.admin.to_string();
            let (code, said) = finished(&["certs", "renew", HOST, "--admin", &admin]).await;
            assert!(code == 0 && said.contains("has a new certificate, good until "), "{said}");
            assert_eq!(pebble.issued(), issued + 1, "{}", pebble.log());
            let (code, said) = finished(&["certs", "renew", "foreign.example", "--admin", &admin]).await;
            assert!(code == 1 && said.contains("larder orders no certificate for this host"), "{said}");
        }
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0);
    }
    // Without the authority, what is stored is served from the start on.
    drop(pebble);
    let path = shop.config(&authority, &format!("\"{HOST}\""));
    let larder = Process::run_config(&path).await;
    let admin = larder.admin.to_string();
    // Twice: what failed before is not taken for what comes of the second.
    for failures in ["1", "2"] {
        let (code, said) = finished(&["certs", "renew", HOST, "--admin", &admin, "--wait", "60"]).await;
        assert!(code == 1 && said.contains("no connection") && said.contains("it is tried again"), "{said}");
        let (_, told) = finished(&["certs", "--json", "--admin", &admin]).await;
        assert!(told.contains(&format!("\"failures\": {failures}\n")), "{told}");
    }
    let mut client = shop.connect(HOST).await.unwrap();
    assert_whole(&client.exchange(&Request::new("GET", "/page", HOST)).await.unwrap(), "/page", 1000);
}

#[tokio::test]
async fn until_there_is_a_certificate_nothing_is_served_and_the_failure_is_told() {
    let [clear, secured] = free_ports();
    let [closed, _] = free_ports();
    let shop = Shop::new([clear, secured]);
    let path =
        shop.config(&format!("directory = \"https://127.0.0.1:{closed}/dir\""), &format!("\"{HOST}\""));
    let larder = Process::run_config(&path).await;
    let pending = shop.clear("/page").await;
    assert_eq!((pending.status, pending.fields.first("retry-after")), (503, Some("10")));
    assert!(cache_status(&pending).contains("detail=certificate-pending"), "{pending}");
    let refused = shop.connect(HOST).await.map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("UnrecognisedName"), "{refused}");
    larder.says("shop.example: no new certificate").await;
    let (code, said) = finished(&["certs", "--admin", &larder.admin.to_string()]).await;
    assert!(code == 1 && said.contains("none yet") && said.contains("failed: "), "{said}");
    // A token that is not pending is the application's.
    assert_eq!(shop.clear("/.well-known/acme-challenge/x").await.status, 503);
    assert_eq!(shop.origin.log().count(), 0);
}
