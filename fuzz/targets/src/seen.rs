//! One form for what two servers understood.
//!
//! The projection leaves out what larder consumes by design: Host (it is the authority), framing, connection-level
//! fields, Expect. Field values keep their order within one name; the order of names means nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use bytes::Bytes;
use http::{HeaderMap, header};
use larder_http::authority::Authority;
use larder_http::message::Scheme;

/// One request as a service saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// As it was sent.
    pub method: String,
    /// In origin form, or as it was sent.
    pub target: String,
    /// Host and port in one spelling.
    pub authority: Option<String>,
    /// As hyper names it.
    pub version: String,
    /// Values by the field's name in lower case, in the order of their lines.
    pub fields: BTreeMap<String, Vec<Vec<u8>>>,
    /// Decoded, as far as it came.
    pub content: Vec<u8>,
    /// Whether the content came to the end that its framing promised.
    pub whole: bool,
}

/// All requests of one connection, in order.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    /// Notes a request whose content is still to come; returns its place.
    pub fn begin(&self, seen: Seen) -> usize {
        let mut log = self.0.lock();
        log.push(seen);
        log.len() - 1
    }

    /// Adds content to the request at `place`.
    pub fn content(&self, place: usize, data: &[u8]) {
        self.0.lock()[place].content.extend_from_slice(data);
    }

    /// Notes that the content of the request at `place` came to its end.
    pub fn whole(&self, place: usize) {
        self.0.lock()[place].whole = true;
    }

    /// What was noted.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// The end-to-end fields, without those that larder consumes.
pub fn end_to_end(fields: &HeaderMap) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut fields = fields.clone();
    larder_http::connection::strip(&mut fields);
    for consumed in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::EXPECT] {
        fields.remove(consumed);
    }
    let mut kept: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (name, value) in &fields {
        kept.entry(name.as_str().to_owned()).or_default().push(value.as_bytes().to_vec());
    }
    kept
}

/// The canonical form, or the raw one where there is none.
pub fn authority(raw: &[u8]) -> String {
    match Authority::parse(Bytes::copy_from_slice(raw), Scheme::Http) {
        Ok(authority) => authority.as_str().to_owned(),
        Err(_) => format!("not canonical: {}", String::from_utf8_lossy(raw)),
    }
}
