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
mod page;
mod page_head;
mod queue;
mod slots;
mod stream;
mod tally;
mod told;
mod whole;

pub(crate) use ask::{AskedFragment, Fragment, FragmentResult, FragmentTemplate, Fragments};
pub(crate) use body::PartBody;
pub(crate) use deliver::Begins;
pub(crate) use page::{Page, PageRequest, Sheet};
pub(crate) use page_head::{page_head_fields, page_tag};
pub(crate) use slots::KeptPages;
pub(crate) use stream::PageStream;
pub(crate) use tally::Tally;
pub(crate) use told::PageTold;
pub(crate) use whole::WholePage;

/// A body goes into a page when it is whole, or when so much of it is there.
pub(crate) const GOOD_BYTES: usize = 64 * 1024;
/// So much of a template is read ahead of what is delivered.
const TEMPLATE_AHEAD_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests;
