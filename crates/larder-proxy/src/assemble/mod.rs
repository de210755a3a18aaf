//! Pages that are put together: from a template on its way to a client to the bytes that the client gets.
//!
//! In: a [`Sheet`], which is a response that is a template, and [`Fragments`], who knows how a fragment is had. Out: the pieces of the page
//! in order, at once where all parts are in memory, else as a stream. The language is run by `larder-assemble`; here
//! are the bodies that its steps speak of, the fragments that are on their way, and the order of all that.
//! Deliberately absent: which responses are templates (larder-cache), how a request for a fragment is served (`serve`), and what the
//! head of the page says (`serve`, and `larder_cache::page`).

mod ask;
mod asking;
mod body;
mod capture;
mod deliver;
mod document;
mod entry;
mod holding;
mod page;
mod page_head;
mod queue;
mod room;
mod slots;
mod stream;
mod tag;
mod tally;
mod told;
mod whole;

pub(crate) use ask::{AskedFragment, Fragment, FragmentResult, FragmentTemplate, Fragments, NoFragment};
pub(crate) use body::PartBody;
pub(crate) use deliver::Begins;
pub(crate) use page::{Page, PageRequest, Sheet, run_of};
pub(crate) use page_head::page_head_fields;
pub(crate) use slots::{AnyPage, KeptPages, PAGES_MAX};
pub(crate) use stream::PageStream;
pub(crate) use tag::TagInput;
pub(crate) use tally::Tally;
pub(crate) use told::PageTold;
pub(crate) use whole::WholePage;

/// A body goes into a page when it is whole, or when so much of it is there.
pub(crate) const GOOD_BYTES: usize = 64 * 1024;
/// Room that is made beforehand, for as many fragments as most pages have.
const FEW: usize = 16;
/// So much of a template is read ahead of what is delivered.
const TEMPLATE_AHEAD_BYTES: u64 = 1 << 20;
/// So much more may be read of all templates of a page together, where nothing else moves the page on.
const WIDENED_BYTES_MAX: u64 = 7 << 20;
/// Pieces that are this page's own may take so much before they are sent: values, lists of pieces, bodies that were decoded.
const AHEAD_BYTES: u64 = 1 << 20;
/// The same where nothing of the page can be sent before it has run further.
const AHEAD_BYTES_MAX: u64 = 8 << 20;
/// Bodies that are kept for further includes of the same URL, beside those that a store keeps.
const COPIES_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests;
