//! A page on its way: the run of its template, the fragments that it needs, and the pieces that came of them.
//!
//! In: a template, the request, and who knows how fragments are had. Out: the page's bytes in order. The run goes ahead of delivery, so all
//! fragments that depend on nothing are asked for at once; those that take time are tasks of their own, [`FragmentSettings::at_once`]
//! at a time, and go on while a slow client reads. A template is read ahead while fragments are awaited, and a body that passes through is
//! held only in its turn: so a page never waits for a place at an origin that it holds itself. What a page holds is bounded: fragments by their
//! [`PageRoom`], templates by their windows, and pieces of its own by how far the run goes ahead.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use larder_assemble::{
    FactsUsed, IncludeFailure, PageTemplate, Program, RequestFacts, Run, RunSettings, SlotId, SlotKind, Step,
    Template,
};
use larder_cache::page::PartSaid;
use larder_http::message::RequestHead;
use larder_http::target::reference::DocumentUri;
use larder_http::time::WallTime;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::ask::{FragmentResult, Fragments};
use super::body::PartBody;
use super::document::{At, TemplateText};
use super::entry::{Bringing, FragmentEntry};
use super::queue::{PagePiece, Queue};
use super::room::PageRoom;
use super::tag::TagInput;
use super::tally::Tally;
use super::told::PageTold;
use super::whole::WholePage;
use super::{AHEAD_BYTES, FEW, TEMPLATE_AHEAD_BYTES};
use crate::settings::FragmentSettings;

/// A response that is a template.
pub(crate) struct Sheet {
    /// Its program, which may still grow.
    pub(crate) program: Arc<Program>,
    /// When it was changed last, if its origin says so.
    pub(crate) last_modified: Option<WallTime>,
}

/// The request of a page.
pub(crate) struct PageRequest {
    /// As the page's own site and rule have it.
    pub(crate) head: RequestHead,
    /// The client, as far as trusted peers tell.
    pub(crate) client: std::net::IpAddr,
    /// The time of the page.
    pub(crate) now: WallTime,
    /// Whether fragments may be asked for that are not in memory.
    pub(crate) fetches: bool,
}

/// The run of a page's template, from its beginning.
pub(crate) fn run_of(
    head: &RequestHead,
    template: Template,
    (settings, escapes_html): (&FragmentSettings, bool),
) -> Run {
    let RequestHead { scheme, authority, target, .. } = head.clone();
    let uri = DocumentUri { scheme, authority, target };
    let settings = RunSettings {
        depth_max: settings.depth,
        includes_max: settings.count,
        omits_failed: settings.omits_failed,
        is_silent: settings.is_silent,
        escapes_html,
    };
    Run::new(PageTemplate { uri, template }, settings)
}

impl PageRequest {
    fn facts(&self) -> RequestFacts<'_> {
        RequestFacts {
            fields: &self.head.fields,
            method: &self.head.method,
            client: self.client,
            scheme: self.head.scheme,
            version: self.head.version,
            now: self.now,
        }
    }
}

/// A page.
pub(crate) struct Page {
    pub(super) request: Arc<PageRequest>,
    pub(super) settings: Arc<FragmentSettings>,
    pub(super) fragments: Box<dyn Fragments>,
    pub(super) run: Run,
    pub(super) is_done: bool,
    /// A part is not stored, although only those may be used that are.
    pub(super) lacks_part: bool,
    pub(super) queue: Queue,
    pub(super) documents: Vec<TemplateText>,
    /// What was asked for.
    pub(super) asked: HashMap<DocumentUri, FragmentEntry, foldhash::fast::RandomState>,
    pub(super) tasks: JoinSet<(DocumentUri, FragmentResult)>,
    /// Made with the first fragment that is not there at once.
    pub(super) room: Option<PageRoom>,
    /// What bodies take that are kept in `asked`, beside those of stores.
    pub(super) copies_bytes: u64,
    /// How much further its templates are read than usual, all together.
    pub(super) widened_bytes: u64,
    /// The run stops when pieces take more than this.
    pub(super) ahead_bytes_max: u64,
    /// It has stopped for that.
    pub(super) is_paused: bool,
    /// Slots whose content becomes a value once all of it is there.
    pub(super) captured: Vec<SlotId>,
    /// What each part says, the template first.
    pub(super) parts: Vec<PartSaid>,
    pub(super) detail: Option<&'static str>,
    pub(super) tally: Tally,
    /// Where the line in the log reads it.
    pub(super) told: Arc<PageTold>,
    /// Since when there is nothing to send.
    pub(super) waits_since: Option<Instant>,
    pub(super) deadline: Instant,
    /// The body that stands at the front and is asked for again.
    pub(super) again: Option<Bringing>,
    pub(super) sent_bytes: u64,
    is_open: bool,
}

