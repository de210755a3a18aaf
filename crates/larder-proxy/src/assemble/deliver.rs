//! A page on its way to a client: what stands at its front, and what it waits for.
//!
//! In: a page that runs ahead. Out: its bytes, in order. What is not at the front goes on while the front waits, so that the page keeps no
//! place at an origin that it needs itself.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use larder_assemble::IncludeFailure;
use tokio::time::{Instant, timeout};

use super::ask::NoFragment;
use super::document::{At, TemplateText};
use super::entry::later;
use super::page::Page;
use super::queue::{Front, PagePiece};

/// What stands at the front of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Content.
    Content,
    /// A failure that nothing stands in for.
    Failed(IncludeFailure),
    /// Nothing: the page is empty.
    Empty,
}

impl Page {
    /// Reads the template to its end, or as far as it is read ahead, while fragments are on their way. Those that have come by then are
    /// part of the page.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn read_template(&mut self) {
        std::future::poll_fn(|cx| {
            loop {
                let is_read = !self.documents.first().is_some_and(TemplateText::may_read);
                if self.poll_progress(cx, false).is_pending() {
                    return if is_read { Poll::Ready(()) } else { Poll::Pending };
                }
            }
        })
        .await;
    }

    /// Waits until it is known how the page begins.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn begins(&mut self) -> Begins {
        std::future::poll_fn(|cx| {
            loop {
                if let Some(begins) = self.begins_now() {
                    self.goes_on();
                    return Poll::Ready(begins);
                }
                self.waits();
                ready!(self.poll_progress(cx, true));
            }
        })
        .await
    }

    /// Waits until it is known whether all parts are stored.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn settles(&mut self) -> bool {
        std::future::poll_fn(|cx| {
            loop {
                if let Some(is_stored) = self.is_stored() {
                    self.goes_on();
                    return Poll::Ready(is_stored);
                }
                self.waits();
                ready!(self.poll_progress(cx, true));
            }
        })
        .await
    }

    /// Whether all parts are stored, where that is known; for a client that takes no others.
    pub(crate) fn is_stored(&mut self) -> Option<bool> {
        match (self.lacks_part, self.is_done) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => self.stuck().map(|_| false),
        }
    }

    fn waits(&mut self) {
        self.waits_since.get_or_insert_with(Instant::now);
    }

    pub(super) fn goes_on(&mut self) {
        if let Some(since) = self.waits_since.take() {
            self.tally.waited += since.elapsed();
            self.told.note(&self.tally);
        }
    }

    /// How the page begins, where that is known.
    pub(crate) fn begins_now(&mut self) -> Option<Begins> {
        // Where the front is says what the page waits for.
        self.queue.front();
        let stuck = self.stuck();
        match self.queue.front() {
            Front::End => Some(Begins::Empty),
            Front::Unknown => stuck.map(Begins::Failed),
            Front::PagePiece(PagePiece::Failed(reason)) => Some(Begins::Failed(*reason)),
            Front::PagePiece(PagePiece::Text { document, range }) => {
                match self.documents.get(*document).map(|document| document.at(range)) {
                    Some(At::Bytes(_)) => Some(Begins::Content),
                    Some(At::NotYet) => stuck.map(Begins::Failed),
                    _ => Some(Begins::Failed(IncludeFailure::Broken)),
                }
            }
            Front::PagePiece(_) => Some(Begins::Content),
        }
    }

    /// Ready once something has happened that may have moved the page on. Where the page `waits` for it, templates may be read further ahead
    /// than usual.
    fn poll_progress(&mut self, cx: &mut Context<'_>, waits: bool) -> Poll<()> {
        let mut has_moved = false;
        while let Poll::Ready(Some(joined)) = self.tasks.poll_join_next(cx) {
            has_moved = true;
            // One that was given up says nothing.
            if let Ok((uri, answered)) = joined {
                self.answered(&uri, answered);
            }
        }
        // With nothing else to wait for, the page has to hold more: what keeps it back are text that is skipped, or an attempt.
        if waits && !has_moved && (self.tasks.is_empty() || self.is_full()) {
            has_moved = self.hold_more();
        }
        for document in &mut self.documents {
            while document.may_read() {
                match document.poll_read(cx) {
                    Poll::Ready(()) => has_moved = true,
                    Poll::Pending => break,
                }
            }
        }
        // A page that is stuck has to be looked at: it ends here.
        let is_over = waits && self.stuck().is_some();
        if !has_moved && !is_over {
            return Poll::Pending;
        }
        self.tell_broken();
        self.advance();
        Poll::Ready(())
    }

    /// Tells the run of templates that have broken off.
    fn tell_broken(&mut self) {
        let broken = self.documents.iter_mut().filter_map(|document| {
            document.has_just_broken().then(|| (document.slot(), document.program().uri().clone()))
        });
        let broken: Vec<_> = broken.collect();
        for (slot, uri) in broken {
            // What cuts the page is counted where that is cut.
            if self.run.broke(slot) {
                self.note_failure(Some(uri), IncludeFailure::Broken);
            }
        }
    }

    /// What is at the front takes time. Meanwhile answers are taken and templates are read, so that the page keeps no place at an origin.
    fn go_on_behind(&mut self, cx: &mut Context<'_>) {
        while self.poll_progress(cx, false).is_ready() {}
    }

    /// The next bytes of the page; `None` at its end.
    ///
    /// # Errors
    /// The page cannot go on. What was sent is cut.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, IncludeFailure>>> {
        loop {
            if self.sent_bytes > self.settings.page_size {
                return Poll::Ready(Some(Err(IncludeFailure::TooLarge)));
            }
            self.let_go();
            let (sent, is_over) = match self.queue.front() {
                Front::End => return Poll::Ready(None),
                Front::Unknown => {
                    if let Some(reason) = self.stuck() {
                        return Poll::Ready(Some(Err(reason)));
                    }
                    self.waits();
                    ready!(self.poll_progress(cx, true));
                    continue;
                }
                Front::PagePiece(piece) => match piece {
                    PagePiece::Failed(reason) => return Poll::Ready(Some(Err(*reason))),
                    PagePiece::Own(bytes) => (bytes.clone(), true),
                    PagePiece::Text { document, range } => {
                        let index = *document;
                        let Some(document) = self.documents.get_mut(index) else {
                            return Poll::Ready(Some(Err(IncludeFailure::Broken)));
                        };
                        match document.at(range) {
                            At::Bytes(bytes) => {
                                range.start += bytes.len() as u64;
                                document.deliver(range.start);
                                (bytes, range.is_empty())
                            }
                            At::NotYet => {
                                // All before it was sent, or is no text.
                                document.deliver(range.start);
                                if let Some(reason) = self.stuck() {
                                    return Poll::Ready(Some(Err(reason)));
                                }
                                self.waits();
                                ready!(self.poll_progress(cx, true));
                                continue;
                            }
                            At::Never => return Poll::Ready(Some(Err(IncludeFailure::Broken))),
                        }
                    }
                    PagePiece::Body(body) => match body.poll_next(cx) {
                        Poll::Pending => {
                            self.waits();
                            self.go_on_behind(cx);
                            return Poll::Pending;
                        }
                        Poll::Ready(None) => (Bytes::new(), true),
                        Poll::Ready(Some(Ok(bytes))) => (bytes, false),
                        Poll::Ready(Some(Err(_))) => return Poll::Ready(Some(Err(IncludeFailure::Broken))),
                    },
                    PagePiece::Again { uri, takes_errors } => {
                        let (fragments, limit) = (&self.fragments, self.settings.timeout);
                        let again = self.again.get_or_insert_with(|| {
                            let asked = later(fragments.ask(uri, *takes_errors));
                            Box::pin(async move {
                                timeout(limit, asked).await.unwrap_or(Err(IncludeFailure::Timeout.into()))
                            })
                        });
                        let answered = match again.as_mut().poll(cx) {
                            Poll::Ready(answered) => answered,
                            Poll::Pending => {
                                self.waits();
                                self.go_on_behind(cx);
                                return Poll::Pending;
                            }
                        };
                        match answered {
                            // It was none when it was asked for first, and goes out as no template now.
                            Ok(fragment) if fragment.template.is_some() => {
                                return Poll::Ready(Some(Err(IncludeFailure::Broken)));
                            }
                            Ok(fragment) => *piece = PagePiece::Body(fragment.body),
                            Err(NoFragment::Failed(reason)) => return Poll::Ready(Some(Err(reason))),
                            Err(NoFragment::NotStored) => {
                                return Poll::Ready(Some(Err(IncludeFailure::Origin)));
                            }
                        }
                        self.again = None;
                        continue;
                    }
                    PagePiece::Slot(_) => (Bytes::new(), true),
                },
            };
            if is_over {
                self.queue.pop();
            }
            if !sent.is_empty() {
                self.goes_on();
                self.sent_bytes += sent.len() as u64;
                return Poll::Ready(Some(Ok(sent)));
            }
        }
    }
}
