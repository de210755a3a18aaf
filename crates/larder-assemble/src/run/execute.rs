//! What each operation does.
//!
//! In: a thread that may go on. Out: steps, and the thread put back where it belongs: ready, stalled at the end of what is known, waiting
//! in an include, or gone. It goes on until there is a step, so that a page is never further ahead than it is asked to be.

use bytes::Bytes;
use larder_http::target::reference::Reference;
use larder_http::template::Language;

use super::Run;
use super::evaluate::Evaluator;
use super::scope::BlockAt;
use super::slots::{Included, error_text};
use super::step::Step;
use super::thread::{End, Level, Thread, ThreadId, Until};
use crate::composed::Lookup;
use crate::escape;
use crate::facts::{Asker, RequestFacts};
use crate::name::{Variable, esi};
use crate::program::{Echo, Encoding, Include, Op, Operation, Program, Set, Test};
use crate::reason::IncludeFailure;
use crate::value::Value;

/// What becomes of a thread after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Next,
    Ended,
}

impl Run {
    /// Runs a thread up to its next step.
    pub(super) fn go(&mut self, id: ThreadId, mut thread: Box<Thread>, facts: &RequestFacts<'_>) {
        let Some(program) = self.document(thread.document).map(|document| document.program.clone()) else {
            return;
        };
        loop {
            if self.unwound.contains(&id) {
                self.unwound.retain(|unwound| *unwound != id);
                thread.is_unwound = true;
            }
            if thread.is_unwound {
                self.unwind(&mut thread);
            }
            if self.slots.is_dead(thread.slot) {
                return;
            }
            if !self.steps.is_empty() {
                self.put_back(id, thread);
                return self.ready.push_front(id);
            }
            // In this order: text up to `known` is known not to run past an operation that is not there yet.
            let is_complete = program.is_complete();
            let known = program.compiled_bytes();
            let Some(operation) = program.operation(thread.operation) else {
                self.text(&mut thread, known);
                if is_complete {
                    return self.end(&mut thread);
                }
                if self.document(thread.document).is_some_and(|document| document.is_broken) {
                    return self.break_off(&mut thread);
                }
                self.put_back(id, thread);
                return self.stalled.push(id);
            };
            self.text(&mut thread, operation.at.start);
            if !self.budget.spend(1) {
                return self.exhausted(&mut thread);
            }
            thread.operation += 1;
            thread.cursor = operation.at.end;
            let after = match (thread.skip, &operation.op) {
                (Some(_), _) => self.skipped(&mut thread, operation, facts),
                (None, Op::Include(include)) => {
                    let Some((included, source)) = self.included(id, &mut thread, &program, include, facts)
                    else {
                        return;
                    };
                    if include.waits {
                        self.put_back(id, thread);
                        return self.include(included, source);
                    }
                    self.include(included, source);
                    After::Next
                }
                (None, op) => self.execute(id, &mut thread, op, facts),
            };
            match after {
                After::Next => {}
                After::Ended => return self.end(&mut thread),
            }
        }
    }

    fn put_back(&mut self, id: ThreadId, thread: Box<Thread>) {
        if let Some(place) = self.threads.get_mut(id) {
            *place = Some(thread);
        }
    }

    /// Text between two operations.
    fn text(&mut self, thread: &mut Thread, until: u64) {
        if thread.skip.is_none() && thread.cursor < until {
            let range = thread.cursor..until;
            self.steps.push_back(Step::Text { slot: thread.slot, document: thread.document, range });
        }
        thread.cursor = thread.cursor.max(until);
    }

    /// The page has done all that it may: its documents end where they are.
    fn exhausted(&mut self, thread: &mut Thread) {
        self.steps.push_back(Step::Refused {
            slot: thread.slot,
            document: thread.document,
            at: thread.cursor,
            reason: IncludeFailure::Budget,
        });
        match self.language(thread.document) {
            Language::Ssi => self.error(thread),
            Language::Esi => self.miss(thread.slot, IncludeFailure::Budget),
        }
        self.end(thread);
    }

    /// A thread has come to its end.
    pub(super) fn end(&mut self, thread: &mut Thread) {
        while let Some(level) = thread.levels.pop() {
            if let Level::Try(level) = level {
                self.end_try(thread, *level);
            }
        }
        if thread.end == End::Document
            && let Some(document) = self.documents.get_mut(thread.document.index())
        {
            document.has_ended = true;
        }
        match thread.end {
            End::Document | End::Block => {
                let is_ssi = self.language(thread.document) == Language::Ssi;
                self.filled(thread.slot, is_ssi.then(|| std::mem::take(&mut thread.scope)));
            }
            End::Except => self.close_attempt(thread.slot),
        }
    }

