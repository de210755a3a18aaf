//! The fragments of a page: asked for, awaited, and given to its run.
//!
//! In: includes that the run names. Out: answers for it, and bodies for the queue. A URL is asked for once, as long as what the page holds of
//! it is little. What takes time is a task, of which [`FragmentSettings::at_once`](crate::settings::FragmentSettings) go on together at most,
//! and fewer while fragments that have come wait for their turn in the page ([`PageRoom`]).

use std::sync::Arc;
use std::time::Duration;

use larder_assemble::{Answer, Ask, IncludeFailure, Template};
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::ask::{AskedFragment, Fragment, FragmentResult, FragmentTemplate, NoFragment};
use super::document::TemplateText;
use super::entry::{Bringing, FetchCall, FragmentEntry, later};
use super::page::Page;
use super::queue::PagePiece;
use super::room::PageRoom;
use super::{COPIES_BYTES_MAX, GOOD_BYTES};

impl Page {
    /// Whether the document that asks is SSI.
    fn is_in_ssi(&self, ask: &Ask) -> bool {
        let document = self.documents.get(ask.document.index());
        document.is_some_and(|document| document.program().language() == Language::Ssi)
    }

    pub(super) fn ask(&mut self, ask: Ask) {
        let Some(uri) = self.run.uri_of(&ask) else { return };
        match self.asked.get_mut(&uri) {
            Some(FragmentEntry::UnderWay { waiting, .. }) => return waiting.push(ask),
            Some(FragmentEntry::Failed(reason)) => {
                let reason = *reason;
                return self.give_failure(&ask, &uri, reason);
            }
            Some(FragmentEntry::There(fragment)) => {
                if let Some(fragment) = fragment.copy() {
                    return self.give(&ask, &uri, fragment);
                }
            }
            None => self.tally.fragments += 1,
        }
        let takes_errors = self.is_in_ssi(&ask);
        match self.fragments.ask(&uri, takes_errors) {
            AskedFragment::Now(Ok(mut fragment)) if fragment.body.is_good() => {
                // A long one is good because it was decoded so far. Its decoder is not kept until its turn.
                fragment.passes |= !fragment.body.is_whole();
                fragment.body.charge();
                self.come((&ask, &uri), fragment);
            }
            AskedFragment::Now(Err(NoFragment::NotStored)) => self.lacks_part = true,
            AskedFragment::Now(Err(NoFragment::Failed(reason))) => {
                self.give_failure(&ask, &uri, reason);
                self.asked.insert(uri, FragmentEntry::Failed(reason));
            }
            // It is never given, and the page stays open.
            _ if !self.request.fetches => {}
            asked => {
                let limit = ask.wait_ms_max.map(|limit| Duration::from_millis(limit.into()));
                let called = Arc::new(Notify::new());
                let task = self.begin((uri.clone(), Arc::clone(&called)), later(asked), limit);
                let entry =
                    FragmentEntry::UnderWay { waiting: vec![ask], task, call: FetchCall::new(called) };
                self.asked.insert(uri, entry);
            }
        }
    }

    /// Has a fragment brought by a task, as soon as there is room or it is called.
    fn begin(
        &mut self,
        (uri, called): (DocumentUri, Arc<Notify>),
        asked: Bringing,
        wait_max: Option<Duration>,
    ) -> AbortHandle {
        self.tally.asked += 1;
        let at_once = self.settings.at_once;
        let room = self.room.get_or_insert_with(|| PageRoom::new(at_once)).clone();
        let page_ends = self.deadline;
        let limit = wait_max.unwrap_or(Duration::MAX).min(self.settings.timeout);
        self.tasks.spawn(async move {
            let failed = |reason| Err(NoFragment::Failed(reason));
            let Ok(entered) = timeout_at(page_ends, room.enter(&called)).await else {
                return (uri, failed(IncludeFailure::PageTimeout));
            };
            let ends = Instant::now() + limit;
            let bringing = async {
                let mut fragment = asked.await?;
                match fragment.body.read_ahead().await {
                    Ok(()) => {
                        fragment.body.settle(entered);
                        Ok(fragment)
                    }
                    Err(_) => failed(IncludeFailure::Broken),
                }
            };
            let late = if ends < page_ends { IncludeFailure::Timeout } else { IncludeFailure::PageTimeout };
            let answered = timeout_at(ends.min(page_ends), bringing).await.unwrap_or_else(|_| failed(late));
            (uri, answered)
        })
    }

