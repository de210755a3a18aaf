//! Cookies of a request that say nothing of whose page it gets: those of analytics, advertising and consent.
//!
//! In: names, with at most one `*` each. Out: an answer per cookie of a request. It is asked for each cookie of each request
//! whose page lives by a lifetime that the application did not give, so names are looked up and not walked through.
//! Letter case counts: a name that only resembles a harmless one is none.

use larder_http::fields::cookie_names::HARMLESS;

use super::{is_between, split_at_star};

type Text = Box<[u8]>;

/// Names of cookies by which an application does not make its pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarmlessNames {
    /// Sorted.
    whole: Vec<Text>,
    /// How others begin; sorted, and none begins with another.
    beginnings: Vec<Text>,
    /// How others begin and end.
    both_ends: Vec<(Text, Text)>,
}

impl Default for HarmlessNames {
    /// [`HARMLESS`].
    fn default() -> Self {
        Self::new(HARMLESS.iter().copied())
    }
}

impl HarmlessNames {
    /// Of patterns in which one `*` stands for any text.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut whole, mut beginnings, mut both_ends) = (Vec::new(), Vec::<Text>::new(), Vec::new());
        for pattern in patterns {
            match split_at_star(pattern) {
                (name, None) => whole.push(Text::from(name.as_bytes())),
                (before, Some("")) => beginnings.push(Text::from(before.as_bytes())),
                (before, Some(after)) => {
                    both_ends.push((Text::from(before.as_bytes()), Text::from(after.as_bytes())));
                }
            }
        }
        whole.sort_unstable();
        beginnings.sort_unstable();
        // Sorted, the shortest of those that begin alike comes first, and covers the others.
        beginnings.dedup_by(|longer, shorter| longer.starts_with(shorter));
        Self { whole, beginnings, both_ends }
    }

    /// Whether `name` is one of them.
    pub fn matches(&self, name: &[u8]) -> bool {
        let behind = self.beginnings.partition_point(|beginning| **beginning <= *name);
        let begins = |at: usize| self.beginnings.get(at).is_some_and(|beginning| name.starts_with(beginning));
        behind.checked_sub(1).is_some_and(begins)
            || self.whole.binary_search_by(|whole| (**whole).cmp(name)).is_ok()
            || self.both_ends.iter().any(|(before, after)| is_between(name, before, after))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_star_stands_for_any_text_and_letter_case_counts() {
        let names = HarmlessNames::new(["_ga*", "_gat_*", "_gid", "mp_*_mixpanel", "*_seen", "AMP_*"]);
        for name in
            ["_ga", "_ga_ABC", "_gat_x", "_gid", "mp_1_mixpanel", "mp__mixpanel", "_seen", "tour_seen"]
        {
            assert!(names.matches(name.as_bytes()), "{name}");
        }
        for name in ["", "_g", "_gi", "_gids", "_GID", "mp_mixpanel", "amp_x", "seen", "x_ga"] {
            assert!(!names.matches(name.as_bytes()), "{name}");
        }
        assert!(!HarmlessNames::new([]).matches(b"_ga"));
    }

    proptest! {
        #[test]
        fn a_look_finds_what_a_walk_finds(
            patterns in proptest::collection::vec("[ab]{0,3}\\*?[ab]{0,2}", 0..12), name in "[abc]{0,6}",
        ) {
            let walk = patterns.iter().any(|pattern| match split_at_star(pattern) {
                (whole, None) => whole == name,
                (before, Some(after)) => is_between(name.as_bytes(), before.as_bytes(), after.as_bytes()),
            });
            let names = HarmlessNames::new(patterns.iter().map(String::as_str));
            prop_assert_eq!(names.matches(name.as_bytes()), walk);
        }
    }
}