    fn error(&mut self, thread: &Thread) {
        if let Some(bytes) = error_text(&thread.words, self.settings.is_silent) {
            self.steps.push_back(Step::Own { slot: thread.slot, bytes });
        }
    }

    fn own(&mut self, thread: &Thread, bytes: Bytes) {
        if !bytes.is_empty() {
            self.steps.push_back(Step::Own { slot: thread.slot, bytes });
        }
    }

    /// An include, and what it asks for on this page.
    fn included(
        &mut self,
        id: ThreadId,
        thread: &mut Thread,
        program: &Program,
        include: &Include,
        facts: &RequestFacts<'_>,
    ) -> Option<(Included, Result<Reference, IncludeFailure>)> {
        let mut evaluator = self.evaluator(thread, facts)?;
        let source = include.source.resolve(program.uri(), &mut evaluator);
        let otherwise =
            include.otherwise.as_ref().map(|otherwise| otherwise.resolve(program.uri(), &mut evaluator));
        let included = Included {
            into: thread.slot,
            document: thread.document,
            operation: thread.operation - 1,
            depth: thread.depth,
            uri: None,
            otherwise,
            is_awaited: false,
            waiter: include.waits.then_some(id),
            attempt: thread.attempt,
            scope: thread.scope.clone(),
            words: thread.words.clone(),
            scope_back: None,
        };
        Some((included, source))
    }

    fn execute(&mut self, id: ThreadId, thread: &mut Thread, op: &Op, facts: &RequestFacts<'_>) -> After {
        match op {
            // An include is done by the caller, since its thread may wait for it.
            Op::Skip | Op::Include(_) => {}
            Op::Error => self.error(thread),
            Op::Echo(echo) => self.echo(thread, echo, facts),
            Op::Variable(name) => self.variable(thread, name, facts),
            Op::Set(set) => self.set(thread, set, facts),
            Op::If(test) => {
                thread.levels.push(Level::If);
                if !self.holds(thread, test, facts) {
                    thread.skip(Until::Branch);
                }
            }
            Op::ElseIf(_) | Op::Else => thread.skip(Until::LevelEnd),
            Op::Try => self.begin_attempt(id, thread),
            Op::Except => match thread.levels.last() {
                Some(Level::Try(_)) => self.note_except(thread),
                _ => thread.skip(Until::LevelEnd),
            },
            Op::Block(name) => begin_block(thread, name),
            Op::End => return self.end_of_level(thread),
            Op::Config(config) => {
                let words = &mut thread.words;
                let set = |place: &mut Bytes, text: &Option<Bytes>| {
                    text.iter().for_each(|text| *place = text.clone())
                };
                set(&mut words.error_text, &config.error_text);
                set(&mut words.missing_text, &config.missing_text);
                set(&mut words.date_format, &config.date_format);
            }
        }
        After::Next
    }

    fn end_of_level(&mut self, thread: &mut Thread) -> After {
        match thread.levels.pop() {
            Some(Level::If) => After::Next,
            Some(Level::Try(level)) => {
                self.end_try(thread, *level);
                After::Next
            }
            // A block, or an `except`, that runs for itself.
            None => After::Ended,
        }
    }

    /// An operation in what is skipped.
    fn skipped(&mut self, thread: &mut Thread, operation: &Operation, facts: &RequestFacts<'_>) -> After {
        let Some(skip) = &mut thread.skip else { return After::Next };
        match (&operation.op, skip.depth) {
            (Op::If(_) | Op::Try | Op::Block(_), _) => skip.depth += 1,
            (Op::End, 1..) => skip.depth -= 1,
            (Op::End, 0) => {
                let until = skip.until;
                thread.skip = None;
                return match until {
                    Until::BlockEnd => {
                        self.end_block(thread, operation.at.start);
                        After::Next
                    }
                    Until::Branch | Until::LevelEnd => self.end_of_level(thread),
                    Until::Except => self.end_without_except(thread),
                };
            }
            (Op::ElseIf(test), 0) if skip.until == Until::Branch => {
                let skip = *skip;
                thread.skip = (!self.holds(thread, test, facts)).then_some(skip);
            }
            (Op::Else, 0) if skip.until == Until::Branch => thread.skip = None,
            (Op::Except, 0) if skip.until == Until::Except => {
                thread.skip = None;
                self.begin_except(thread);
            }
            _ => {}
        }
        After::Next
    }

