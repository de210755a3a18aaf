//! The tabs, in their order.

/// A tab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TopTab {
    #[default]
    Overview,
    Why,
    Rules,
    Stores,
    Origins,
    Requests,
    Urls,
    Events,
}

impl TopTab {
    pub(super) const ALL: [Self; 8] = [
        Self::Overview,
        Self::Why,
        Self::Rules,
        Self::Stores,
        Self::Origins,
        Self::Requests,
        Self::Urls,
        Self::Events,
    ];

    /// Its place, from 0.
    pub(super) const fn place(self) -> usize {
        self as usize
    }

    /// The tab of a digit key.
    pub(super) fn of_digit(digit: char) -> Option<Self> {
        let place = (digit.to_digit(10)? as usize).checked_sub(1)?;
        Self::ALL.get(place).copied()
    }

    /// The tab so many places further, around the end.
    pub(super) fn stepped(self, places: usize) -> Self {
        Self::ALL.get((self.place() + places) % Self::ALL.len()).copied().unwrap_or_default()
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Why => "why",
            Self::Rules => "rules",
            Self::Stores => "stores",
            Self::Origins => "origins",
            Self::Requests => "requests",
            Self::Urls => "URLs",
            Self::Events => "events",
        }
    }

    /// Whether its rows are URLs, which can be explained, purged and filtered.
    pub(super) const fn has_urls(self) -> bool {
        matches!(self, Self::Requests | Self::Urls)
    }
}
