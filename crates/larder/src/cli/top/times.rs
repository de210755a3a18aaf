//! When each kind of question was asked, or answered, last.
//!
//! In: questions and answers, with the time. Out: whether one is due again: a while after its answer, so that never two of the same are under way.

use std::collections::BTreeMap;

use super::asks::TopAsk;

/// An answer that does not come is no reason to ask never again.
const ANSWER_SECONDS: f64 = 100.0;

/// The times of the kinds of questions.
#[derive(Debug, Default)]
pub(super) struct AskTimes {
    of: BTreeMap<&'static str, AskTime>,
}

#[derive(Clone, Copy, Debug)]
struct AskTime {
    at: f64,
    is_answered: bool,
}

impl AskTimes {
    /// Its answer came.
    pub(super) fn answered(&mut self, ask: &TopAsk, now: f64) {
        self.of.insert(kind(ask), AskTime { at: now, is_answered: true });
    }

    /// It is asked at once, whenever it was asked last.
    pub(super) fn forget(&mut self, ask: &TopAsk) {
        self.of.remove(kind(ask));
    }

    /// It is asked now.
    pub(super) fn asked(&mut self, ask: &TopAsk, now: f64) {
        self.of.insert(kind(ask), AskTime { at: now, is_answered: false });
    }

    /// Whether it may be asked, so many seconds after the answer before.
    pub(super) fn is_due(&self, ask: &TopAsk, again: f64, now: f64) -> bool {
        let Some(AskTime { at, is_answered }) = self.of.get(kind(ask)).copied() else { return true };
        // Where the clock was set back, it is due as well.
        let passed = (now - at).abs();
        passed >= if is_answered { again } else { ANSWER_SECONDS }
    }
}

/// What is asked for apart from the others.
pub(super) const fn kind(ask: &TopAsk) -> &'static str {
    match ask {
        TopAsk::Before(_) => "before",
        ask => ask.part(),
    }
}
