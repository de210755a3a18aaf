//! What the admin asks of the running larder. The binary implements it, and so decides what is shown.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use larder_observe::Exposition;

use crate::stats::Stats;

/// Whether new work should be sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Yes.
    Ok,
    /// No: it is ending, and finishes what runs.
    Draining,
}

impl Health {
    /// The word that `/healthz` and `/stats` say.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Draining => "draining",
        }
    }
}

/// A request that somebody wants explained, in the words in which it was asked for: nothing of it is checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its method. Default `GET`.
    pub method: String,
    /// Its absolute URL.
    pub url: String,
    /// Its fields, by name and value.
    pub fields: Vec<(String, String)>,
    /// The content of a QUERY.
    pub content: String,
    /// Whether the origin is left alone.
    pub offline: bool,
}

/// Why a request cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// A fixed word.
    pub token: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// An explanation on its way, as JSON.
pub type Explaining = Pin<Box<dyn Future<Output = Result<Bytes, Unexplained>> + Send>>;

/// The running larder, seen from the admin address. Calls happen on the admin's own thread and do not wait, but for
/// what they return.
pub trait Larder: Send + Sync + 'static {
    /// For `/healthz`.
    fn health(&self) -> Health;

    /// For `/metrics`: adds every family.
    fn expose(&self, out: &mut Exposition);

    /// For `/stats`.
    fn stats(&self) -> Stats;

    /// For `/explain`: why a request is answered as it is. May take as long as an origin takes to answer, within limits.
    fn explain(&self, question: Question) -> Explaining;
}
