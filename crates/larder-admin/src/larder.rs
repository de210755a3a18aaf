//! What the admin asks of the running larder. The binary implements it, and so decides what is shown.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use larder_http::body::Body;
use larder_observe::Exposition;
use larder_observe::watch::Watch;

pub use crate::health::Health;
use crate::purges::question::{NotPurged, PurgeQuestion, PurgeReceipt};
use crate::stats::Stats;

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

/// Which of what is stored somebody wants listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuestion {
    /// What URLs begin with; empty for all.
    pub prefix: String,
    /// The only store to look into.
    pub store: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// The most that a page has, 1 to [`LIST_MAX`]. Default 100.
    pub limit: usize,
    /// Whether what larders share is listed behind what lies here.
    pub remote: bool,
    /// Names that Redis may look at for a page of that.
    pub names: Option<u64>,
}

/// The most that a page of a listing has.
pub const LIST_MAX: usize = 1000;

/// What of a URL somebody wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectQuestion {
    /// The absolute URL.
    pub url: String,
    /// The body of this response, counted from 1, in place of what is known of all.
    pub body: Option<usize>,
    /// The page that is put together from what is stored, in place of that; `body` 1 is its bytes then.
    pub assembled: Option<PageUse>,
}

/// What a page is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// To be looked at.
    Shown,
    /// To be given to everybody: the bytes of a page that is somebody's own are refused.
    Exported,
}

/// What is shown of a URL.
#[derive(Debug)]
pub enum Shown {
    /// What is stored there, as JSON.
    Json(Bytes),
    /// A body as it is stored.
    Body(Body),
}

/// Whose fault it is that there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The question makes no sense.
    Asker,
    /// There is no such thing.
    Absent,
    /// Others ask for too much at the moment.
    Busy,
    /// A disk's, or larder's own.
    Store,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Whose fault it is.
    pub fault: Fault,
    /// A fixed word.
    pub token: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The purge that was made all the same, where one was.
    pub receipt: Option<Box<PurgeReceipt>>,
}

/// An answer on its way.
pub type Answering<T> = Pin<Box<dyn Future<Output = Result<T, Unanswered>> + Send>>;

/// A purge on its way.
pub type Purging = Pin<Box<dyn Future<Output = Result<PurgeReceipt, NotPurged>> + Send>>;

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

    /// For `/objects`: a page of what is stored, as JSON. Takes as long as disks take, within limits.
    fn list(&self, question: ListQuestion) -> Answering<Bytes>;

    /// For `/object`: what is stored under a URL, or a body of it.
    fn object(&self, question: ObjectQuestion) -> Answering<Shown>;

    /// For `DELETE /object`: takes out what is stored under a URL; answers once that is durable.
    fn remove(&self, url: String) -> Answering<PurgeReceipt>;

    /// For `/api/v1/purges` and the words of others: purges, and answers once that is durable.
    fn purge(&self, question: PurgeQuestion) -> Purging;

    /// For `GET /api/v1/purges`: the last purges, newest first, as JSON.
    fn purges(&self) -> Bytes;

    /// For `GET /api/v1/fleet`: the fleet as this larder knows it, as JSON; `None` where it is in none.
    fn fleet(&self) -> Option<Bytes>;

    /// For `GET /api/v1/about`: which larder this is, and what its words mean, as JSON. `may_change` is whether the client may purge.
    fn about(&self, may_change: bool) -> Bytes;

    /// For `GET /api/v1/certificates`: the certificates that clients are shown, as JSON.
    fn certificates(&self) -> Bytes;

    /// For `POST /api/v1/certificates`: orders a new one for a host now. False where none is ordered for it.
    fn renew_certificate(&self, name: &str) -> bool;

    /// For `GET /api/v1/config`: the config in force, as JSON. Takes as long as the file takes to be read.
    fn config(&self) -> Answering<Bytes>;

    /// For `/api/v1/requests`, `/api/v1/events` and `/api/v1/live`: what is seen of requests; `None` where nothing is.
    fn watch(&self) -> Option<&Watch>;

    /// For `GET /api/v1/purges/ID`: one of them, as JSON.
    fn purge_of(&self, id: &str) -> Option<Bytes>;
}
