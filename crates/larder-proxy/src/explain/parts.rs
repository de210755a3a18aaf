//! A page of what is stored, for people: the step *Parts* of an explanation, and the page itself for `larder get` and `larder export`.
//!
//! In: the template, the request, and for each fragment what the stores have for it ([`LookedUp`]), which the caller looks up
//! when [`Parts::next`] names it. Out: an [`ExplainedPage`] or the page's bytes. The template is run
//! as for a page, with the answers that a page would have at once; where a fragment would have to be fetched, the run goes on as if a
//! good one came. Pure: nothing is looked up, fetched or counted here.

mod content;
mod page;
mod text;
mod told;
mod words;

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use larder_assemble::{
    Answer, Ask, DocumentId, IncludeFailure, PageTemplate, Program, RequestFacts, Run, RunSettings, SlotId,
    SlotKind, Step, Template,
};
use larder_cache::page::PartSaid;
use larder_http::body::Pieces;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::WallTime;

use super::assembled::{ExplainedFragment, ExplainedPage};
use crate::assemble::PartBody;
use crate::settings::FragmentSettings;
use content::{Content, ContentPiece};
pub(crate) use page::NoPage;

/// A template of which all is at hand.
#[derive(Clone)]
pub(crate) struct TemplateAtHand {
    pub(crate) program: Arc<Program>,
    pub(crate) body: Bytes,
    pub(crate) last_modified: Option<WallTime>,
    /// It is long and not in memory, so that it arrives while the page is sent.
    pub(crate) arrives: bool,
    /// Its rule takes no template with a problem.
    pub(crate) is_strict: bool,
    /// Who keeps its bytes counted, where they are a store's own.
    pub(crate) owner: Option<Arc<dyn Pieces>>,
}

/// What is known of a fragment.
pub(crate) enum LookedUp {
    /// It may not be asked for.
    Refused(IncludeFailure),
    /// What the stores have for it.
    Found(Box<FoundFragment>),
}

/// A fragment that was looked up.
pub(crate) struct FoundFragment {
    /// What is said of it, where that is wanted.
    pub(crate) told: Option<ExplainedFragment>,
    /// Why it is used although it is stale.
    pub(crate) detail: Option<&'static str>,
    pub(crate) part: FoundPart,
}

/// What a page makes of a fragment.
#[expect(clippy::large_enum_variant, reason = "there are few at a time, and for people")]
pub(crate) enum FoundPart {
    /// It goes in.
    There {
        said: PartSaid,
        /// Whether a page would have it at once.
        is_at_once: bool,
        is_empty: bool,
        /// Its content, whole, as far as it is wanted: for the page itself, or where it may become a variable.
        body: Option<PartBody>,
        template: Option<TemplateAtHand>,
    },
    /// It is stored, and no content of it goes in.
    Failing(IncludeFailure),
    /// It would have to be fetched.
    Missing,
}

/// A page while it is run.
pub(crate) struct Parts<'a> {
    run: Run,
    facts: RequestFacts<'a>,
    settings: &'a FragmentSettings,
    documents: Vec<Document>,
    content: Content,
    noted: Vec<Noted>,
    looked: Vec<LookedUp>,
    by_uri: HashMap<DocumentUri, usize, foldhash::fast::RandomState>,
    /// What each part says that goes in, and the include that it came by; the template first.
    said: Vec<(PartSaid, Option<usize>)>,
    is_open: bool,
    /// Of the first part that is stale and used.
    detail: Option<&'static str>,
    /// What is asked for, and not answered yet.
    pending: Option<Pending>,
}

/// A page with the word that Cache-Status has for it.
pub(super) struct FoundPage {
    pub(super) told: ExplainedPage,
    /// Why a part of it is used although it is stale.
    pub(super) detail: Option<&'static str>,
}

/// A fragment to look up.
pub(crate) struct WantedFragment {
    pub(crate) uri: DocumentUri,
    /// Whether the content of a 4xx or 5xx may go into the page, where the rule says so.
    pub(crate) takes_errors: bool,
}

struct Pending {
    ask: Ask,
    uri: DocumentUri,
    noted: usize,
}

/// A template that is run.
struct Document {
    template: TemplateAtHand,
    /// The include whose fragment it is.
    include: Option<usize>,
    depth: usize,
}

