//! A page that is being run: a state machine without I/O, without a clock, and without the text of any body.
//!
//! In: a compiled template, the facts of a request, and answers for the fragments that are asked for. Out: [`Step`]s. It runs ahead of
//! delivery as far as templates are there, and stops only at an include that is waited for: so all others are known at once.
//! Steps of several slots come in any order, but what a slot gets does not depend on the order of the answers. Scope,
//! fallbacks, attempts, limits and budgets are in here. Deliberately absent: queues, fetches and their time limits.

mod attempt;
mod broken;
mod budget;
mod evaluate;
mod execute;
mod include;
mod scope;
mod slots;
mod step;
mod thread;

use std::collections::VecDeque;
use std::sync::Arc;

use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::WallTime;

use crate::facts::{FactsUsed, RequestFacts};
use crate::program::Program;
use crate::reason::IncludeFailure;
use budget::Budget;
use scope::Scope;
use slots::Slots;
pub use step::{Answer, Ask, DocumentId, PageTemplate, RunSettings, SlotId, SlotKind, Step, Template};
use thread::{Thread, ThreadId};

/// One page.
#[derive(Debug)]
pub struct Run {
    settings: RunSettings,
    budget: Budget,
    used: FactsUsed,
    documents: Vec<Document>,
    slots: Slots,
    /// Threads that do not run at this moment. One that has ended is gone.
    threads: Vec<Option<Box<Thread>>>,
    ready: VecDeque<ThreadId>,
    /// Threads at the end of what is known of their template.
    stalled: Vec<ThreadId>,
    /// Threads whose attempt failed while they ran.
    unwound: Vec<ThreadId>,
    /// Answers that are not given yet.
    awaited: usize,
    steps: VecDeque<Step>,
}

#[derive(Debug)]
struct Document {
    program: Arc<Program>,
    uri: DocumentUri,
    last_modified: Option<WallTime>,
    parent: Option<DocumentId>,
    /// What it fills.
    slot: SlotId,
    /// No more of it will come.
    is_broken: bool,
    has_ended: bool,
}

impl Run {
    /// Begins a page.
    pub fn new(page: PageTemplate, settings: RunSettings) -> Self {
        let document = Document {
            program: page.template.program,
            uri: page.uri,
            last_modified: page.template.last_modified,
            parent: None,
            slot: SlotId::PAGE,
            is_broken: false,
            has_ended: false,
        };
        let thread = Thread::of_document(DocumentId::PAGE, 0, SlotId::PAGE, None, Scope::default());
        Self {
            budget: Budget::new(settings.includes_max),
            settings,
            used: FactsUsed::default(),
            documents: vec![document],
            slots: Slots::new(),
            threads: vec![Some(Box::new(thread))],
            ready: VecDeque::from([0]),
            stalled: Vec::new(),
            unwound: Vec::new(),
            awaited: 0,
            steps: VecDeque::new(),
        }
    }

    /// The next step. After [`Step::Wait`] it is asked for again when an answer was given, or a template has grown or broken off.
    pub fn advance(&mut self, facts: &RequestFacts<'_>) -> Step {
        let mut were_stalled_asked = false;
        loop {
            if let Some(step) = self.steps.pop_front() {
                return step;
            }
            let Some(id) = self.ready.pop_front() else {
                if self.stalled.is_empty() || were_stalled_asked {
                    return match (self.awaited, self.stalled.is_empty()) {
                        (0, true) => Step::Done,
                        (_, is_complete) => Step::Wait { more_template: !is_complete },
                    };
                }
                were_stalled_asked = true;
                self.ready.extend(self.stalled.drain(..));
                continue;
            };
            if let Some(thread) = self.threads.get_mut(id).and_then(Option::take) {
                self.go(id, thread, facts);
            }
        }
    }

    /// Gives what was asked for in `slot`. What was discarded meanwhile is ignored, and so is a second answer.
    pub fn give(&mut self, slot: SlotId, answer: Answer) {
        let Some(included) = self.slots.included(slot) else { return };
        if !included.is_awaited {
            return;
        }
        let is_captured = self.is_captured(slot);
        match answer {
            Answer::Failed(reason) if is_captured => self.lose_captured(slot, reason),
            Answer::Failed(reason) => {
                self.settle_answer(slot);
                self.failed(slot, reason);
            }
            Answer::Body { .. } if is_captured => self.lose_captured(slot, IncludeFailure::TooLarge),
            Answer::Body { is_empty } => {
                self.settle_answer(slot);
                self.body(slot, is_empty);
            }
            Answer::Value(bytes) => {
                self.settle_answer(slot);
                self.captured(slot, bytes);
            }
            Answer::Template(template) => self.template(slot, template, is_captured),
        }
    }

    /// What of the request was used so far.
    pub fn used(&self) -> &FactsUsed {
        &self.used
    }

    /// The URI of a document.
    pub fn uri(&self, document: DocumentId) -> Option<&DocumentUri> {
        self.documents.get(document.index()).map(|document| &document.uri)
    }

    /// The URI of what is asked for.
    pub fn uri_of(&self, ask: &Ask) -> Option<DocumentUri> {
        let base = self.uri(ask.document)?;
        let target = ask.reference.target.clone();
        Some(match &ask.reference.site {
            Some((scheme, authority)) => {
                DocumentUri { scheme: *scheme, authority: authority.clone(), target }
            }
            None => DocumentUri { target, ..base.clone() },
        })
    }

    /// The template of the page.
    pub fn page_template(&self) -> Option<Template> {
        let page = self.document(DocumentId::PAGE)?;
        Some(Template { program: Arc::clone(&page.program), last_modified: page.last_modified })
    }

    /// How many documents are run: the page's template, and fragments that are templates.
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    fn document(&self, document: DocumentId) -> Option<&Document> {
        self.documents.get(document.index())
    }

    fn language(&self, document: DocumentId) -> Language {
        self.document(document).map_or(Language::Ssi, |document| document.program.language())
    }

    fn begin(&mut self, thread: Thread) {
        self.ready.push_back(self.threads.len());
        self.threads.push(Some(Box::new(thread)));
    }
}

#[cfg(test)]
mod tests;
