//! What the admin asks of the running larder. The binary implements it, and so decides what is shown.

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

/// The running larder, seen from the admin address. Each call happens on a worker, so it must not wait.
pub trait Larder: Send + Sync + 'static {
    /// For `/healthz`.
    fn health(&self) -> Health;

    /// For `/metrics`: adds every family.
    fn expose(&self, out: &mut Exposition);

    /// For `/stats`.
    fn stats(&self) -> Stats;
}