/// An include that was run, or something else that was refused.
struct Noted {
    slot: SlotId,
    document: DocumentId,
    /// Where it begins.
    at: u64,
    uri: Option<DocumentUri>,
    looked: Option<usize>,
    failed: Option<IncludeFailure>,
    is_alternative: bool,
}

impl<'a> Parts<'a> {
    /// Begins with the page's template and what it says.
    pub(crate) fn new(
        uri: DocumentUri,
        (template, said): (TemplateAtHand, PartSaid),
        facts: RequestFacts<'a>,
        (settings, escapes_html): (&'a FragmentSettings, bool),
    ) -> Self {
        let run_settings = RunSettings {
            depth_max: settings.depth,
            includes_max: settings.count,
            omits_failed: settings.omits_failed,
            is_silent: settings.is_silent,
            escapes_html,
        };
        let run = Run::new(PageTemplate { uri, template: template.for_run() }, run_settings);
        let is_open = template.arrives;
        Self {
            run,
            facts,
            settings,
            documents: vec![Document { template, include: None, depth: 0 }],
            content: Content::default(),
            noted: Vec::new(),
            looked: Vec::new(),
            by_uri: HashMap::default(),
            said: vec![(said, None)],
            is_open,
            detail: None,
            pending: None,
        }
    }

    /// The next fragment to look up; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<WantedFragment> {
        loop {
            match self.run.advance(&self.facts) {
                Step::Fragment(ask) => {
                    if let Some(wanted) = self.ask(ask) {
                        return Some(wanted);
                    }
                }
                Step::Refused { slot, document, at, reason } => self.refused(slot, document, at, reason),
                Step::Wait { .. } => {
                    if !self.give_captured() {
                        return None;
                    }
                }
                Step::Done => return None,
                Step::Open { slot, into, kind } => self.content.open(slot, into, kind == SlotKind::Captured),
                Step::Text { slot, document, range } => {
                    self.content.put(slot, ContentPiece::Text { document: document.index(), range });
                }
                Step::Own { slot, bytes } => self.content.put(slot, ContentPiece::Own(bytes)),
                Step::Body { slot } => self.content.put_body(slot),
                Step::Failed { slot, reason } => self.content.put(slot, ContentPiece::Failed(reason)),
                Step::Discard { slot } => self.content.discard(slot),
                Step::End { slot } => self.content.end(slot),
                Step::Release { .. } | Step::Keep { .. } => {}
            }
        }
    }

