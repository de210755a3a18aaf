//! What the bytes of a case travel in: TCP alone, or TLS over it.
//!
//! In: [`over_both`], around what lists the cases of a suite. Out: each case twice; what a case asks for while it is listed and
//! while it runs ([`Transport::current`]) is that of its own transport. What is refused in clear text is refused everywhere.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use larder_http::message::Scheme;
use larder_testkit::certificates::{Certificates, SanType};
use larder_testkit::client::Connection;
use tokio_rustls::TlsConnector;

use crate::hostile::suite::Run;

thread_local! {
    static CURRENT: RefCell<Transport> = const { RefCell::new(Transport::Clear) };
}

/// See the head of the file.
#[derive(Clone)]
pub(crate) enum Transport {
    Clear,
    Tls(Arc<Secured>),
}

/// What a client speaks; over TLS it is what it offers, alone.
#[derive(Clone, Copy)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// What the cases over TLS share; its files end with the last of them.
pub(crate) struct Secured {
    certificates: Certificates,
    http1: TlsConnector,
    http2: TlsConnector,
}

/// The name that every client asks for.
const NAME: &str = "a.test";

impl Secured {
    fn new() -> Self {
        let certificates = Certificates::with(NAME, |params| {
            let probe = "probe.test".try_into().expect("a name");
            params.subject_alt_names.push(SanType::DnsName(probe));
        });
        Self {
            http1: certificates.client_config(&[b"http/1.1"]).into(),
            http2: certificates.client_config(&[b"h2"]).into(),
            certificates,
        }
    }
}

impl Transport {
    /// That of the case which is listed or runs in this thread.
    pub(crate) fn current() -> Self {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Makes it the current one until `run` has returned.
    pub(crate) fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(self.clone());
        let result = run();
        CURRENT.set(before);
        result
    }

    /// What stands behind a case's name.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Clear => "",
            Self::Tls(_) => " (over TLS)",
        }
    }

    fn own(&self) -> Scheme {
        match self {
            Self::Clear => Scheme::Http,
            Self::Tls(_) => Scheme::Https,
        }
    }

    /// Of what comes over it.
    pub(crate) fn scheme(&self) -> &'static str {
        self.own().as_str()
    }

    /// The scheme that what comes over it does not have.
    pub(crate) fn other_scheme(&self) -> &'static str {
        self.own().other().as_str()
    }

    /// The port that goes without saying.
    pub(crate) fn port(&self) -> u16 {
        self.own().default_port()
    }

    /// That of the other scheme.
    pub(crate) fn other_port(&self) -> u16 {
        self.own().other().default_port()
    }

    /// A request in clear text as it is over this transport: over TLS an absolute form of http is one of https and the other way
    /// about, and the port that goes without saying is another.
    pub(crate) fn told(&self, request: &str) -> String {
        if matches!(self, Self::Clear) {
            return request.to_owned();
        }
        let (line, rest) = request.split_at(request.find('\n').unwrap_or(request.len()));
        let exchanged = [(" http://", " https://"), (" https://", " http://"), (" HTTP://", " HTTPS://")];
        let found = exchanged.iter().find(|(form, _)| line.contains(form));
        let line = found.map_or_else(|| line.to_owned(), |(form, other)| line.replacen(form, other, 1));
        let ports = [
            (":80/", ":443/"),
            (":80\r\n", ":443\r\n"),
            (":080\r\n", ":0443\r\n"),
            (":0080\r\n", ":00443\r\n"),
        ];
        let ported =
            |text: &str| ports.iter().fold(text.to_owned(), |text, (port, other)| text.replace(port, other));
        format!("{}{}", ported(&line), ported(rest))
    }

    /// The listener of a larder's config, and lines of its site.
    pub(crate) fn config(&self) -> (&'static str, String) {
        match self {
            Self::Clear => ("\"127.0.0.1:0\"", String::new()),
            Self::Tls(secured) => {
                let file = |name: &str| secured.certificates.file(name).display().to_string();
                let (cert, key) = (file("server.pem"), file("server.key"));
                let tls = format!("tls = {{ cert = {cert:?}, key = {key:?} }}\nredirect_https = false");
                ("{ address = \"127.0.0.1:0\", tls = true }", tls)
            }
        }
    }

    /// A connection on which `protocol` is spoken; `limit` bounds each single wait.
    pub(crate) async fn connect(
        &self,
        addr: SocketAddr,
        protocol: Protocol,
        limit: Duration,
    ) -> Result<Connection, String> {
        let opened = match (self, protocol) {
            (Self::Clear, _) => Connection::open(addr, limit).await,
            (Self::Tls(secured), Protocol::Http1) => {
                Connection::open_tls(addr, NAME, &secured.http1, limit).await
            }
            (Self::Tls(secured), Protocol::Http2) => {
                Connection::open_tls(addr, NAME, &secured.http2, limit).await
            }
        };
        opened.map_err(|error| error.to_string())
    }
}

/// The cases that `list` tells, in clear text and over TLS.
pub(crate) fn over_both(list: impl Fn() -> Vec<Run>) -> Vec<Run> {
    let both = [Transport::Clear, Transport::Tls(Arc::new(Secured::new()))];
    both.iter().flat_map(|transport| transport.during(&list)).collect()
}
