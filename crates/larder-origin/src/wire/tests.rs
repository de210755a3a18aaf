//! What one write to a TLS connection comes to.

#![allow(clippy::unwrap_used)]

use larder_tls::TlsSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::resources::OriginResources;

#[tokio::test]
async fn one_write_is_one_record_so_that_a_failed_one_has_shown_the_peer_nothing() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = larder_tls::provider();
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let taking = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(Arc::new(server)).accept(socket).await.unwrap();
        let mut taken = Vec::new();
        let _ = stream.read_to_end(&mut taken).await;
        taken.len()
    });
    let trusting = TlsSettings { verify: false, ..TlsSettings::default() };
    let connector = TlsConnector::from(Arc::new(larder_tls::client_config(&trusting).unwrap()));
    let name = "localhost".try_into().unwrap();
    let stream = connector.connect(name, Socket::Tcp(Arc::new(socket))).await.unwrap();
    let mut wire = Wire::new(
        Transport::Tls(Box::new(stream)),
        OriginResources::among(&Arc::default()).room.open(1).unwrap(),
    );
    let mark = wire.trace().mark();
    assert_eq!(wire.write(&[b'x'; 100 * 1024]).await.unwrap(), TLS_RECORD_BYTES);
    assert_eq!(wire.trace().mark().written_bytes - mark.written_bytes, TLS_RECORD_BYTES as u64);
    assert_eq!(wire.write(b"y").await.unwrap(), 1);
    wire.shutdown().await.unwrap();
    drop(wire);
    assert_eq!(taking.await.unwrap(), TLS_RECORD_BYTES + 1);
}