    /// What Cache-Status says of the page beside its outcome, where a part that is stale is used.
    pub(super) fn detail(&self) -> Option<&'static str> {
        self.detail
    }

    /// Takes what is known of the fragment that was named last.
    pub(crate) fn give(&mut self, looked: LookedUp) {
        let Some(Pending { ask, uri, noted }) = self.pending.take() else { return };
        let index = self.looked.len();
        self.by_uri.insert(uri, index);
        if let LookedUp::Found(found) = &looked
            && let FoundPart::There { said, .. } = &found.part
        {
            self.said.push((said.clone(), Some(noted)));
            self.detail = self.detail.or(found.detail);
        }
        self.looked.push(looked);
        self.answer(&ask, noted, index);
    }

    /// Notes an include, and answers it where the same was looked up before; else what to look up.
    fn ask(&mut self, ask: Ask) -> Option<WantedFragment> {
        let base = self.run.uri(ask.document)?;
        let target = ask.reference.target.clone();
        let uri = match &ask.reference.site {
            Some((scheme, authority)) => {
                DocumentUri { scheme: *scheme, authority: authority.clone(), target }
            }
            None => DocumentUri { target, ..base.clone() },
        };
        let noted = self.note(ask.slot, ask.document, ask.at, None);
        if let Some(noted) = self.noted.get_mut(noted) {
            noted.uri = Some(uri.clone());
        }
        match self.by_uri.get(&uri).copied() {
            Some(index) => {
                self.answer(&ask, noted, index);
                None
            }
            None => {
                let asking = self.documents.get(ask.document.index())?;
                let takes_errors = asking.template.program.language() == Language::Ssi;
                self.pending = Some(Pending { ask, uri: uri.clone(), noted });
                Some(WantedFragment { uri, takes_errors })
            }
        }
    }

    fn note(&mut self, slot: SlotId, document: DocumentId, at: u64, failed: Option<IncludeFailure>) -> usize {
        let before = self.content.notes(slot).last().and_then(|index| self.noted.get(*index));
        let is_alternative = before.is_some_and(|before| before.document == document && before.at == at);
        let index = self.noted.len();
        self.noted.push(Noted { slot, document, at, uri: None, looked: None, failed, is_alternative });
        self.content.note(slot, index);
        index
    }

    fn refused(&mut self, slot: SlotId, document: DocumentId, at: u64, reason: IncludeFailure) {
        let of_value = self.content.notes(slot).last().and_then(|index| self.noted.get_mut(*index));
        match of_value {
            // There is no room for what it brought.
            Some(noted)
                if reason == IncludeFailure::TooLarge && noted.at == at && noted.document == document =>
            {
                noted.failed = Some(reason);
            }
            _ => {
                self.note(slot, document, at, Some(reason));
            }
        }
    }

    fn answer(&mut self, ask: &Ask, noted: usize, index: usize) {
        let Some(looked) = self.looked.get(index) else { return };
        let (answer, failed) = match looked {
            LookedUp::Refused(reason) => (Answer::Failed(*reason), Some(*reason)),
            LookedUp::Found(found) => match &found.part {
                FoundPart::Failing(reason) => (Answer::Failed(*reason), Some(*reason)),
                FoundPart::Missing => {
                    self.is_open = true;
                    self.content.bring(ask.slot, Some(PartBody::default()));
                    (
                        if ask.is_captured {
                            Answer::Value(Bytes::new())
                        } else {
                            Answer::Body { is_empty: false }
                        },
                        None,
                    )
                }
                FoundPart::There { is_at_once, is_empty, body, template, .. } => {
                    self.is_open |= !is_at_once;
                    match (template, body) {
                        (Some(template), _) if !ask.as_it_is && template.is_refused() => {
                            (Answer::Failed(IncludeFailure::Invalid), Some(IncludeFailure::Invalid))
                        }
                        (Some(template), _) if !ask.as_it_is => {
                            let depth =
                                self.documents.get(ask.document.index()).map_or(0, |outer| outer.depth);
                            let answer = Answer::Template(template.for_run());
                            if ask.is_captured {
                                self.content.capture(ask.slot);
                            }
                            self.documents.push(Document {
                                template: template.clone(),
                                include: Some(noted),
                                depth: depth + 1,
                            });
                            (answer, None)
                        }
                        (_, body) if ask.is_captured => match body.as_ref().and_then(PartBody::joined) {
                            Some(value) => (Answer::Value(value), None),
                            None => {
                                (Answer::Failed(IncludeFailure::TooLarge), Some(IncludeFailure::TooLarge))
                            }
                        },
                        (_, body) => {
                            self.content.bring(ask.slot, body.as_ref().and_then(PartBody::copy));
                            (Answer::Body { is_empty: *is_empty }, None)
                        }
                    }
                }
            },
        };
        if let Some(noted) = self.noted.get_mut(noted) {
            (noted.looked, noted.failed) = (Some(index), failed);
        }
        self.run.give(ask.slot, answer);
        // What is discarded by then is not run.
        self.documents.truncate(self.run.documents());
    }

    /// Gives the content of slots that are captured and complete. Whether there was one.
    fn give_captured(&mut self) -> bool {
        let bodies: Vec<&Bytes> = self.documents.iter().map(|document| &document.template.body).collect();
        let complete = self.content.complete_captured(&bodies);
        for (slot, content) in &complete {
            let answer = match content {
                Ok(content) => Answer::Value(content.clone()),
                Err(reason) => Answer::Failed(*reason),
            };
            self.run.give(*slot, answer);
        }
        !complete.is_empty()
    }
}

impl TemplateAtHand {
    fn is_refused(&self) -> bool {
        self.is_strict && self.program.problems().is_some_and(|problems| !problems.is_empty())
    }

    fn for_run(&self) -> Template {
        Template { program: Arc::clone(&self.program), last_modified: self.last_modified }
    }
}

#[cfg(test)]
mod tests;
