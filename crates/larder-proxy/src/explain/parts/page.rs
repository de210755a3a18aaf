//! The page itself, where all of its parts are at hand.
//!
//! In: a run that has come to its end. Out: the page in order, as a client would get it of these parts, or why there is none; and what it
//! would say to caches behind larder. The bytes of parts are shared, not copied.

use std::cell::OnceCell;

use http::HeaderMap;
use larder_assemble::{IncludeFailure, Outline, SlotId};
use larder_cache::page::{PageControl, PageGround, PageSaid, page_control, page_ground};
use larder_http::body::Body;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;

use super::content::{Beginning, ContentPiece};
use super::{FoundPart, LookedUp, Noted, Parts};
use crate::assemble::{PartBody, TagInput, WholePage};

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPage {
    /// A part is not there.
    Missing(Option<DocumentUri>),
    /// A part fails, and nothing stands in its place.
    Failed(IncludeFailure),
    /// It is longer than a page may be.
    TooLarge,
}

impl Parts<'_> {
    /// Whether there is something to put together: else the template is sent as it is.
    pub(crate) fn has_operations(&self) -> bool {
        self.documents.first().is_some_and(|document| document.template.program.has_operations())
    }

    /// Whether its template has a problem.
    pub(crate) fn has_problems(&self) -> bool {
        let problems = self.documents.first().and_then(|document| document.template.program.problems());
        problems.is_some_and(|problems| !problems.is_empty())
    }

    /// The page, of at most so many bytes.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn page(&self, bytes_max: u64) -> Result<WholePage, NoPage> {
        let missing = self.noted.iter().find(|noted| self.is_missing(noted));
        if let Some(missing) = missing {
            return Err(NoPage::Missing(missing.uri.clone()));
        }
        if let Beginning::Failed(reason) | Beginning::Cut(reason) = self.content.beginning() {
            return Err(NoPage::Failed(reason));
        }
        let (mut page, mut tag) = (WholePage::default(), TagInput::default());
        let is_whole = self
            .content
            .walk(SlotId::PAGE, |piece| self.put(piece, (&mut page, &mut tag)) && page.length() <= bytes_max);
        page.set_tag(tag.finish());
        self.documents.iter().for_each(|document| page.hold(document.template.owner.clone()));
        match is_whole {
            _ if page.length() > bytes_max => Err(NoPage::TooLarge),
            true => Ok(page),
            false => Err(NoPage::Missing(None)),
        }
    }

    /// Puts a piece at the end of the page; whether it is there.
    fn put(&self, piece: &ContentPiece, (page, tag): (&mut WholePage, &mut TagInput)) -> bool {
        match piece {
            ContentPiece::Text { document, range } => {
                let offset = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
                let within = offset(range.start)..offset(range.end);
                let body = self.documents.get(*document).map(|document| &document.template.body);
                let Some(body) = body.filter(|body| body.get(within.clone()).is_some()) else { return false };
                tag.text(*document, range, || PartBody::new(Body::Full(body.clone())).digest());
                page.push(body.slice(within));
            }
            ContentPiece::Own(bytes) => {
                tag.value(bytes);
                page.push(bytes.clone());
            }
            ContentPiece::Body(body) => {
                let whole = body.as_ref().and_then(PartBody::copy).and_then(PartBody::into_whole);
                let Some((chunks, owner)) = whole else { return false };
                tag.fragment(body.as_ref().and_then(PartBody::digest));
                chunks.into_iter().for_each(|chunk| page.push(chunk));
                page.hold(owner);
            }
            ContentPiece::Slot(_) => {}
            ContentPiece::Failed(_) => return false,
        }
        true
    }

    /// Whether a fragment that goes into the page is not there.
    fn is_missing(&self, noted: &Noted) -> bool {
        let looked = noted.looked.and_then(|looked| self.looked.get(looked));
        let is_missing =
            matches!(looked, Some(LookedUp::Found(found)) if matches!(found.part, FoundPart::Missing));
        is_missing && !self.content.is_gone(noted.slot)
    }

    /// Whether SSI's error text stands in the place of a fragment, since the template names nothing else for it.
    pub(crate) fn has_error_text(&self) -> bool {
        // Of templates in which something failed: an outline looks at every operation.
        let outlines: Vec<OnceCell<Outline<'_>>> = self.documents.iter().map(|_| OnceCell::new()).collect();
        self.noted.iter().any(|noted| {
            let index = noted.document.index();
            if noted.failed.is_none() || self.content.is_gone(noted.slot) || self.settings.is_silent {
                return false;
            }
            let Some((document, outline)) = self.documents.get(index).zip(outlines.get(index)) else {
                return false;
            };
            let program = &document.template.program;
            let outline = outline.get_or_init(|| program.outline());
            program.language() == Language::Ssi
                && outline.include(noted.at).is_none_or(|include| {
                    // An alternative is asked for, and noted by itself.
                    let has_alternative = include.alternative().is_some() && !noted.is_alternative;
                    !has_alternative && include.stub().is_none() && include.variable().is_none()
                })
        })
    }

    /// What the page says to caches behind larder, and what decides that. `template_fields` are those of the template's response; a
    /// page that `is_open` is sent before all of it is there.
    pub(crate) fn control(
        &self,
        template_fields: &HeaderMap,
        is_open: bool,
    ) -> (PageControl, Option<PageGround>) {
        let parts: Vec<_> = self.said.iter().map(|(said, _)| said.clone()).collect();
        let used = self.run.used();
        let said = PageSaid {
            parts: &parts,
            is_open,
            has_failed: self.noted.iter().any(|noted| noted.failed.is_some()),
            used_fields: &used.fields,
            used_client: used.client,
        };
        (page_control(&said, template_fields), page_ground(&said, template_fields))
    }
}
