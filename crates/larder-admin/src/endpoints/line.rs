//! What a line of the table of endpoints says: path, actions, class, parameters.
//!
//! In: nothing. Out: the types. The lines themselves are in `table.rs`; how a request finds its own is told in the file above.

use crate::purges::api::PurgeApi;

/// What an action costs or changes, and so who may ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nothing about clients or responses: no token is needed.
    Open,
    /// Shows what is known already.
    Looks,
    /// Asks disks or an origin.
    Costs,
    /// Purges.
    Changes,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Index,
    File,
    Health,
    Metrics,
    Stats,
    Explain,
    List,
    Object,
    Remove,
    Fleet,
    Purges,
    PurgeOf,
    Requests,
    Events,
    Live,
    Now,
    Series,
    Latency,
    Top,
    Breakdown,
    About,
    Config,
    Certificates,
    Renew,
    Purge(PurgeApi),
}

/// A parameter of the query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// One sentence.
    pub(crate) about: &'static str,
}

/// What some methods do at an endpoint.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) deed: Deed,
    pub(crate) methods: &'static [&'static str],
    pub(crate) class: Class,
    pub(crate) parameters: &'static [Parameter],
    /// One sentence.
    pub(crate) purpose: &'static str,
    /// What the answer holds.
    pub(crate) answer: &'static str,
    /// Statuses beyond those that every endpoint has, each with its cause.
    pub(crate) errors: &'static [(u16, &'static str)],
    /// The command that asks here.
    pub(crate) command: Option<&'static str>,
}

/// A path with what can be done there.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// A part in capitals stands for any other; at the end, for any number of parts.
    pub(crate) path: &'static str,
    pub(crate) actions: &'static [Action],
}
