//! Includes: what is asked for, what becomes of the answers, and what stands in for a failure.
//!
//! In ESI that is `alt`, then nothing with `onerror="continue"`, then the `except` of the innermost attempt around it, also of one
//! around the document. In SSI it is `onerror`, then the block of `stub`, then the error text.

use bytes::Bytes;
use larder_http::target::reference::{DocumentUri, Reference};
use larder_http::template::Language;

use super::scope::Scope;
use super::slots::{Included, Role, error_text};
use super::step::{Ask, DocumentId, SlotId, SlotKind, Step, Template};
use super::thread::{End, Thread};
use super::{Document, Run};
use crate::program::{Include, Op};
use crate::reason::IncludeFailure;
use crate::value::Value;

impl Run {
    /// Opens the slot of an include and asks for it. A thread that waits for it has been put back before.
    pub(super) fn include(&mut self, included: Included, source: Result<Reference, IncludeFailure>) {
        let (into, attempt) = (included.into, included.attempt);
        let slot = self.slots.open(into, Role::Include(Box::new(included)));
        let kind = if self.is_captured(slot) { SlotKind::Captured } else { SlotKind::Shown };
        self.steps.push_back(Step::Open { slot, into, kind });
        if let Some(attempted) = attempt.and_then(|attempt| self.slots.attempted(attempt)) {
            attempted.open += 1;
        }
        if let Err(reason) = source.and_then(|reference| self.ask(slot, reference)) {
            self.refused(slot, reason);
            self.failed(slot, reason);
        }
    }

    /// Asks for `reference`, unless a limit keeps it.
    fn ask(&mut self, slot: SlotId, reference: Reference) -> Result<(), IncludeFailure> {
        let Some(included) = self.slots.included(slot) else { return Ok(()) };
        let (document, operation, depth) = (included.document, included.operation, included.depth);
        let Some(asking) = self.documents.get(document.index()) else { return Ok(()) };
        let uri = match &reference.site {
            Some((scheme, authority)) if *authority != asking.uri.authority => DocumentUri {
                scheme: *scheme,
                authority: authority.clone(),
                target: reference.target.clone(),
            },
            _ => DocumentUri { target: reference.target.clone(), ..asking.uri.clone() },
        };
        let site = reference.site.filter(|(_, authority)| *authority != asking.uri.authority);
        if depth >= self.settings.depth_max {
            return Err(IncludeFailure::Depth);
        }
        if self.is_among_ancestors(document, &uri) {
            return Err(IncludeFailure::Loop);
        }
        if !self.budget.include() {
            return Err(IncludeFailure::Count);
        }
        let at = self.offset_of(document, operation);
        let Some(include) = self.include_of(document, operation) else { return Ok(()) };
        let ask = Ask {
            slot,
            document,
            at,
            reference: Reference { site, target: uri.target.clone() },
            is_captured: include.set.is_some(),
            as_it_is: include.as_it_is,
            wait_ms_max: include.wait_ms_max,
        };
        if let Some(included) = self.slots.included(slot) {
            included.uri = Some(uri);
            included.is_awaited = true;
            self.awaited += 1;
            self.steps.push_back(Step::Fragment(ask));
        }
        Ok(())
    }

    fn is_among_ancestors(&self, document: DocumentId, uri: &DocumentUri) -> bool {
        let mut next = Some(document);
        while let Some(document) = next.and_then(|id| self.document(id)) {
            if document.uri.authority == uri.authority && document.uri.target == uri.target {
                return true;
            }
            next = document.parent;
        }
        false
    }

    fn include_of(&self, document: DocumentId, operation: usize) -> Option<&Include> {
        match &self.document(document)?.program.operation(operation)?.op {
            Op::Include(include) => Some(include),
            _ => None,
        }
    }

    fn refused(&mut self, slot: SlotId, reason: IncludeFailure) {
        let Some(included) = self.slots.included(slot) else { return };
        let (document, operation) = (included.document, included.operation);
        let at = self.offset_of(document, operation);
        self.steps.push_back(Step::Refused { slot, document, at, reason });
    }

    fn offset_of(&self, document: DocumentId, operation: usize) -> u64 {
        let at = self.document(document).and_then(|document| document.program.operation(operation));
        at.map_or(0, |operation| operation.at.start)
    }

    pub(super) fn is_captured(&mut self, slot: SlotId) -> bool {
        let Some(included) = self.slots.included(slot) else { return false };
        let (document, operation) = (included.document, included.operation);
        self.include_of(document, operation).is_some_and(|include| include.set.is_some())
    }

    /// An answer has come, or is not awaited any more.
    pub(super) fn settle_answer(&mut self, slot: SlotId) {
        if let Some(included) = self.slots.included(slot)
            && std::mem::take(&mut included.is_awaited)
        {
            self.awaited -= 1;
        }
    }

    /// A body is good, and nobody needs its bytes here.
    pub(super) fn body(&mut self, slot: SlotId, is_empty: bool) {
        if is_empty && self.run_stub(slot) {
            return;
        }
        if !is_empty {
            self.steps.push_back(Step::Body { slot });
        }
        self.filled(slot, None);
    }

