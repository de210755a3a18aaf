//! When a server's answers to health checks add up to a change.
//!
//! In: what was found before, and one answer after another. Out: a change, when there is one. The first answer decides
//! alone: at the start nothing is known, and a server that has just appeared is believed until it is asked. So does
//! the first good one of a server that has never been healthy: it has just started, and nothing speaks against it.
//!
//! ```text
//!              first answer good                  `unhealthy` bad ones in a row
//!   unknown ----------------------> healthy ---------------------------------------> unhealthy
//!      |                             ^   ^                                             |
//!      | first answer bad            |   +------------ `healthy` good ones in a row ---+
//!      v                             |
//!   not healthy yet -----------------+ first good one
//! ```

use crate::fleet::Checks;

/// What one check has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    Bad,
    /// It could not be asked for a reason of our own; says nothing about the server.
    Unknown,
}

impl Verdict {
    /// The word of metrics and reports.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unknown => "not-asked",
        }
    }
}

/// The checks of one server so far.
#[derive(Debug)]
pub(super) struct Streak {
    found: Checks,
    /// Answers in a row that say otherwise.
    against: u32,
    healthy: u32,
    unhealthy: u32,
}

impl Streak {
    /// Goes on from what was `found` before. Changes to healthy after `healthy` good answers, and back after
    /// `unhealthy` bad ones; 0 is taken for 1.
    pub(super) fn new(found: Checks, healthy: u32, unhealthy: u32) -> Self {
        Self { found, against: 0, healthy, unhealthy }
    }

    /// Whether the server is healthy now, where `verdict` has changed it.
    pub(super) fn note(&mut self, verdict: Verdict) -> Option<bool> {
        let is_good = match verdict {
            Verdict::Good => true,
            Verdict::Bad => false,
            Verdict::Unknown => return None,
        };
        let needed = match (self.found, is_good) {
            (Checks::Unknown, _) | (Checks::Unhealthy { was_healthy: false }, true) => 1,
            (Checks::Healthy, true) | (Checks::Unhealthy { .. }, false) => {
                self.against = 0;
                return None;
            }
            (Checks::Healthy, false) => self.unhealthy,
            (Checks::Unhealthy { .. }, true) => self.healthy,
        };
        self.against = self.against.saturating_add(1);
        if self.against < needed {
            return None;
        }
        self.against = 0;
        self.found = match is_good {
            true => Checks::Healthy,
            false => Checks::Unhealthy { was_healthy: self.found.were_good() },
        };
        Some(is_good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `answers`, `+` good, `-` bad, `?` unknown, with `|` behind each that changes something.
    fn check(healthy: u32, unhealthy: u32, expected: &str) {
        check_after(Checks::Unknown, healthy, unhealthy, expected);
    }

    fn check_after(found: Checks, healthy: u32, unhealthy: u32, expected: &str) {
        let mut streak = Streak::new(found, healthy, unhealthy);
        let mut seen = String::new();
        for answer in expected.chars().filter(|answer| *answer != '|') {
            let verdict = match answer {
                '+' => Verdict::Good,
                '-' => Verdict::Bad,
                _ => Verdict::Unknown,
            };
            seen.push(answer);
            if let Some(is_healthy) = streak.note(verdict) {
                assert_eq!(is_healthy, answer == '+');
                seen.push('|');
            }
        }
        assert_eq!(seen, expected, "healthy {healthy}, unhealthy {unhealthy}");
    }

    #[test]
    fn the_first_answer_decides_and_then_it_takes_as_many_in_a_row_as_configured() {
        check(2, 3, "+|+---|--+-++|--+---|");
        check(2, 3, "-|---+|-+---|+-++|");
        check(1, 1, "+|-|+|-|");
        check(0, 0, "+|-|+|");
        check(3, 2, "??-|?+|-?-|+?+?+|");
    }

    #[test]
    fn a_server_that_has_never_been_healthy_is_with_its_first_good_answer() {
        check(9, 3, "-|--+|--+---|++++++++-+++++++++|");
    }

    #[test]
    fn who_goes_on_asking_goes_on_from_what_was_found() {
        check_after(Checks::Healthy, 2, 3, "--+---|");
        check_after(Checks::Unhealthy { was_healthy: true }, 2, 3, "+-++|");
        check_after(Checks::Unhealthy { was_healthy: false }, 2, 3, "-+|");
    }
}
