//! TLS to a server for protocols that have no words of their own in it: no ALPN, one certificate, whatever its files say now.
//!
//! In: a connected socket. Out: the same, encrypted, or why not in one sentence. The files are read at the start, where what is wrong
//! with them is an error of the configuration, and again by [`Connector::read_again`] once they have changed: certificates that are
//! renewed need no restart.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
pub use tokio_rustls::client::TlsStream;

use crate::client::{client_config, offering};
use crate::error::SetupError;
use crate::failure::{TlsFailure, alert_within};
use crate::settings::TlsSettings;

/// Moment of change and size of each file.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// See the head of the file.
#[derive(Debug)]
pub struct Connector {
    settings: TlsSettings,
    read: Mutex<(Stamps, Arc<ClientConfig>)>,
}

impl Connector {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(settings: TlsSettings) -> Result<Self, SetupError> {
        let stamps = stamps(&settings);
        let config = offering(&client_config(&settings)?, &[]);
        Ok(Self { settings, read: Mutex::new((stamps, config)) })
    }

    /// What it was made of.
    pub fn settings(&self) -> &TlsSettings {
        &self.settings
    }

    /// Reads the files again where one of them has changed. Calls the file system.
    ///
    /// # Errors
    /// What is wrong with them. What was read before goes on being used.
    pub fn read_again(&self) -> Result<(), SetupError> {
        let stamps = stamps(&self.settings);
        let known = self.read.lock().0.clone();
        if known != stamps {
            let config = offering(&client_config(&self.settings)?, &[]);
            *self.read.lock() = (stamps, config);
        }
        Ok(())
    }

    /// Speaks TLS on a connected socket. The certificate has to be for `host`, unless the settings name another.
    ///
    /// # Errors
    /// Why not, in one sentence. Of the server's own words there is nothing in it.
    ///
    /// # Cancel safety
    /// Dropping it closes the socket.
    pub async fn connect<S>(&self, host: &str, socket: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let host = self.settings.server_name.as_deref().unwrap_or(host);
        let unnamed = |_| io::Error::other(format!("TLS: {host:?} cannot be the name of a server"));
        let name = ServerName::try_from(host.to_owned()).map_err(unnamed)?;
        let config = Arc::clone(&self.read.lock().1);
        let stream = TlsConnector::from(config).connect(name, socket).await;
        stream.map_err(|error| said(&error))
    }
}

fn said(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("TLS: {}", TlsFailure::of(error).sentence()))
}

/// Why a server has ended a connection by an alert, in one sentence. With TLS 1.3 it judges larder's certificate when the handshake is
/// over here.
pub fn refusal(error: &io::Error) -> Option<&'static str> {
    alert_within(error).map(|alert| TlsFailure::of(&alert).sentence())
}

fn stamps(settings: &TlsSettings) -> Stamps {
    let client = settings.client.as_ref();
    let files: [Option<&PathBuf>; 3] =
        [settings.ca_file.as_ref(), client.map(|client| &client.cert), client.map(|client| &client.key)];
    let stamp = |file: &PathBuf| {
        let meta = fs::metadata(file).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    files.into_iter().flatten().map(stamp).collect()
}
