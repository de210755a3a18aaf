//! An authority that answers as ACME has it, but for the one path for which a test has another answer. It checks nothing.

use std::sync::atomic::{AtomicU8, Ordering};

use larder_testkit::certificates::Certificates;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// Status, fields with their line ends, and content.
pub(crate) type Answer = (u16, String, Vec<u8>);

/// Ends with its value.
pub(crate) struct Scripted {
    pub(crate) port: u16,
    pub(crate) certificates: Certificates,
    _runtime: Runtime,
}

impl Scripted {
    /// `special` is asked first, by path.
    pub(crate) fn start(special: impl Fn(&str, u16) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let certificates = Certificates::new();
        let config = certificates.server_config();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(async move {
            let (acceptor, stage) = (TlsAcceptor::from(config), AtomicU8::new(0));
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(socket).await else { continue };
                let Some(path) = read_request(&mut stream).await else { continue };
                let usual = usual(&path, port, &stage);
                let (status, fields, content) = special(&path, port).unwrap_or(usual);
                let head = format!(
                    "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: {}\r\n{fields}\r\n",
                    content.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                if path != "/nonce" {
                    let _ = stream.write_all(&content).await;
                }
                let _ = stream.shutdown().await;
            }
        });
        Self { port, certificates, _runtime: runtime }
    }
}

/// The path of a request that has been read to its end.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or(0)]).await.ok()?;
    Some(head.split(' ').nth(1)?.to_owned())
}

/// The order is pending until its challenge is asked for, and valid once it is finalized.
fn usual(path: &str, port: u16, stage: &AtomicU8) -> Answer {
    let at = |path: &str| format!("https://localhost:{port}{path}");
    let order = |status: &str| {
        let certificate = at("/certificate");
        serde_json::json!({ "status": status, "authorizations": [at("/authorization")], "finalize": at("/finalize"),
            "identifiers": [{ "type": "dns", "value": "a.example" }], "certificate": certificate })
    };
    let states = ["pending", "ready", "valid"];
    let location = |path: &str| format!("Location: {}\r\n", at(path));
    let (status, fields, content) = match path {
        "/dir" => {
            let directory = serde_json::json!({ "newNonce": at("/nonce"), "newAccount": at("/account"),
                "newOrder": at("/new-order"), "renewalInfo": at("/window") });
            (200, String::new(), directory)
        }
        "/account" => (201, location("/account/1"), serde_json::json!({ "status": "valid" })),
        "/new-order" => {
            stage.store(0, Ordering::Relaxed);
            (201, location("/order"), order("pending"))
        }
        "/authorization" => {
            let status = if stage.load(Ordering::Relaxed) == 0 { "pending" } else { "valid" };
            let challenge = serde_json::json!({ "type": "http-01", "url": at("/challenge"), "token": "dG9rZW4", "status": status });
            let authorization = serde_json::json!({ "status": status, "identifier": { "type": "dns", "value": "a.example" },
                "challenges": [challenge] });
            (200, String::new(), authorization)
        }
        "/challenge" => {
            stage.store(1, Ordering::Relaxed);
            let challenge = serde_json::json!({ "type": "http-01", "url": at("/challenge"), "token": "dG9rZW4", "status": "valid" });
            (200, String::new(), challenge)
        }
        "/finalize" => {
            stage.store(2, Ordering::Relaxed);
            (200, String::new(), order("valid"))
        }
        "/order" => (200, String::new(), order(states[usize::from(stage.load(Ordering::Relaxed))])),
        _ => (200, String::new(), serde_json::Value::Null),
    };
    (status, fields + "Replay-Nonce: abc\r\n", content.to_string().into_bytes())
}
