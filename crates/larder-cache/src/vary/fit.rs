//! How well a stored response fits a request, where several do, and which of them a newer one outdates.
//!
//! In: the values that a response was selected by, the codings of its content, a request. Out: a [`Fit`] to be compared
//! with those of the others, or none. In this order: what the origin gave a request with the very same values; a coding
//! that the request takes, the more welcome the better; content without a coding. That is only for those who take no
//! coding, or where the origin gave it to a request that takes gzip, which every origin that codes knows: then this
//! content is coded for nobody. And content with a coding that the origin gave to a request that takes none is for all
//! of those: the origin knows no other form of it.

use http::{HeaderMap, header};

use super::{ABSENT, AVAILABLE_DICTIONARY, Selecting, first_value, write_value, written_preferences};
use crate::coding::{Codings, Taken};

/// How well a stored response fits a request; the greater the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit(u32);

impl Fit {
    /// Nothing fits better.
    pub const BEST: Self = Self(Self::EXACT.0 | FRESH);
    /// The request has the values that the response was made for.
    const EXACT: Self = Self(1 << 15);
    /// Content that anybody can read, or that the origin has no other form of.
    pub const PLAIN: Self = Self(1);

    /// A coding of this weight in thousandths, and its place among those that are liked equally.
    const fn coded(weight: u16, place: u8) -> Self {
        Self(((weight as u32) << PLACE_BITS) + place as u32 + 2)
    }

    /// What is fresh goes before what is not, which costs a request to the origin; and of what is not, no coding before
    /// another that is liked equally: the newest of them is the one that the origin gave last.
    #[must_use]
    pub const fn where_fresh(self, is_fresh: bool) -> Self {
        match is_fresh {
            true => Self(self.0 | FRESH),
            false if self.0 > Self::PLAIN.0 && self.0 < Self::EXACT.0 => {
                Self::coded(((self.0 - 2) >> PLACE_BITS) as u16, 0)
            }
            false => self,
        }
    }
}

/// Above every fit.
const FRESH: u32 = 1 << 16;
const PLACE_BITS: u32 = 3;

impl Selecting {
    /// Whether it fits every request, and all of them as well.
    pub fn fits_all(&self) -> bool {
        self.names.is_empty() && !self.codings.has_registered()
    }

    /// How well the response fits `request`; `None` where the request does not select it.
    #[inline]
    pub fn fit(&self, request: &HeaderMap) -> Option<Fit> {
        if self.fits_all() {
            return Some(Fit::PLAIN);
        }
        let same_codings = self.compare(request)?;
        self.fit_of_codings(request, same_codings)
    }

    /// Whether the codings of the response suit `request`, whatever else it varies by. Only then are its validators
    /// offered: an origin may have one tag for all codings of a page, and a 304 for it would confirm the wrong one.
    pub fn suits(&self, request: &HeaderMap) -> bool {
        let own = self.value_of_codings();
        let same_codings = own.is_none_or(|own| {
            let mut value = Vec::new();
            write_value(request, &header::ACCEPT_ENCODING, |part| value.extend_from_slice(part));
            first_value(&value).0 == own
        });
        self.fit_of_codings(request, same_codings).is_some()
    }

    /// Whether nothing but the codings of the response keeps `request` from selecting it.
    pub fn lacks_its_coding(&self, request: &HeaderMap) -> bool {
        self.compare(request).is_some_and(|same| self.fit_of_codings(request, same).is_none())
    }

    /// The codings of the response's content.
    pub fn codings(&self) -> Codings {
        self.codings
    }

    fn fit_of_codings(&self, request: &HeaderMap, same_codings: bool) -> Option<Fit> {
        let Some(own) = self.value_of_codings() else {
            // It was stored before such responses were told apart: nobody knows for whom.
            let has_dictionary = self.names.names().contains(&AVAILABLE_DICTIONARY);
            return match self.codings.has_registered() {
                true if self.codings.needs_dictionary() && !has_dictionary => None,
                true => {
                    Taken::by(request).liking(self.codings).map(|(weight, place)| Fit::coded(weight, place))
                }
                false => Some(Fit::PLAIN),
            };
        };
        if same_codings {
            return Some(Fit::EXACT);
        }
        if self.codings.has_other() {
            return None;
        }
        let (taken, given) = (Taken::by(request), given(own));
        // An origin that repeats Accept-Encoding in its content says so by Vary: words of one client's own are for those
        // alone who send the same.
        if given.has_other() {
            return None;
        }
        if self.codings.is_plain() {
            return taken.takes_plain_of(&given).then_some(Fit::PLAIN);
        }
        match taken.liking(self.codings) {
            Some((weight, place)) => Some(Fit::coded(weight, place)),
            None => (taken.is_nothing() && given.is_nothing()).then_some(Fit::PLAIN),
        }
    }

    /// The Accept-Encoding that the response was made for, as it was written; `None` where that selects nothing.
    fn value_of_codings(&self) -> Option<&[u8]> {
        let mut rest = &*self.key.0;
        self.names.names().iter().find_map(|name| {
            let (value, behind) = first_value(rest);
            rest = behind;
            (*name == header::ACCEPT_ENCODING).then_some(value)
        })
    }

    /// Whether this response, which the origin gave to `request`, takes the place of `old`: the request selects that one,
    /// and it is not kept beside this one for requests that take another coding or none. Without a coding this one takes
    /// the place of all that have one which the request takes: the origin could have coded it, and has not.
    pub fn replaces(&self, old: &Self, request: &HeaderMap) -> bool {
        let Some(of_old) = old.fit(request) else { return false };
        let is_less = || self.fit(request).is_some_and(|own| of_old < own);
        let is_beside = match (self.codings.has_registered(), old.codings.has_registered()) {
            (false, _) => false,
            (true, _) if self.codings != old.codings => is_less(),
            // Given to those who take no coding, which this one was not.
            _ => old.is_for_nobodys_coding() && !self.is_for_nobodys_coding() && is_less(),
        };
        !is_beside
    }

    /// Whether the origin gave it to a request that takes no coding.
    fn is_for_nobodys_coding(&self) -> bool {
        self.value_of_codings().is_some_and(|own| given(own).is_nothing())
    }

    /// What tells it apart from the others under its key, and from what it replaces not at all, for a store that keeps
    /// one of each: handed to `part`, piece by piece. The same in every process.
    pub fn identity(&self, mut part: impl FnMut(&[u8])) {
        for name in self.names.names() {
            part(name.as_str().as_bytes());
            part(&[0]);
        }
        let mut rest = &*self.key.0;
        for name in self.names.names() {
            let (value, behind) = first_value(rest);
            let whole = rest.get(..rest.len() - behind.len()).unwrap_or_default();
            rest = behind;
            let is_known =
                *name == header::ACCEPT_ENCODING && !self.codings.has_other() && !given(value).has_other();
            match (is_known, self.codings.has_registered()) {
                (true, true) => part(&[CLASS, self.codings.number(), u8::from(given(value).is_nothing())]),
                (true, false) if given(value).is_nothing() => part(&[CLASS, 0, 0]),
                (true, false) if given(value).has_gzip() => part(&[CLASS, 0, 1]),
                _ => part(whole),
            }
        }
        part(rest);
    }
}

/// Begins what stands for an Accept-Encoding in an identity. No value contains it.
const CLASS: u8 = 3;

/// What a request takes whose Accept-Encoding was written as `value`.
fn given(value: &[u8]) -> Taken {
    match written_preferences(value) {
        Some(members) => Taken::of(members),
        None if value == ABSENT => Taken::of(std::iter::empty()),
        None => Taken::UNREADABLE,
    }
}