impl Page {
    /// Begins a page, and runs it as far as it goes without waiting.
    pub(crate) fn new(
        fragments: Box<dyn Fragments>,
        request: Arc<PageRequest>,
        (sheet, body, said): (Sheet, PartBody, PartSaid),
        (settings, escapes_html): (Arc<FragmentSettings>, bool),
    ) -> Self {
        let Sheet { program, last_modified } = sheet;
        let template = Template { program: Arc::clone(&program), last_modified };
        let run = run_of(&request.head, template, (&settings, escapes_html));
        let mut parts = Vec::with_capacity(FEW);
        parts.push(said);
        let mut page = Self {
            run,
            room: None,
            copies_bytes: 0,
            widened_bytes: 0,
            ahead_bytes_max: AHEAD_BYTES,
            is_paused: false,
            deadline: Instant::now() + settings.page_timeout,
            request,
            settings,
            fragments,
            is_done: false,
            lacks_part: false,
            queue: Queue::default(),
            documents: vec![TemplateText::new(program, body, TEMPLATE_AHEAD_BYTES, SlotId::PAGE)],
            asked: HashMap::with_capacity_and_hasher(FEW, foldhash::fast::RandomState::default()),
            tasks: JoinSet::new(),
            captured: Vec::new(),
            parts,
            detail: None,
            tally: Tally::default(),
            told: Arc::default(),
            waits_since: None,
            again: None,
            sent_bytes: 0,
            is_open: false,
        };
        page.advance();
        page
    }

    /// What of the request was used so far.
    pub(crate) fn used(&self) -> &FactsUsed {
        self.run.used()
    }

    #[cfg(test)]
    pub(super) fn limit_size(&mut self, bytes: u64) {
        let settings = FragmentSettings { page_size: bytes, ..(*self.settings).clone() };
        self.settings = Arc::new(settings);
    }

    /// What the parts say that are known so far, the template first.
    pub(crate) fn parts(&self) -> &[PartSaid] {
        &self.parts
    }

    /// What becomes of its fragments.
    pub(crate) fn told(&self) -> &Arc<PageTold> {
        &self.told
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Its template, as it is run.
    pub(crate) fn template(&self) -> Option<Template> {
        self.run.page_template()
    }

    /// Its template's program.
    pub(crate) fn program(&self) -> Option<&Arc<Program>> {
        self.documents.first().map(TemplateText::program)
    }

    /// The template's body, where all of it is in memory and it holds no directive: then it is no template.
    pub(crate) fn plain(&self) -> Option<Vec<Bytes>> {
        let template = self.documents.first().filter(|template| template.is_whole())?;
        (!template.program().has_operations()).then(|| template.chunks().cloned().collect())
    }

    /// Whether a page of this length may be sent.
    pub(crate) fn may_be(&self, whole: &WholePage) -> bool {
        whole.length() <= self.settings.page_size
    }

    /// What a part says of itself where it is stale: the first that there is.
    pub(crate) fn detail(&self) -> Option<&'static str> {
        self.detail
    }

