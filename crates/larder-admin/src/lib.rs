//! The admin address: health, metrics, statistics, explanations, what is stored, and purges.
//!
//! In: requests on an address of its own, as a [`larder_listen::Service`]; what to say comes from the [`Larder`]
//! trait, which the binary implements. Out: answers that no cache may keep; small ones, but for a stored body.
//! Every request passes the guard first: its Host must be one that a page elsewhere cannot make point here (DNS
//! rebinding), and, where a token is configured, it must be shown. `/healthz` needs none, because orchestrators
//! cannot keep secrets in a probe, and the dashboard's files at `/` and below `/ui/` need none, because a browser has nothing to show yet. What there is stands in one table
//! (`endpoints`), which the guard goes by.
//! The content of a request is read for a purge alone. Deliberately absent: CORS, cookies, sessions.

mod answer;
mod assets;
mod endpoints;
mod error;
mod figures;
mod guard;
mod health;
mod larder;
mod live;
mod purges;
mod query;
mod refusals;
mod service;
mod stats;
mod wrong_tokens;

pub use endpoints::api_markdown;
pub use error::AdminError;
pub use guard::{Guard, Token};
pub use larder::{
    Answering, Explaining, Fault, Health, LIST_MAX, Larder, ListQuestion, ObjectQuestion, PageUse, Purging,
    Question, Shown, Unanswered, Unexplained,
};
pub use purges::question::{NotPurged, PurgeQuestion, PurgeReceipt};
pub use service::Admin;
pub use stats::{
    CheckStats, Counts, LatencyStats, ListenerStats, LogStats, OriginStats, PageStats, RemoteServerStats,
    RuleStats, ServerStats, SiteStats, Stats, StoreStats, TierStats, WorkerStats,
};
