//! How many files stores keep open: what they would like, what they can work with, and how a share of fewer is split.
//!
//! In: what each wants. Out: what each gets. Pure; who decides about the share is the binary, which alone knows of all that needs
//! descriptors.

/// What a store does with files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// It cannot work with fewer.
    pub least: usize,
    /// It has no use for more.
    pub most: usize,
}

impl Wanted {
    /// Of several together.
    pub fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        let add = |a: Self, b: Self| Self {
            least: a.least.saturating_add(b.least),
            most: a.most.saturating_add(b.most),
        };
        all.into_iter().fold(Self::default(), add)
    }
}

/// What each of `wanted` gets of `files`: what it wants where there are enough, else the least and a part of what is left in
/// proportion to what it wants beyond that. Where there are not enough for the least, everybody gets that all the same.
pub fn split(files: usize, wanted: &[Wanted]) -> Vec<usize> {
    let all = Wanted::sum(wanted.iter().copied());
    let (left, beyond) = (files.saturating_sub(all.least), all.most.saturating_sub(all.least).max(1));
    let share = |wanted: &Wanted| {
        let own = wanted.most.saturating_sub(wanted.least);
        let part = (own as u128 * left as u128 / beyond as u128).min(own as u128);
        wanted.least + usize::try_from(part).unwrap_or(own)
    };
    wanted.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_what_it_wants_or_a_part_in_proportion_and_never_less_than_the_least() {
        let wanted = [(16, 1032), (64, 2064), (16, 16)].map(|(least, most)| Wanted { least, most });
        assert_eq!(split(usize::MAX, &wanted), [1032, 2064, 16]);
        assert_eq!(split(3112, &wanted), [1032, 2064, 16]);
        assert_eq!(split(0, &wanted), [16, 64, 16]);
        let some = split(500, &wanted);
        assert!(some.iter().sum::<usize>() <= 500 && some.iter().sum::<usize>() > 490, "{some:?}");
        assert!(some[1] > some[0], "{some:?}");
        assert_eq!(split(10, &[]), Vec::<usize>::new());
    }
}