    /// All of what was captured.
    pub(super) fn captured(&mut self, slot: SlotId, bytes: Bytes) {
        let Some(included) = self.slots.included(slot) else { return };
        let (document, operation, waiter) = (included.document, included.operation, included.waiter);
        let scope_back = included.scope_back.take();
        let fits = self.budget.keep(bytes.len());
        if !fits {
            self.refused(slot, IncludeFailure::TooLarge);
        }
        let name = self.include_of(document, operation).and_then(|include| include.set.clone());
        let waiting = waiter.and_then(|waiter| self.threads.get_mut(waiter)).and_then(Option::as_mut);
        if let Some((thread, name)) = waiting.zip(name) {
            if let Some(scope) = scope_back {
                thread.scope = scope;
            }
            // A copy, so that the variable does not keep the buffer of the fetch.
            let bytes = if fits { Bytes::copy_from_slice(&bytes) } else { Bytes::new() };
            thread.scope.set_value(&name, Value::foreign(bytes));
        }
        self.decided(slot);
    }

    /// The fragment is a template.
    pub(super) fn template(&mut self, slot: SlotId, template: Template, is_captured: bool) {
        if !is_captured {
            self.settle_answer(slot);
        }
        let Some(included) = self.slots.included(slot) else { return };
        let Some(uri) = included.uri.take() else { return };
        let (parent, depth) = (included.document, included.depth + 1);
        let (attempt, scope) = (included.attempt, included.scope.clone());
        let both_ssi = self.language(parent) == Language::Ssi && template.program.language() == Language::Ssi;
        let document = DocumentId(u32::try_from(self.documents.len()).unwrap_or(u32::MAX));
        let Template { program, last_modified } = template;
        let parent = Some(parent);
        let (is_broken, has_ended) = (false, false);
        self.documents.push(Document { program, uri, last_modified, parent, slot, is_broken, has_ended });
        let scope = if both_ssi { scope } else { Scope::default() };
        self.begin(Thread::of_document(document, depth, slot, attempt, scope));
    }

    /// There is no fragment: something else stands there.
    pub(super) fn failed(&mut self, slot: SlotId, reason: IncludeFailure) {
        let Some(included) = self.slots.included(slot) else { return };
        let (document, operation, attempt) = (included.document, included.operation, included.attempt);
        if let Some(otherwise) = included.otherwise.take() {
            match otherwise.and_then(|reference| self.ask(slot, reference)) {
                Ok(()) => return,
                Err(reason) => self.refused(slot, reason),
            }
        }
        if self.language(document) == Language::Esi {
            let may_be_missing =
                self.include_of(document, operation).is_some_and(|include| include.may_be_missing);
            if may_be_missing {
                return self.filled(slot, None);
            }
            return match attempt {
                Some(attempt) => self.fail_attempt(attempt, reason),
                None => {
                    self.miss(slot, reason);
                    self.filled(slot, None);
                }
            };
        }
        if self.is_captured(slot) {
            return self.captured(slot, Bytes::new());
        }
        if self.run_stub(slot) {
            return;
        }
        let text = self
            .slots
            .included(slot)
            .and_then(|included| error_text(&included.words, self.settings.is_silent));
        if let Some(bytes) = text {
            self.steps.push_back(Step::Own { slot, bytes });
        }
        self.filled(slot, None);
    }

    /// Nothing stands in for what failed in `slot`.
    pub(super) fn miss(&mut self, slot: SlotId, reason: IncludeFailure) {
        if !self.settings.omits_failed {
            self.steps.push_back(Step::Failed { slot, reason });
        }
    }

    /// Runs the block that stands in; false where there is none.
    fn run_stub(&mut self, slot: SlotId) -> bool {
        let Some(included) = self.slots.included(slot) else { return false };
        let (document, operation, attempt) = (included.document, included.operation, included.attempt);
        let (scope, words, depth) = (included.scope.clone(), included.words.clone(), included.depth);
        let Some(name) = self.include_of(document, operation).and_then(|include| include.stub.clone()) else {
            return false;
        };
        let Some(block) = scope.block(&name) else { return false };
        if depth >= self.settings.depth_max {
            // A block may stand in for an include of its own.
            self.refused(slot, IncludeFailure::Depth);
            return false;
        }
        if !self.budget.stand_in() {
            self.refused(slot, IncludeFailure::Count);
            return false;
        }
        let mut thread = Thread::of_document(block.document, depth + 1, slot, attempt, scope);
        (thread.operation, thread.cursor) = (block.operation, block.offset);
        (thread.words, thread.end) = (words, End::Block);
        self.begin(thread);
        true
    }

    /// A slot has all of its pieces. `scope` is what its document saw at its end.
    pub(super) fn filled(&mut self, slot: SlotId, scope: Option<Scope>) {
        self.steps.push_back(Step::End { slot });
        let Some(included) = self.slots.included(slot) else { return };
        if included.is_awaited {
            // It is captured: its content comes when all slots in it are filled.
            included.scope_back = scope;
            return;
        }
        let waiter = included.waiter.and_then(|waiter| self.threads.get_mut(waiter)).and_then(Option::as_mut);
        if let Some((thread, scope)) = waiter.zip(scope) {
            thread.scope = scope;
        }
        self.decided(slot);
    }

    /// Whoever waits for an include goes on.
    fn decided(&mut self, slot: SlotId) {
        let Some(included) = self.slots.included(slot) else { return };
        let (waiter, attempt) = (included.waiter.take(), included.attempt.take());
        self.ready.extend(waiter);
        if let Some(attempt) = attempt {
            self.decided_within(attempt);
        }
    }
}