    fn end_without_except(&mut self, thread: &mut Thread) -> After {
        if let Some(Level::Try(level)) = thread.levels.pop() {
            (thread.slot, thread.attempt, thread.scope) =
                (level.outer_slot, level.outer_attempt, level.scope);
            if let Some(attempted) = self.slots.attempted(level.slot) {
                attempted.is_running = false;
            }
            self.fail_outwards(level.slot);
        }
        After::Next
    }

    /// A block may stand in for fragments from here on, if there is room for its text.
    fn end_block(&mut self, thread: &mut Thread, end: u64) {
        let Some((name, block)) = thread.block.take() else { return };
        let bytes = usize::try_from(end.saturating_sub(block.offset)).unwrap_or(usize::MAX);
        if self.budget.keep(bytes) {
            thread.scope.set_block(&name, block);
            self.steps.push_back(Step::Keep { document: thread.document, range: block.offset..end });
        } else {
            self.has_no_room(thread);
        }
    }

    fn holds(&mut self, thread: &mut Thread, test: &Test, facts: &RequestFacts<'_>) -> bool {
        match test {
            Test::Ssi(test) => {
                self.evaluator(thread, facts).is_some_and(|mut evaluator| test.is_true(&mut evaluator))
            }
            Test::Esi(test) => {
                self.evaluator(thread, facts).is_some_and(|mut evaluator| test.is_true(&mut evaluator))
            }
            Test::Unreadable => {
                if self.language(thread.document) == Language::Ssi {
                    self.error(thread);
                }
                false
            }
        }
    }

    fn echo(&mut self, thread: &mut Thread, echo: &Echo, facts: &RequestFacts<'_>) {
        let Some(mut evaluator) = self.evaluator(thread, facts) else { return };
        let value = evaluator.look_up(&Variable::Ssi(echo.name.clone()));
        // A default is written as the value would be, as in nginx: templates of the field have markup in it.
        let bytes = match value.as_ref().map(Value::text).or(echo.default.as_ref()) {
            Some(text) => {
                let mut out = Vec::new();
                match echo.encoding {
                    Encoding::Entity => escape::entity(text, &mut out),
                    Encoding::Url => escape::component(text, &mut out),
                    Encoding::Base64 => escape::base64(text, &mut out),
                    Encoding::None => out.extend_from_slice(text),
                }
                out.into()
            }
            None => thread.words.missing_text.clone(),
        };
        self.own(thread, bytes);
    }

    fn variable(&mut self, thread: &mut Thread, name: &esi::EsiName, facts: &RequestFacts<'_>) {
        let escapes = self.settings.escapes_html;
        let Some(mut evaluator) = self.evaluator(thread, facts) else { return };
        let value = evaluator.look_up(&Variable::Esi(name.clone())).unwrap_or_default();
        let mut out = Vec::new();
        for (stretch, is_foreign) in value.stretches() {
            if is_foreign && escapes {
                escape::html(stretch, &mut out);
            } else {
                out.extend_from_slice(stretch);
            }
        }
        self.own(thread, out.into());
    }

    fn set(&mut self, thread: &mut Thread, set: &Set, facts: &RequestFacts<'_>) {
        let Some(mut evaluator) = self.evaluator(thread, facts) else { return };
        let value = set.value.value(&mut evaluator);
        match value {
            Ok(value) if self.budget.keep(value.text().len()) && self.budget.keep(set.name.len()) => {
                thread.scope.set_value(&set.name, value);
            }
            _ => self.has_no_room(thread),
        }
    }

    /// A value or a block is longer than it may be, or than the page has room for.
    fn has_no_room(&mut self, thread: &Thread) {
        let (slot, document, at) = (thread.slot, thread.document, thread.cursor);
        self.steps.push_back(Step::Refused { slot, document, at, reason: IncludeFailure::TooLarge });
        if self.language(document) == Language::Ssi {
            self.error(thread);
        }
    }

    fn evaluator<'a>(
        &'a mut self,
        thread: &'a mut Thread,
        facts: &'a RequestFacts<'a>,
    ) -> Option<Evaluator<'a>> {
        let (document, page) = (self.documents.get(thread.document.index())?, self.documents.first()?);
        Some(Evaluator {
            asker: Asker::new(facts, &mut self.used),
            uri: &document.uri,
            page_uri: &page.uri,
            last_modified: page.last_modified,
            scope: &thread.scope,
            captures: &mut thread.captures,
            date_format: &thread.words.date_format,
            budget: &mut self.budget,
        })
    }
}

fn begin_block(thread: &mut Thread, name: &[u8]) {
    let block = BlockAt { document: thread.document, operation: thread.operation, offset: thread.cursor };
    thread.block = Some((name.into(), block));
    thread.skip(Until::BlockEnd);
}
