//! The ways to ask for a purge at the admin address.
//!
//! In: nothing. Out: their names, which the table of endpoints has as well; what each reads and answers is told beside.

/// A way to ask for a purge here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PurgeApi {
    /// `POST /api/v1/purges`.
    Own,
    /// `POST /service/ID/purge...` and `POST /purge/URL`.
    Fastly,
    /// `POST /client/v4/zones/ID/purge_cache`.
    Cloudflare,
}
