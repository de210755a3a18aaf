//! When a server's answers to health checks add up to a change.
//!
//! In: one answer after another. Out: a change, when there is one. The first answer decides alone: at the start nothing
//! is known, and a server that has just appeared is believed until it is asked.
//!
//! ```text
//!              first answer good                  `unhealthy` bad ones in a row
//!   unknown ----------------------> healthy ---------------------------------------> unhealthy
//!      |                               ^                                               ^   |
//!      |                               +------------ `healthy` good ones in a row -----|---+
//!      +---------------------------------- first answer bad ---------------------------+
//! ```

/// What one check has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Bad,
    /// It could not be asked for a reason of our own; says nothing about the server.
    Unknown,
}

/// The checks of one server so far.
#[derive(Debug)]
pub(super) struct Streak {
    /// `None` before the first answer.
    is_healthy: Option<bool>,
    /// Answers in a row that say otherwise.
    against: u32,
    healthy: u32,
    unhealthy: u32,
}

impl Streak {
    /// Changes to healthy after `healthy` good answers, and back after `unhealthy` bad ones; 0 is taken for 1.
    pub(super) fn new(healthy: u32, unhealthy: u32) -> Self {
        Self { is_healthy: None, against: 0, healthy, unhealthy }
    }

    /// Whether the server is healthy now, where `verdict` has changed it.
    pub(super) fn note(&mut self, verdict: Verdict) -> Option<bool> {
        let is_good = match verdict {
            Verdict::Good => true,
            Verdict::Bad => false,
            Verdict::Unknown => return None,
        };
        let needed = match self.is_healthy {
            None => 1,
            Some(is_healthy) if is_healthy == is_good => {
                self.against = 0;
                return None;
            }
            Some(true) => self.unhealthy,
            Some(false) => self.healthy,
        };
        self.against = self.against.saturating_add(1);
        if self.against < needed {
            return None;
        }
        self.against = 0;
        self.is_healthy = Some(is_good);
        Some(is_good)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `answers`, `+` good, `-` bad, `?` unknown, with `|` behind each that changes something.
    fn check(healthy: u32, unhealthy: u32, expected: &str) {
        let mut streak = Streak::new(healthy, unhealthy);
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
        check(2, 3, "-|---+-++|");
        check(1, 1, "+|-|+|-|");
        check(0, 0, "+|-|+|");
        check(3, 2, "??-|?+?+?+|-?-|");
    }
}