    /// The page, where all of it is in memory.
    pub(crate) fn whole(&mut self) -> Option<WholePage> {
        if !self.is_done || !self.documents.iter().all(TemplateText::is_whole) {
            return None;
        }
        let (mut whole, size_max) = (WholePage::for_parts(self.parts.len()), self.settings.page_size);
        let mut tag = TagInput::for_parts(self.parts.len());
        let documents = &self.documents;
        let is_there = self.queue.walk(SlotId::PAGE, &mut |piece| match piece {
            PagePiece::Text { document: index, range } => documents.get(*index).is_some_and(|document| {
                tag.text(*index, range, || document.digest());
                let mut range = range.clone();
                while !range.is_empty() {
                    let At::Bytes(bytes) = document.at(&range) else { return false };
                    range.start += bytes.len() as u64;
                    whole.push(bytes);
                }
                whole.length() <= size_max
            }),
            PagePiece::Own(bytes) => {
                tag.value(bytes);
                whole.push(bytes.clone());
                whole.length() <= size_max
            }
            PagePiece::Body(body) => match body.copy().and_then(PartBody::into_whole) {
                Some((chunks, owner)) => {
                    tag.fragment(body.digest());
                    chunks.into_iter().for_each(|chunk| whole.push(chunk));
                    whole.hold(owner);
                    whole.length() <= size_max
                }
                None => false,
            },
            PagePiece::Again { .. } | PagePiece::Slot(_) | PagePiece::Failed(_) => false,
        });
        // One that is too long is known to be, and what is missing of it does not matter.
        if !is_there && whole.length() <= size_max {
            return None;
        }
        documents.iter().for_each(|document| whole.hold(document.owner().cloned()));
        whole.set_tag(tag.finish());
        Some(whole)
    }

    /// It is sent from now on, whatever of it is there.
    pub(super) fn open(&mut self) {
        self.is_open = true;
        self.fragments.opened();
    }

    /// The page was cut for this reason.
    pub(crate) fn cut(&self, reason: IncludeFailure) {
        self.fragments.cut(reason);
    }

    /// Runs as far as it goes, and as far ahead of delivery as it may be.
    pub(super) fn advance(&mut self) {
        loop {
            self.is_paused = self.queue.held_bytes() > self.ahead_bytes_max;
            if self.is_paused {
                self.told.note(&self.tally);
                return;
            }
            let step = self.run.advance(&self.request.facts());
            match step {
                Step::Wait { .. } => {
                    if !self.give_captured() {
                        self.told.note(&self.tally);
                        return;
                    }
                }
                Step::Done => {
                    self.is_done = true;
                    // Nothing will be asked for again.
                    self.asked = HashMap::default();
                    self.copies_bytes = 0;
                    self.told.note(&self.tally);
                    return;
                }
                step => self.step(step),
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Text { slot, document, range } => {
                if !range.is_empty() {
                    self.queue.put(slot, PagePiece::Text { document: document.index(), range });
                }
            }
            Step::Own { slot, bytes } => self.queue.put(slot, PagePiece::Own(bytes)),
            Step::Fragment(ask) => self.ask(ask),
            Step::Body { slot } => self.queue.put_body(slot),
            Step::Open { slot, into, kind } => {
                self.queue.open(slot, into, kind);
                if kind == SlotKind::Captured {
                    self.captured.push(slot);
                }
            }
            Step::Release { slot } => self.queue.release(slot),
            Step::Discard { slot } => {
                self.queue.discard(slot);
                let queue = &self.queue;
                let is_unwanted = |filled: SlotId| filled == slot || !queue.is_alive(filled);
                let unwanted = self.documents.iter_mut().filter(|document| is_unwanted(document.slot()));
                unwanted.for_each(TemplateText::give_up);
                self.give_up_unwanted();
            }
            Step::End { slot } => self.queue.end(slot),
            Step::Keep { document, range } => {
                if let Some(document) = self.documents.get_mut(document.index()) {
                    document.keep(range);
                }
            }
            Step::Refused { document, reason, .. } => {
                self.note_failure(self.run.uri(document).cloned(), reason)
            }
            Step::Failed { slot, reason } => self.queue.put(slot, PagePiece::Failed(reason)),
            Step::Wait { .. } | Step::Done => {}
        }
    }

    pub(super) fn note_failure(&mut self, uri: Option<DocumentUri>, reason: IncludeFailure) {
        self.tally.failed += 1;
        self.fragments.failed(uri.as_ref(), reason);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.goes_on();
        self.told.note(&self.tally);
        self.fragments.ended(&self.tally, self.is_open);
    }
}
