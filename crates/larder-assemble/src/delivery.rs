//! A page from beginning to end, in memory: for tests and fuzzing.
//!
//! In: a template, a function that knows all fragments, and a choice of what comes next wherever the order is free: an answer, more of a
//! template, the content of a captured slot. Out: the page. It keeps to the interface and checks it on the way: nothing goes into
//! a slot that is unknown, has ended or is gone, and nothing is left held back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;

use crate::{
    Answer, Ask, Compiler, DocumentId, FactsUsed, IncludeFailure, PageTemplate, RequestFacts, Run,
    RunSettings, SlotId, SlotKind, Step, Template,
};

/// Steps after which a page certainly hangs.
const STEPS_MAX: usize = 2_000_000;
/// Bytes of output beyond which nothing more is written, as whoever delivers a page has a limit.
const OUTPUT_MAX: usize = 1 << 22;

/// What a fragment is.
#[derive(Clone, Debug)]
pub enum Given {
    /// A body.
    Body(Vec<u8>),
    /// A body that is a template.
    Template(Language, Vec<u8>),
    /// One that breaks off behind these bytes.
    Broken(Language, Vec<u8>),
    /// None.
    Failed(IncludeFailure),
}

/// A page that was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// All up to its end, or up to the first failure.
    pub output: Vec<u8>,
    /// What ended it before its end.
    pub failed: Option<IncludeFailure>,
    /// What was asked for: sorted, since the order is free.
    pub asked: Vec<String>,
    /// What was not done: sorted.
    pub refused: Vec<&'static str>,
    /// What of the request was used.
    pub used: FactsUsed,
}

/// How a page is delivered.
pub struct Delivery<'a> {
    /// The template's language.
    pub language: Language,
    /// Its URI.
    pub uri: DocumentUri,
    /// How it is run.
    pub settings: RunSettings,
    /// The request.
    pub facts: RequestFacts<'a>,
    /// All fragments, by their site, where it is another one, and their target.
    pub fragments: &'a dyn Fn(&str) -> Given,
    /// Bodies come in pieces of so many bytes; 0 for whole ones.
    pub piece_bytes: usize,
    /// Whether the page's own template breaks off behind its bytes.
    pub breaks: bool,
}

struct State<'a> {
    delivery: &'a Delivery<'a>,
    run: Run,
    bodies: Vec<Vec<u8>>,
    growing: Vec<Option<Growing>>,
    slots: BTreeMap<SlotId, Filled>,
    /// Slots that were opened as captured: few of many, and each choice looks at all of them.
    captured: BTreeSet<SlotId>,
    asks: Vec<Ask>,
    done: Delivered,
}

/// A template that is still to come, as a whole or from some byte on.
struct Growing {
    compiler: Compiler,
    from: usize,
    slot: SlotId,
    breaks: bool,
}

#[derive(Default)]
struct Filled {
    /// Slots that stand in it, captured ones too.
    inner: Vec<SlotId>,
    pieces: Vec<Piece>,
    is_held: bool,
    has_ended: bool,
    /// It is captured, and its content is to be given yet.
    is_captured: bool,
    body: Option<Vec<u8>>,
}

enum Piece {
    Bytes(Vec<u8>),
    Slot(SlotId),
    Failed(IncludeFailure),
}

/// What may come next.
enum Next {
    Answer(usize),
    Piece(usize),
    Captured(SlotId),
}

impl Delivery<'_> {
    /// Delivers the page of `body`. `choose` is asked for one of so many.
    ///
    /// # Panics
    /// The run breaks its own rules.
    pub fn deliver(&self, body: &[u8], choose: &mut dyn FnMut(usize) -> usize) -> Delivered {
        let compiler = Compiler::new(self.language, self.uri.clone());
        let program = Arc::clone(compiler.program());
        let template = Template { program, last_modified: None };
        let run = Run::new(PageTemplate { uri: self.uri.clone(), template }, self.settings.clone());
        let mut state = State {
            delivery: self,
            run,
            bodies: Vec::new(),
            growing: Vec::new(),
            slots: BTreeMap::from([(SlotId::PAGE, Filled::default())]),
            captured: BTreeSet::new(),
            asks: Vec::new(),
            done: Delivered::default(),
        };
        state.grow(compiler, body.to_vec(), SlotId::PAGE, self.breaks);
        state.deliver(choose)
    }
}

