//! Literal answers, put together from one step to the next; for tests written in Rust.
//!
//! In: text, whose characters are bytes. Out: an [`Answer`] with `raw`, and waits and an end behind what was given so far.
//! Without another end, the connection closes in an orderly way.

use super::script::{Answer, Hold, Pause};
use crate::wire::to_bytes;

impl Answer {
    /// These bytes in place of head and body.
    pub fn literal(text: impl Into<String>) -> Self {
        Self { raw: Some(text.into()), ..Self::default() }
    }

    /// More of them. Behind a wait they are a segment of their own.
    pub fn send(mut self, more: &str) -> Self {
        self.raw.get_or_insert_default().push_str(more);
        self
    }

    /// Waits here until `gate` is released.
    pub fn wait_for(mut self, gate: &str) -> Self {
        self.holds.push(Hold { at: self.literal_bytes(), gate: gate.to_owned() });
        self
    }

    /// Waits here for so long, in real time, such as `30ms`.
    pub fn wait(mut self, time: &str) -> Self {
        self.pauses.push(Pause { at: self.literal_bytes(), time: time.to_owned() });
        self
    }

    /// Then sends these bytes again and again, until the other side leaves.
    pub fn flood_with(self, text: &str) -> Self {
        Self { flood: Some(text.to_owned()), ..self }
    }

    /// Then waits for the next request.
    pub fn keep_open(self) -> Self {
        Self { keep: true, ..self }
    }

    /// Then sends nothing more, until the other side leaves.
    pub fn stay_silent(self) -> Self {
        Self { stay: true, ..self }
    }

    /// Then closes with a reset.
    pub fn reset(self) -> Self {
        Self { reset_at: Some(self.literal_bytes()), ..self }
    }

    fn literal_bytes(&self) -> u64 {
        self.raw.as_deref().map_or(0, |raw| to_bytes(raw).len() as u64)
    }
}
