//! Whether clients of a site have to show a certificate, and which are believed.
//!
//! In: authorities, lists of revoked certificates, and whether a client may come without. Out: a verifier for handshakes, and two digests. The first is the policy as it is configured: a
//! connection that was accepted under another one carries no request for the site. The second also holds what the files say: a ticket from before they changed opens nothing.

use std::path::PathBuf;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use larder_http::message::ClientPolicyId;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::fault::{ServerFault, ServerFile};
use super::identity::{certificates, told};

/// What is asked of a site's clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientPolicyFiles {
    /// Authorities (PEM) of clients.
    pub authorities: PathBuf,
    /// Lists of revoked certificates (PEM or DER). None. Where there is one, each authority of a chain needs one.
    pub revoked: Vec<PathBuf>,
    /// Whether a client without a certificate is refused. True.
    pub is_required: bool,
}

impl ClientPolicyFiles {
    /// Which policy it is: of these files, required or not. It is the same after the file was renewed, so that open connections stay good.
    pub fn id(&self) -> ClientPolicyId {
        let mut digest = Context::new(&SHA256);
        digest.update(&[u8::from(self.is_required)]);
        // Each with its length: two paths are not the same as another two.
        for path in std::iter::once(&self.authorities).chain(&self.revoked) {
            let path = path.as_os_str().as_encoded_bytes();
            digest.update(&path.len().to_be_bytes());
            digest.update(path);
        }
        ClientPolicyId(whole(digest))
    }
}

/// A policy that was read.
#[derive(Clone, Debug)]
pub struct ClientPolicy {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    /// Which it is.
    pub id: ClientPolicyId,
    /// The same, what the authorities are, and what was revoked.
    pub(super) ticket_id: [u8; 32],
}

impl ClientPolicy {
    /// Of a site whose clients show nothing.
    pub fn none() -> Self {
        let id = ClientPolicyId::default();
        Self { verifier: WebPkiClientVerifier::no_client_auth(), id, ticket_id: [0; 32] }
    }

    /// Whether it asks the same of clients, by what its files say.
    pub fn is_same(&self, other: &Self) -> bool {
        self.ticket_id == other.ticket_id
    }

    /// Reads the files of one. Blocks for as long as that takes.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn read(files: &ClientPolicyFiles, provider: &Arc<CryptoProvider>) -> Result<Self, Vec<ServerFault>> {
        let file = ServerFile::ClientAuthorities;
        let mut faults = Vec::new();
        let mut roots = RootCertStore::empty();
        let mut digest = Context::new(&SHA256);
        digest.update(&files.id().0);
        match certificates(&files.authorities, file) {
            Ok(all) => {
                for der in all {
                    digest.update(&der);
                    if let Err(error) = roots.add(der) {
                        let found = format!("a certificate that is no authority: {error}");
                        faults.push(ServerFault::new(file, &files.authorities, found));
                    }
                }
            }
            Err(fault) => faults.push(fault),
        }
        let mut lists = Vec::new();
        for path in &files.revoked {
            match revoked(path) {
                Ok(all) => all.into_iter().for_each(|list| {
                    digest.update(&list);
                    lists.push(list);
                }),
                Err(found) => faults.push(ServerFault::new(ServerFile::Revoked, path, found)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let builder = builder.with_crls(lists);
        let builder = if files.is_required { builder } else { builder.allow_unauthenticated() };
        let verifier = builder
            .build()
            .map_err(|error| vec![ServerFault::new(file, &files.authorities, error.to_string())])?;
        Ok(Self { verifier, id: files.id(), ticket_id: whole(digest) })
    }
}

fn whole(digest: Context) -> [u8; 32] {
    let digest = digest.finish();
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    bytes
}

/// The lists in a file.
fn revoked(path: &std::path::Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.first() == Some(&0x30) {
        return Ok(vec![bytes.into()]);
    }
    let all =
        CertificateRevocationListDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>().map_err(told)?;
    if all.is_empty() { Err("no list of revoked certificates in it".to_owned()) } else { Ok(all) }
}
