//! The serving side, as small as it can be: proofs over HTTP and TLS from [`Challenges`], as a listener would look for them.

use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use larder_acme::Challenges;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// Both servers, ended with this value.
pub(crate) struct Proofs {
    pub(crate) challenges: Arc<Challenges>,
    pub(crate) http_port: u16,
    pub(crate) tls_port: u16,
    /// Nothing is found otherwise.
    pub(crate) are_shown: Arc<AtomicBool>,
    _runtime: Runtime,
}

impl Proofs {
    pub(crate) fn start() -> Self {
        let challenges = Arc::new(Challenges::default());
        let are_shown = Arc::new(AtomicBool::new(true));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let [http, tls] = [(); 2].map(|()| {
            let listener = StdListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        });
        let (http_port, tls_port) = (http.local_addr().unwrap().port(), tls.local_addr().unwrap().port());
        let looked_up = Looked { challenges: Arc::clone(&challenges), are_shown: Arc::clone(&are_shown) };
        let resolver = Arc::new(looked_up.clone());
        runtime.spawn(async move { serve_http(TcpListener::from_std(http).unwrap(), looked_up).await });
        runtime.spawn(async move { serve_tls(TcpListener::from_std(tls).unwrap(), resolver).await });
        Self { challenges, http_port, tls_port, are_shown, _runtime: runtime }
    }
}

#[derive(Clone, Debug)]
struct Looked {
    challenges: Arc<Challenges>,
    are_shown: Arc<AtomicBool>,
}

async fn serve_http(listener: TcpListener, looked: Looked) {
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match socket.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => break,
            }
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.split(' ').nth(1).unwrap_or_default();
        let token = target.strip_prefix("/.well-known/acme-challenge/").unwrap_or_default();
        let is_shown = looked.are_shown.load(Ordering::Relaxed) && !looked.challenges.is_empty();
        let answer = match looked.challenges.http(token).filter(|_| is_shown) {
            Some(content) => {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}",
                    content.len()
                )
            }
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
        };
        let _ = socket.write_all(answer.as_bytes()).await;
    }
}

async fn serve_tls(listener: TcpListener, resolver: Arc<Looked>) {
    let mut config = ServerConfig::builder_with_provider(larder_tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        if let Ok(mut stream) = acceptor.accept(socket).await {
            let _ = stream.shutdown().await;
        }
    }
}

impl ResolvesServerCert for Looked {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.challenges.tls(hello.server_name()?).filter(|_| self.are_shown.load(Ordering::Relaxed))
    }
}
