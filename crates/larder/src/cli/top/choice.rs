//! Which row of a list is chosen, and by which column it is sorted.
//!
//! In: moves, and the keys of the rows as they are now. Out: the place of the chosen row. The choice stays with its row where rows come and go
//! or change places; where the row is gone, it stays at its place. The first row is a place: what comes above it is chosen then.

use super::keys::TopMove;

/// The choice in one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowChoice {
    /// How many columns further than the first one.
    pub(super) sort: usize,
    place: usize,
    key: Option<String>,
}

impl RowChoice {
    /// Where the chosen row is now.
    pub(super) fn place<'a>(&self, mut keys: impl ExactSizeIterator<Item = &'a str>) -> usize {
        let last = keys.len().saturating_sub(1);
        let found = self.key.as_deref().and_then(|key| keys.position(|other| other == key));
        found.unwrap_or(self.place).min(last)
    }

    /// Moves it among the rows that are there.
    pub(super) fn go(&mut self, to: TopMove, page: usize, keys: &[String]) {
        let place = self.place(keys.iter().map(String::as_str));
        let last = keys.len().saturating_sub(1);
        self.place = moved(place, to, page, last);
        self.key = keys.get(self.place).filter(|_| self.place > 0).cloned();
    }

    /// Back to the first row.
    pub(super) fn reset(&mut self) {
        (self.place, self.key) = (0, None);
    }
}

/// The place after a move, between 0 and `last`.
pub(super) fn moved(place: usize, to: TopMove, page: usize, last: usize) -> usize {
    match to {
        TopMove::Up => place.saturating_sub(1),
        TopMove::Down => place.saturating_add(1).min(last),
        TopMove::PageUp => place.saturating_sub(page),
        TopMove::PageDown => place.saturating_add(page).min(last),
        TopMove::First => 0,
        TopMove::Last => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(of: &str) -> Vec<String> {
        of.chars().map(String::from).collect()
    }

    fn place(choice: &RowChoice, of: &str) -> usize {
        choice.place(keys(of).iter().map(String::as_str))
    }

    #[test]
    fn the_choice_stays_with_its_row() {
        let mut choice = RowChoice::default();
        choice.go(TopMove::Down, 10, &keys("abc"));
        choice.go(TopMove::Down, 10, &keys("abc"));
        assert_eq!(place(&choice, "abc"), 2);
        assert_eq!(place(&choice, "cab"), 0);
        assert_eq!(place(&choice, "xyzc"), 3);
        assert_eq!(place(&choice, "xyz"), 2, "its place, where its row is gone");
        assert_eq!((place(&choice, "x"), place(&choice, "")), (0, 0));
    }

    #[test]
    fn the_first_row_is_a_place_and_moves_end_at_the_ends() {
        let mut choice = RowChoice::default();
        assert_eq!(place(&choice, "xabc"), 0);
        for (to, expected) in [
            (TopMove::Up, 0),
            (TopMove::Last, 3),
            (TopMove::Down, 3),
            (TopMove::PageUp, 1),
            (TopMove::PageDown, 3),
            (TopMove::First, 0),
        ] {
            choice.go(to, 2, &keys("abcd"));
            assert_eq!(place(&choice, "abcd"), expected, "{to:?}");
        }
        choice.go(TopMove::Down, 2, &[]);
        assert_eq!(place(&choice, ""), 0);
    }
}
