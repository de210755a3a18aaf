//! Pages that are put together from templates and fragments: SSI, as nginx and Apache have it, and ESI 1.0.
//!
//! In: the bytes of a template while they arrive, the facts of a request, and what became of fragments. Out: a [`Program`] that any
//! number of pages share, and for each page a [`Run`] that says, step by step, what stands where and which fragments are
//! needed. Pure: no I/O, no clock, no runtime, and no body of a response. Everything is bounded, and any bytes may be fed to it.
//! Deliberately absent: which responses are templates, fetches, queues and time limits; docs/design/assembly.md has the reasons.

mod compile;
mod composed;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod condition;
mod date;
#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::expect_used, clippy::indexing_slicing, reason = "for tests alone")]
#[doc(hidden)]
pub mod delivery;
mod escape;
mod expression;
mod facts;
mod list;
mod name;
mod outline;
mod problem;
mod program;
mod reason;
mod run;
mod source;
mod value;

pub use compile::{Compiler, compile};
pub use facts::{FactsUsed, RequestFacts};
pub use outline::{Alternative, LevelKind, Outline, OutlineLevel, OutlinedInclude};
pub use problem::{Fault, Problem, Problems};
pub use program::Program;
pub use reason::IncludeFailure;
pub use run::{Answer, Ask, DocumentId, PageTemplate, Run, RunSettings, SlotId, SlotKind, Step, Template};