    pub(super) fn answered(&mut self, uri: &DocumentUri, answered: FragmentResult) {
        let Some(FragmentEntry::UnderWay { waiting, .. }) = self.asked.remove(uri) else { return };
        match answered {
            // Those that wait for it are given nothing.
            Err(NoFragment::NotStored) => self.lacks_part = true,
            Err(NoFragment::Failed(reason)) => {
                // How long the template waits for one include says nothing of the others.
                if reason != IncludeFailure::Timeout || waiting.iter().all(|ask| ask.wait_ms_max.is_none()) {
                    self.asked.insert(uri.clone(), FragmentEntry::Failed(reason));
                }
                for ask in waiting {
                    self.give_failure(&ask, uri, reason);
                }
            }
            Ok(fragment) => {
                let mut waiting = waiting.into_iter();
                let Some(first) = waiting.next() else { return };
                // Each gets its own now: later the page may not have it any more.
                let others: Vec<_> = waiting.map(|ask| (fragment.copy(), ask)).collect();
                self.come((&first, uri), fragment);
                for (copy, ask) in others {
                    match copy {
                        Some(copy) => self.give(&ask, uri, copy),
                        None => self.ask(ask),
                    }
                }
            }
        }
    }

    /// A fragment that came, the first time that the page needs it.
    fn come(&mut self, (ask, uri): (&Ask, &DocumentUri), fragment: Box<Fragment>) {
        let cookies = u32::try_from(fragment.cookies).unwrap_or(u32::MAX);
        self.tally.cookies = self.tally.cookies.saturating_add(cookies);
        self.parts.push(fragment.said.clone());
        self.detail = self.detail.or(fragment.detail);
        let own_bytes = fragment.body.own_bytes();
        if self.copies_bytes + own_bytes <= COPIES_BYTES_MAX
            && let Some(mut copy) = fragment.copy()
        {
            // It is counted here, and holds no room of those that are on their way.
            self.copies_bytes += own_bytes;
            drop(copy.body.take_room());
            self.asked.insert(uri.clone(), FragmentEntry::There(copy));
        }
        self.give(ask, uri, fragment);
    }

    pub(super) fn give_failure(&mut self, ask: &Ask, uri: &DocumentUri, reason: IncludeFailure) {
        self.note_failure(Some(uri.clone()), reason);
        self.run.give(ask.slot, Answer::Failed(reason));
    }

    fn give(&mut self, ask: &Ask, uri: &DocumentUri, fragment: Box<Fragment>) {
        let Fragment { body, template, passes, .. } = *fragment;
        if let Some(template) = template.filter(|_| !ask.as_it_is) {
            if template.is_refused() {
                return self.give_failure(ask, uri, IncludeFailure::Invalid);
            }
            let FragmentTemplate { program, last_modified, .. } = template;
            let template = Template { program: Arc::clone(&program), last_modified };
            self.run.give(ask.slot, Answer::Template(template));
            // What was discarded meanwhile is not run.
            if self.run.documents() > self.documents.len() {
                self.queue.fill(ask.slot, self.documents.len());
                self.documents.push(TemplateText::new(program, body, GOOD_BYTES as u64, ask.slot));
            }
            return;
        }
        if ask.is_captured {
            let value = body.joined().filter(|value| value.len() <= GOOD_BYTES);
            return match value {
                Some(value) => {
                    self.captured.retain(|slot| *slot != ask.slot);
                    self.run.give(ask.slot, Answer::Value(value));
                }
                // What is asked for in its place may be a template.
                None => self.give_failure(ask, uri, IncludeFailure::TooLarge),
            };
        }
        let is_empty = body.is_empty();
        // A body that passes through holds a place at its origin.
        let is_to_be_asked_again = passes && !body.is_whole() && !self.queue.is_front(ask.slot);
        let piece = match is_to_be_asked_again {
            true => PagePiece::Again { uri: uri.clone(), takes_errors: self.is_in_ssi(ask) },
            false => PagePiece::Body(body),
        };
        self.queue.bring(ask.slot, piece);
        self.run.give(ask.slot, Answer::Body { is_empty });
    }

    /// Ends tasks that nobody waits for any more.
    pub(super) fn give_up_unwanted(&mut self) {
        let queue = &self.queue;
        self.asked.retain(|_, entry| match entry {
            FragmentEntry::UnderWay { waiting, task, .. } => {
                let is_wanted = waiting.iter().any(|ask| queue.is_there(ask.slot));
                if !is_wanted {
                    task.abort();
                }
                is_wanted
            }
            _ => true,
        });
    }
}
