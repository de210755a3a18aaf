//! How a dialect's clients expect to be answered where a purge holds.

/// The answer that a client takes for success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// 200 `Purged`, as Varnish answers. Most clients ask for a status below 400, some for exactly 200.
    Purged,
    /// 200 `Banned`.
    Banned,
    /// 200 `Ban added.`
    BanAdded,
    /// 200 `Purged`, or 200 `Not found` where nothing was stored.
    PurgedOrNotFound,
    /// 200 where something was stored, else 404, as nginx answers below a purge location.
    Location,
    /// 204 without content.
    NoContent,
}

/// A dialect claims a request that has its method or one of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// How its clients expect to be answered.
    pub(super) manner: Manner,
    /// The words of a refusal where the request names nothing.
    pub(super) nameless: &'static str,
}
