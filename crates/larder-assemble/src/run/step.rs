//! What a run says, and what it is told.
//!
//! Every place of a page that is filled for itself is a *slot*: the page, each include, each attempt. A slot takes pieces in order, and
//! ends once. Steps name their slot, since several are filled at a time. A slot stands in another one where it was opened.
//!
//! | step | what it means for whoever delivers the page |
//! |---|---|
//! | [`Step::Open`] | a new slot; that of an attempt is held back |
//! | [`Step::Fragment`] | ask for the fragment of a slot, and [`give`](super::Run::give) the answer |
//! | [`Step::Release`] | the content of an attempt may go out |
//! | [`Step::Discard`] | its content is dropped, with what fills it, all slots in it and their fetches; it goes on empty, not held back |
//! | [`Step::Failed`] | the page cannot be delivered beyond this point |

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use larder_http::target::reference::{DocumentUri, Reference};
use larder_http::time::WallTime;

use crate::program::Program;
use crate::reason::IncludeFailure;

/// A place that is filled for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub(super) u32);

impl SlotId {
    /// The slot of the page itself.
    pub const PAGE: Self = Self(0);

    /// Slots are numbered in the order in which they open.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The slot of this number, for tests of those who deliver pages.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn of_index(index: u32) -> Self {
        Self(index)
    }
}

/// A document that is run: the page's template, or a fragment that is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId(pub(super) u32);

impl DocumentId {
    /// The page's template.
    pub const PAGE: Self = Self(0);

    /// Documents are numbered in the order in which their templates are given.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is special about a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// Nothing.
    Shown,
    /// Its content becomes a variable, and stands nowhere in the page.
    Captured,
    /// It is held back until it is released or discarded.
    Held,
}

/// What is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes of a document's body.
    Text {
        /// Where they go.
        slot: SlotId,
        /// Whose they are.
        document: DocumentId,
        /// Which.
        range: Range<u64>,
    },
    /// Bytes that are in no body: values and error texts.
    Own {
        /// Where they go.
        slot: SlotId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A fragment is needed.
    Fragment(Ask),
    /// The body that was given for a slot goes there.
    Body {
        /// Whose body, and where it goes.
        slot: SlotId,
    },
    /// A new slot, which stands where the pieces of another one are at this moment.
    Open {
        /// The new slot.
        slot: SlotId,
        /// Where it stands.
        into: SlotId,
        /// What is special about it.
        kind: SlotKind,
    },
    /// The attempt has succeeded.
    Release {
        /// Its slot.
        slot: SlotId,
    },
    /// The attempt has failed, or what is captured. What else stands there comes into the same slot.
    Discard {
        /// Its slot.
        slot: SlotId,
    },
    /// A slot has all of its pieces. Slots in it may still be open.
    End {
        /// Which.
        slot: SlotId,
    },
    /// The text of a block may be asked for again, also when the document has passed: whoever reads a body that is not kept
    /// keeps these bytes. At most 64 KiB each and 1 MiB for a page.
    Keep {
        /// Whose they are.
        document: DocumentId,
        /// Which.
        range: Range<u64>,
    },
    /// An include was not asked for, or something else was not done; for logs and counters only.
    Refused {
        /// The slot of the include, or what it would have stood in.
        slot: SlotId,
        /// Where the include stands.
        document: DocumentId,
        /// At which offset.
        at: u64,
        /// Why.
        reason: IncludeFailure,
    },
    /// Something failed for which the page has no other content.
    Failed {
        /// Where it is missing.
        slot: SlotId,
        /// Why.
        reason: IncludeFailure,
    },
    /// Nothing can be done before an answer is given, or before there is more of a template.
    Wait {
        /// Whether the run would go on with more of a template.
        more_template: bool,
    },
    /// All is said.
    Done,
}

/// A fragment that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Where it goes. A second one for the same slot stands in for the first, which has failed.
    pub slot: SlotId,
    /// Which document asks.
    pub document: DocumentId,
    /// At which offset of it.
    pub at: u64,
    /// What is asked for, by the document's site where it is on that one.
    pub reference: Reference,
    /// Its slot is captured, so that the answer is [`Answer::Value`], or a template.
    pub is_captured: bool,
    /// It is no template, whatever it says.
    pub as_it_is: bool,
    /// How long may be waited for it, in milliseconds, where the template says so.
    pub wait_ms_max: Option<u32>,
}

/// What became of a fragment.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A body that is good. It is with whoever delivers the page.
    Body {
        /// Whether it has no bytes.
        is_empty: bool,
    },
    /// All of the content of a slot that is captured. Where the fragment is a template, this follows the slot's end.
    Value(Bytes),
    /// It is a template itself.
    Template(Template),
    /// There is none.
    Failed(IncludeFailure),
}

/// A template that is run.
#[derive(Clone, Debug)]
pub struct Template {
    /// May still grow.
    pub program: Arc<Program>,
    /// When it was changed last, if its origin says so.
    pub last_modified: Option<WallTime>,
}

/// How a page is run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Levels of fragments within fragments.
    pub depth_max: usize,
    /// Includes of the page, on all levels.
    pub includes_max: usize,
    /// A failed include of ESI without anything else for its place is left out, and the page goes on.
    pub omits_failed: bool,
    /// No error texts in SSI.
    pub is_silent: bool,
    /// Values in ESI's `vars` are written as HTML text.
    pub escapes_html: bool,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self { depth_max: 10, includes_max: 1000, omits_failed: false, is_silent: false, escapes_html: true }
    }
}

/// The page's own template.
#[derive(Clone, Debug)]
pub struct PageTemplate {
    /// How the client asked for it.
    pub uri: DocumentUri,
    /// The template.
    pub template: Template,
}
