//! What the demo's newspaper says: headlines by hand, and text put together from parts, the same in every run.
//!
//! In: the number of a story and how long it shall be. Out: paragraphs. A text of parts compresses and reads like a
//! page of a real paper far better than filler would, and costs no file of 57 KB.

/// What stands above a story.
pub(super) struct Headline {
    pub(super) section: &'static str,
    pub(super) title: &'static str,
    pub(super) byline: &'static str,
}

const fn headline(section: &'static str, title: &'static str, byline: &'static str) -> Headline {
    Headline { section, title, byline }
}

/// The stories, the lead first.
pub(super) const HEADLINES: [Headline; 12] = [
    headline("Front page", "One pot of soup feeds four hundred", "By Ada Quince, from the kitchen"),
    headline("Market", "Plums are early, and nobody was ready", "By Tomas Verjus"),
    headline("Opinion", "In praise of the second shelf", "By our columnist"),
    headline("Weather", "Cool and dry, as it should be", "By the cellar desk"),
    headline("Science", "How long is fresh? A jar answers", "By Ines Salt"),
    headline("City", "Queue at the only stove reaches the bridge", "By Marten Oats"),
    headline("Crafts", "The lid that never stuck", "By Bea Larch"),
    headline("Travel", "Three days along the salt road", "By Jon Caraway"),
    headline("History", "When ice came down the river by boat", "By Ruth Barley"),
    headline("Sport", "Cheese wheels roll again on Sunday", "By the rolling desk"),
    headline("Books", "A cookbook without one recipe", "By Nell Saffron"),
    headline("Last page", "Letters, mostly about marmalade", "By our readers"),
];

const OPENINGS: [&str; 12] = [
    "On most mornings",
    "Long before the bakery opens",
    "When the rush begins",
    "For eleven years now",
    "After the third delivery of the day",
    "In the narrow room behind the stairs",
    "Whenever the bell rings twice",
    "By the light of a single lamp",
    "At the end of a hot week",
    "Once the shutters are up",
    "As the regulars well know",
    "Between two trains",
];

const PEOPLE: [&str; 14] = [
    "the cook on the early shift",
    "a retired ferryman",
    "the woman who keeps the ledger",
    "an apprentice with flour on both sleeves",
    "the dairy's youngest driver",
    "a baker from across the square",
    "the man who sharpens the knives",
    "the head of the cellar",
    "a beekeeper with few words",
    "the landlady of the corner house",
    "a schoolteacher on her way home",
    "the night porter",
    "the oldest member of the guild",
    "a courier with a wet coat",
];

const DEEDS: [&str; 12] = [
    "sets aside",
    "counts",
    "labels",
    "carries up",
    "weighs",
    "wraps",
    "sorts",
    "hands out",
    "writes down",
    "keeps",
    "looks after",
    "trades",
];

const THINGS: [&str; 14] = [
    "twelve jars of plum jam",
    "a wheel of hard cheese",
    "the last of the winter apples",
    "forty loaves of dark bread",
    "a crate of pickled beets",
    "two sacks of barley",
    "the good honey",
    "smoked trout from the upper lake",
    "a bundle of dried thyme",
    "the morning's butter",
    "a barrel of salted cabbage",
    "quince paste in waxed paper",
    "pears that will be ripe by Thursday",
    "a stone crock of mustard",
];

const REASONS: [&str; 12] = [
    "because nobody should have to cook the same dish four hundred times",
    "so that the next guest does not wait for the stove",
    "since a thing made once can be served all day",
    "though the shelf is nearly full",
    "which is quicker than it sounds",
    "and the date goes on the lid, always",
    "while the kettle comes to the boil",
    "until somebody says that it has gone stale",
    "as the house rules demand",
    "and no one has complained so far",
    "for the price of a little forethought",
    "whatever the almanac may say",
];

const SAYINGS: [&str; 12] = [
    "You do not light the oven for every slice",
    "What is asked for most should stand in front",
    "A label without a date is a rumour",
    "Throw out early what you would not serve your sister",
    "Nobody ever thanked me for the soup they did not wait for",
    "The stove is one, the guests are many",
    "Ask the kitchen whether it has changed, not for a new one",
    "If two people want the same plate, cook it once",
    "Fresh is a promise, and it has a time on it",
    "Half of my work is knowing what is already there",
    "A full shelf is no reason to stop cooking",
    "When the stove goes out, yesterday's bread is a fine thing",
];

/// The paragraphs of story `number`, together about `bytes` long.
pub(super) fn paragraphs(number: usize, bytes: usize) -> Vec<String> {
    let mut writer = Writer(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1));
    let mut paragraphs = Vec::new();
    let mut written = 0;
    while written < bytes {
        let mut paragraph = String::new();
        while paragraph.len() < 420 && written + paragraph.len() < bytes {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(&writer.sentence());
        }
        written += paragraph.len();
        paragraphs.push(paragraph);
    }
    paragraphs
}

/// Chooses by a linear congruential generator: Knuth's, whose upper bits are good enough for a paper.
struct Writer(u64);

impl Writer {
    fn number(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 40).unwrap_or_default()
    }

    fn one_of<const N: usize>(&mut self, parts: &[&'static str; N]) -> &'static str {
        parts[self.number() % N]
    }

    fn sentence(&mut self) -> String {
        let (who, does, what) = (self.one_of(&PEOPLE), self.one_of(&DEEDS), self.one_of(&THINGS));
        match self.number() % 4 {
            0 => format!("{}, {who} {does} {what}.", self.one_of(&OPENINGS)),
            1 => format!("“{},” says {who}.", self.one_of(&SAYINGS)),
            2 => format!("{}, {who} {does} {what}, {}.", self.one_of(&OPENINGS), self.one_of(&REASONS)),
            _ => format!("{} {does} {what}, {}.", capitalised(who), self.one_of(&REASONS)),
        }
    }
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_the_same_every_time_and_as_long_as_asked() {
        for number in 1..=HEADLINES.len() {
            let story = paragraphs(number, 4000);
            assert_eq!(story, paragraphs(number, 4000));
            let bytes: usize = story.iter().map(String::len).sum();
            assert!((4000..4300).contains(&bytes), "{number}: {bytes}");
        }
        assert_ne!(paragraphs(1, 4000), paragraphs(2, 4000));
    }
}
