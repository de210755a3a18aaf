//! Which rule decides what a page says to caches behind larder, and which of its parts that rule is about.
//!
//! In: the same as of [`page_control`](super::page_control), which follows it. Out: [`PageGround`], with the words by which
//! `larder explain` tells it.

use http::HeaderMap;

use super::said::{LifetimeFor, PageSaid, PartSaid, added_to_vary, is_of_visitor, says_nothing};

/// What decides what a page says. Parts are numbered from the template, which is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageGround {
    /// This part says `no-store`.
    NoStore(usize),
    /// Some part is not there yet.
    Open,
    /// This part is for some visitors only.
    Private(usize),
    /// A value or a condition read a cookie or the client's address.
    Personal,
    /// The page varies by more fields than a Vary names.
    ManyNames,
    /// This part says `no-cache`.
    NoCache(usize),
    /// Some part failed, and something else stands there.
    Failed,
    /// The template says nothing.
    Silent,
    /// The lifetime of this part ends first.
    EndsFirst(usize),
}

impl PageGround {
    /// The part that it is about.
    pub const fn part(self) -> Option<usize> {
        match self {
            Self::NoStore(part) | Self::Private(part) | Self::NoCache(part) | Self::EndsFirst(part) => {
                Some(part)
            }
            Self::Open | Self::Personal | Self::ManyNames | Self::Failed | Self::Silent => None,
        }
    }

    /// The fixed word.
    pub const fn token(self) -> &'static str {
        match self {
            Self::NoStore(_) => "no-store",
            Self::Open => "open",
            Self::Private(_) => "private",
            Self::Personal => "personal",
            Self::ManyNames => "many-names",
            Self::NoCache(_) => "no-cache",
            Self::Failed => "failed",
            Self::Silent => "silent",
            Self::EndsFirst(_) => "ends-first",
        }
    }

    /// In plain words.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoStore(_) => "It says no-store, so no cache may store the page.",
            Self::Open => {
                "A part is not there when the head is written: no other visitor may be given this page."
            }
            Self::Private(_) => "It is for some visitors only, and so is the page.",
            Self::Personal => {
                "A value or a condition read a cookie or the client's address: the page is for this visitor."
            }
            Self::ManyNames => "The page varies by more fields than a Vary names.",
            Self::NoCache(_) => "It says no-cache, so the page has to be validated before each use.",
            Self::Failed => "A part failed: caches behind larder must not keep what stands in its place.",
            Self::Silent => "The template says nothing to caches, and so does the page.",
            Self::EndsFirst(_) => "Its lifetime ends first, and that of the page with it.",
        }
    }

    /// Where the rule stands.
    pub const fn section(self) -> &'static str {
        match self {
            Self::NoStore(_) => "RFC 9111 5.2.2.5",
            Self::Open | Self::Private(_) | Self::Personal => "RFC 9111 5.2.2.7",
            Self::ManyNames => "RFC 9111 4.1",
            Self::NoCache(_) | Self::Failed => "RFC 9111 5.2.2.4",
            Self::Silent | Self::EndsFirst(_) => "RFC 9111 4.2",
        }
    }
}

/// What decides what a page says; `None` for one without parts. `template_fields` are as for
/// [`page_control`](super::page_control).
pub fn page_ground(said: &PageSaid<'_>, template_fields: &HeaderMap) -> Option<PageGround> {
    ground_of(said, template_fields, added_to_vary(said).is_none())
}

/// The same, where it is known whether the page varies by too many fields.
pub(super) fn ground_of(
    said: &PageSaid<'_>,
    template_fields: &HeaderMap,
    has_many_names: bool,
) -> Option<PageGround> {
    let template = said.parts.first()?;
    let first = |is: fn(&PartSaid) -> bool| said.parts.iter().position(is);
    let is_somebodys = || said.used_client || said.used_fields.iter().any(is_of_visitor);
    Some(if let Some(part) = first(|part| part.no_store) {
        PageGround::NoStore(part)
    } else if said.is_open {
        PageGround::Open
    } else if let Some(part) = first(|part| part.is_private) {
        PageGround::Private(part)
    } else if is_somebodys() {
        PageGround::Personal
    } else if has_many_names {
        PageGround::ManyNames
    } else if let Some(part) = first(|part| part.no_cache) {
        PageGround::NoCache(part)
    } else if said.has_failed {
        PageGround::Failed
    } else if says_nothing(template_fields) {
        PageGround::Silent
    } else {
        PageGround::EndsFirst(ends_first(template, said.parts))
    })
}

/// The part whose lifetime ends first.
fn ends_first(template: &PartSaid, parts: &[PartSaid]) -> usize {
    // To all others the template gives no lifetime, and so no part does.
    let is_for_all = template.says != LifetimeFor::SharedCaches;
    let ends = |part: &PartSaid| {
        let shared = part.left(part.shared_seconds);
        if is_for_all { shared.min(part.left(part.lifetime_seconds)) } else { shared }
    };
    let first = parts.iter().enumerate().min_by_key(|(_, part)| ends(part));
    first.map_or(0, |(part, _)| part)
}
