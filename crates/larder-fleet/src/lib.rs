//! What the larders of a fleet promise each other about purges.
//!
//! All members read one log of purges, which lies in a server that they share. A member may use what it has stored without
//! asking the origin as long as it holds a *lease*. The lease counts from the moment at which a renewal was sent, if the server
//! answered it and everything was applied that the log had then. Every other member counts the same lease from the moment at which
//! it saw the renewal, which is later, and a hundredth longer. So a silent member uses nothing any more after a known time.
//! A purge is *complete* when each member has applied it, has left, or has lost its lease.
//!
//! ```text
//!   larder -> Member (this crate: no socket, no clock, no randomness of its own) -> LogCall -> thread with a connection -> server
//!          <- Effect                                                            <- LogReply <-
//! ```
//!
//! The server's side of each [`LogCall`] is one atomic step. `model/server.rs` has it as a plain data structure.
//! A server that is another one, or that has lost the end of its log, is given a new [`Epoch`] by the first member that finds
//! it: the log begins anew, and what members have put there before is void. Members with an unbroken lease keep their own copies,
//! because they have applied every purge that is complete. They append again what is not.
//!
//! **Invariants**, which the model holds against random histories with lost messages, partitions, restarts, failovers, frozen
//! members, and clocks of different speed:
//! 1. After a complete receipt no member uses a response that was fetched before the purge, its own or a shared one, unless it
//!    asks the origin first.
//! 2. A receipt that is not complete names each member that could.
//!
//! Deliberately absent: what a purge says, where responses lie, and the protocol of the server.

pub mod applied;
mod call;
mod known;
mod member;
#[cfg(test)]
mod model;
mod own;
mod receipt;
pub mod script;

pub use call::{Entry, EntryId, Epoch, Incarnation, LogCall, LogReply, Lost, Place, Position, Row};
pub use member::{Effect, Lane, Member, MemberSettings, Ticket};
pub use receipt::{MemberState, SharedPurge};
