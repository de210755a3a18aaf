//! HTTP/2 towards an origin (RFC 9113), on the `h2` crate.
//!
//! In: a transport that was agreed to speak it. Out: a [`Multiplexed`] connection that hands out [`Slot`]s, each the
//! right to one stream; `exchange` sends a request on it, `content` reads the answer.
//!
//! ```text
//!   Pool --Arc--> Multiplexed <--Arc-- Slot (one per exchange)
//!                      |  dropped with the last of them
//!                 task: drives h2; says goodbye (GOAWAY) and ends when the Multiplexed is gone
//! ```
//!
//! A stream's failure is that stream's alone. A connection takes no new stream once the peer said GOAWAY, refused
//! one, closed, or let a limit of time pass in silence; a peer that stays silent to a PING loses it altogether.
//!
//! Both sides count what looks like an attack over a connection's whole life (resets, frames of streams that have
//! ended, empty frames) and end it with everybody on it when there is too much of that. So each connection is left
//! well before: after so many streams, so many that we reset, so many that the peer broke. Those under way go on.
//! Deliberately absent: server push (refused in SETTINGS), extended CONNECT, priorities. Not seen from here, because
//! `h2` keeps it to itself: empty DATA frames, of which it allows a peer a hundred.

mod connection;
mod content;
mod exchange;
mod head;
mod load;
mod sending;
mod task;

pub(crate) use connection::{Multiplexed, Slot};
pub(crate) use content::Content;
pub(crate) use exchange::exchange;
pub(crate) use sending::Uploading;
