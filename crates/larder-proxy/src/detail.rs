//! Words of the `detail` member of `Cache-Status` that several steps say.

/// The word for a hit on a plain file that somebody put there, or changed.
pub(crate) const BY_HAND: &str = "by-hand";

/// The word for a hit on a response that another larder has fetched, which came from Redis for this request.
pub(crate) const REMOTE: &str = "remote";

/// The word for a hit on a response that another larder has fetched meanwhile, for which this request has waited.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// The word for a validation of what is stored because this larder has no lease of its fleet.
pub(crate) const NO_LEASE: &str = "no-lease";

/// The word for a request that has waited `collapse_wait` for another's fetch, and then went alone.
pub(crate) const COLLAPSE_WAIT: &str = "collapse-wait";

/// The word for a page that was put together of a template and its fragments.
pub(crate) const ASSEMBLED: &str = "assembled";

/// The word for cookies that this client alone is sent: what is stored, and all others get, is without them.
pub(crate) const COOKIES_WITHHELD: &str = "cookies-withheld";

/// The word for an answer to an authority that looks for a proof that a host is ours (RFC 8555 8.3).
pub(crate) const ACME_PROOF: &str = "acme-proof";

/// The word for a WebSocket handshake on a site without `websocket = true`.
pub(crate) const UPGRADE_IS_OFF: &str = "websocket-off";