impl State<'_> {
    fn deliver(mut self, choose: &mut dyn FnMut(usize) -> usize) -> Delivered {
        for _ in 0..STEPS_MAX {
            match self.run.advance(&self.delivery.facts) {
                Step::Done => return self.finish(),
                Step::Wait { more_template } => {
                    let next = self.next();
                    assert!(!next.is_empty(), "it waits for nothing");
                    assert!(!more_template || self.growing.iter().any(Option::is_some), "no template grows");
                    let chosen = choose(next.len()) % next.len();
                    if let Some(next) = next.into_iter().nth(chosen) {
                        self.do_next(next);
                    }
                }
                step => self.step(step),
            }
        }
        panic!("it hangs");
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Text { slot, document, range } => {
                let bytes = self.text(document, range.start, range.end).to_vec();
                self.put(slot, Piece::Bytes(bytes));
            }
            Step::Keep { document, range } => {
                self.text(document, range.start, range.end);
            }
            Step::Own { slot, bytes } => self.put(slot, Piece::Bytes(bytes.to_vec())),
            Step::Body { slot } => {
                let body =
                    self.slots.get_mut(&slot).and_then(|slot| slot.body.take()).expect("a body was given");
                self.put(slot, Piece::Bytes(body));
            }
            Step::Fragment(ask) => {
                self.done.asked.push(self.name(&ask));
                assert!(self.slots.contains_key(&ask.slot), "it is asked for without a place");
                self.asks.push(ask);
            }
            Step::Open { slot, into, kind } => self.open(slot, into, kind),
            Step::Release { slot } => {
                let slot = self.slots.get_mut(&slot).expect("a slot");
                assert!(std::mem::take(&mut slot.is_held), "released twice");
            }
            Step::Discard { slot } => self.discard(slot),
            Step::End { slot } => {
                let slot = self.slots.get_mut(&slot).expect("a slot");
                assert!(!std::mem::replace(&mut slot.has_ended, true), "ended twice");
            }
            Step::Refused { reason, .. } => self.done.refused.push(reason.as_str()),
            Step::Failed { slot, reason } => self.put(slot, Piece::Failed(reason)),
            Step::Wait { .. } | Step::Done => {}
        }
    }

    fn text(&self, document: DocumentId, start: u64, end: u64) -> &[u8] {
        let offset = |offset: u64| usize::try_from(offset).expect("it is within the body");
        let body = self.bodies.get(document.index()).expect("a document");
        body.get(offset(start)..offset(end)).expect("it is within the body")
    }

    fn open(&mut self, slot: SlotId, into: SlotId, kind: SlotKind) {
        let is_captured = kind == SlotKind::Captured;
        if is_captured {
            self.captured.insert(slot);
        } else {
            self.put(into, Piece::Slot(slot));
        }
        self.slots.get_mut(&into).expect("a slot that is there").inner.push(slot);
        let is_held = kind == SlotKind::Held;
        let filled = Filled { is_captured, is_held, ..Filled::default() };
        assert!(self.slots.insert(slot, filled).is_none(), "a slot opens once");
    }

    fn put(&mut self, slot: SlotId, piece: Piece) {
        let slot = self.slots.get_mut(&slot).expect("a slot that is there");
        assert!(!slot.has_ended, "it has ended");
        slot.pieces.push(piece);
    }

    fn discard(&mut self, slot: SlotId) {
        let inner = |slot: Option<&mut Filled>| slot.map(|slot| std::mem::take(&mut slot.inner));
        let mut rest = inner(self.slots.get_mut(&slot)).unwrap_or_default();
        while let Some(next) = rest.pop() {
            rest.extend(inner(self.slots.get_mut(&next)).unwrap_or_default());
            self.slots.remove(&next);
            self.captured.remove(&next);
        }
        self.asks.retain(|ask| self.slots.contains_key(&ask.slot));
        let slot = self.slots.get_mut(&slot).expect("a slot");
        assert!(std::mem::take(&mut slot.is_held) || slot.is_captured, "it was held back");
        slot.has_ended = false;
        slot.pieces.clear();
    }

    fn name(&self, ask: &Ask) -> String {
        let site = ask.reference.site.as_ref().map(|(scheme, site)| format!("{}://{site}", scheme.as_str()));
        let own = self.run.uri(ask.document).filter(|uri| uri.authority != self.delivery.uri.authority);
        let site = site.or_else(|| own.map(|uri| format!("{}://{}", uri.scheme.as_str(), uri.authority)));
        format!("{}{}", site.unwrap_or_default(), ask.reference.target)
    }

    fn next(&self) -> Vec<Next> {
        let answers = (0..self.asks.len()).map(Next::Answer);
        let pieces = (0..self.growing.len()).filter(|index| self.growing[*index].is_some()).map(Next::Piece);
        let is_captured =
            |slot: &SlotId| self.slots.get(slot).is_some_and(|filled| filled.is_captured && filled.has_ended);
        let captured = self.captured.iter().copied().filter(is_captured);
        let captured = captured.filter(|slot| self.is_filled(*slot)).map(Next::Captured);
        answers.chain(pieces).chain(captured).collect()
    }

    fn is_filled(&self, slot: SlotId) -> bool {
        let Some(filled) = self.slots.get(&slot) else { return true };
        let is_inner_filled = |piece: &Piece| match piece {
            Piece::Slot(inner) => self.is_filled(*inner),
            _ => true,
        };
        filled.has_ended && filled.pieces.iter().all(is_inner_filled)
    }

    fn do_next(&mut self, next: Next) {
        match next {
            Next::Answer(index) => self.answer(index),
            Next::Piece(index) => {
                if let Some(mut growing) = self.growing[index].take() {
                    let body = &self.bodies[index];
                    let bytes =
                        if self.delivery.piece_bytes == 0 { body.len() } else { self.delivery.piece_bytes };
                    let to = body.len().min(growing.from + bytes);
                    growing.compiler.feed(&body[growing.from..to]);
                    growing.from = to;
                    if to < body.len() {
                        self.growing[index] = Some(growing);
                    } else if growing.breaks {
                        self.run.broke(growing.slot);
                    } else {
                        growing.compiler.finish();
                    }
                }
            }
            Next::Captured(slot) => {
                let (mut output, mut failed) = (Vec::new(), None);
                self.render(slot, &mut output, &mut failed);
                if let Some(filled) = self.slots.get_mut(&slot) {
                    // Something else may be asked for in its place.
                    filled.is_captured = failed.is_some();
                }
                self.run.give(slot, failed.map_or(Answer::Value(output.into()), Answer::Failed));
            }
        }
    }

    fn answer(&mut self, index: usize) {
        let ask = self.asks.swap_remove(index);
        let given = (self.delivery.fragments)(&self.name(&ask));
        let answer = match given {
            Given::Failed(reason) => Answer::Failed(reason),
            Given::Template(language, body) if !ask.as_it_is => self.begin(&ask, language, body, false),
            Given::Broken(language, body) if !ask.as_it_is => self.begin(&ask, language, body, true),
            Given::Broken(..) => Answer::Failed(IncludeFailure::Broken),
            Given::Body(body) | Given::Template(_, body) if ask.is_captured => {
                if let Some(filled) = self.slots.get_mut(&ask.slot) {
                    filled.is_captured = false;
                }
                Answer::Value(Bytes::from(body))
            }
            Given::Body(body) | Given::Template(_, body) => {
                let is_empty = body.is_empty();
                if let Some(filled) = self.slots.get_mut(&ask.slot) {
                    filled.body = Some(body);
                }
                Answer::Body { is_empty }
            }
        };
        self.run.give(ask.slot, answer);
    }

    /// A fragment that is a template. It is the next document.
    fn begin(&mut self, ask: &Ask, language: Language, body: Vec<u8>, breaks: bool) -> Answer {
        let base = self.run.uri(ask.document).expect("a document");
        let mut uri = DocumentUri { target: ask.reference.target.clone(), ..base.clone() };
        if let Some((scheme, authority)) = &ask.reference.site {
            (uri.scheme, uri.authority) = (*scheme, authority.clone());
        }
        let compiler = Compiler::new(language, uri);
        let program = Arc::clone(compiler.program());
        self.grow(compiler, body, ask.slot, breaks);
        Answer::Template(Template { program, last_modified: None })
    }

    /// A template whose bytes are there at once, or come later. That one breaks off is never known at once.
    fn grow(&mut self, mut compiler: Compiler, body: Vec<u8>, slot: SlotId, breaks: bool) {
        self.growing.push(if self.delivery.piece_bytes == 0 && !breaks {
            compiler.feed(&body);
            compiler.finish();
            None
        } else {
            Some(Growing { compiler, from: 0, slot, breaks })
        });
        self.bodies.push(body);
    }

    fn render(&self, slot: SlotId, output: &mut Vec<u8>, failed: &mut Option<IncludeFailure>) {
        let filled = self.slots.get(&slot).expect("a slot");
        assert!(filled.has_ended && !filled.is_held, "{slot:?} is not complete");
        for piece in &filled.pieces {
            if failed.is_some() || output.len() > OUTPUT_MAX {
                return;
            }
            match piece {
                Piece::Bytes(bytes) => output.extend_from_slice(bytes),
                Piece::Slot(inner) => self.render(*inner, output, failed),
                Piece::Failed(reason) => *failed = Some(*reason),
            }
        }
    }

    fn finish(mut self) -> Delivered {
        assert!(self.asks.is_empty(), "a fragment is asked for, and not awaited");
        let (mut output, mut failed) = (Vec::new(), None);
        self.render(SlotId::PAGE, &mut output, &mut failed);
        self.done.asked.sort();
        self.done.refused.sort_unstable();
        self.done.used = self.run.used().clone();
        self.done.used.fields.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        Delivered { output, failed, ..self.done }
    }
}
