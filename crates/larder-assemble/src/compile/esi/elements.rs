//! Elements of ESI, and what is open of them.
//!
//! In: start tags and end tags with their places. Out: markers and operations, each where its tags allow it. Where text is dropped
//! (in `remove`, and between the branches of `choose` and `try`) nothing is written, and one operation covers it all.

use std::ops::Range;

use super::super::attribute::Attributes;
use super::super::sink::{Place, Sink};
use crate::composed::Composed;
use crate::expression::{Unreadable, esi::EsiCondition};
use crate::problem::Fault;
use crate::program::{DEPTH_MAX, Include, Op, Set, Test};
use crate::source::{Form, Source};

/// Open elements, from the outermost.
#[derive(Default)]
pub(super) struct Elements {
    open: Vec<Open>,
    /// How many are open beyond the depth that is allowed. Nothing in them counts.
    too_deep: usize,
}

struct Open {
    kind: Kind,
    place: Place,
    /// Whether what is directly inside is dropped.
    drops: bool,
    /// Whether this element itself is where text is dropped.
    is_dropped: bool,
    /// Whether a marker of it has been written, for which there has to be an end.
    is_begun: bool,
    /// Of `choose` and `try`: whether the second kind of branch has been seen.
    has_second: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vars,
    Remove,
    Choose,
    When,
    Otherwise,
    Try,
    Attempt,
    Except,
}

impl Kind {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"vars" => Self::Vars,
            b"remove" => Self::Remove,
            b"choose" => Self::Choose,
            b"when" => Self::When,
            b"otherwise" => Self::Otherwise,
            b"try" => Self::Try,
            b"attempt" => Self::Attempt,
            b"except" => Self::Except,
            _ => return None,
        })
    }

    /// The element that it has to stand in.
    fn parent(self) -> Option<Self> {
        match self {
            Self::When | Self::Otherwise => Some(Self::Choose),
            Self::Attempt | Self::Except => Some(Self::Try),
            _ => None,
        }
    }
}

impl Elements {
    /// Whether variables are replaced here.
    pub(super) fn are_variables_read(&self) -> bool {
        !self.drops() && self.open.iter().any(|open| open.kind == Kind::Vars)
    }

    fn drops(&self) -> bool {
        self.too_deep > 0 || self.open.last().is_some_and(|open| open.drops)
    }

    /// Writes an operation, unless it stands where all is dropped.
    pub(super) fn write(&self, place: Place, at: Range<u64>, op: Op, sink: &mut Sink) {
        if !self.drops() {
            sink.emit(place, at, op);
        }
    }

    /// Leaves out a tag that means nothing more.
    pub(super) fn drop_tag(&self, place: Place, at: Range<u64>, sink: &mut Sink) {
        if !self.drops() {
            sink.skip(at.start);
            sink.end_skip(place, at.end);
        }
    }

    /// Reads a start tag; true for `text`, whose content is literal.
    pub(super) fn start(
        &mut self,
        name: &[u8],
        attributes: &Attributes,
        is_empty: bool,
        place: Place,
        at: Range<u64>,
        sink: &mut Sink,
    ) -> bool {
        if let Some(kind) = Kind::of(name) {
            let allowed: &[&[u8]] = if kind == Kind::When { &[b"test"] } else { &[] };
            self.note_unknown(attributes, allowed, place, sink);
            let is_open = self.open(kind, attributes, place, at.clone(), sink);
            if is_empty && is_open {
                self.end_of(Some(kind), place, at.end..at.end, sink);
            }
            return false;
        }
        let op = match name {
            b"include" => {
                let known: [&[u8]; 5] = [b"src", b"alt", b"onerror", b"maxwait", b"dca"];
                self.note_unknown(attributes, &known, place, sink);
                include(attributes, place, sink)
            }
            b"assign" => {
                self.note_unknown(attributes, &[b"name", b"value"], place, sink);
                assign(attributes)
            }
            b"comment" => Ok(Op::Skip),
            b"text" => {
                self.drop_tag(place, at, sink);
                return !is_empty;
            }
            _ => Err(Fault::Unknown),
        };
        match op {
            Ok(Op::Skip) => self.drop_tag(place, at, sink),
            Ok(op) => self.write(place, at, op, sink),
            Err(fault) => {
                if !self.drops() {
                    sink.problem(place, fault);
                }
                self.drop_tag(place, at, sink);
            }
        }
        false
    }

    fn note_unknown(&self, attributes: &Attributes, known: &[&[u8]], place: Place, sink: &mut Sink) {
        if !self.drops() && attributes.pairs.iter().any(|(name, _)| !known.contains(&&**name)) {
            sink.problem(place, Fault::Attribute);
        }
    }

    /// Opens an element that has content; false where its tag is dropped instead.
    fn open(
        &mut self,
        kind: Kind,
        attributes: &Attributes,
        place: Place,
        at: Range<u64>,
        sink: &mut Sink,
    ) -> bool {
        if self.too_deep > 0 {
            self.too_deep += 1;
            return true;
        }
        if self.open.len() >= DEPTH_MAX * 2 {
            sink.problem(place, Fault::TooDeep);
            sink.skip(at.start);
            self.too_deep = 1;
            return true;
        }
        let drops = self.drops();
        let mut opened = Open { kind, place, drops, is_dropped: drops, is_begun: false, has_second: false };
        match kind {
            Kind::Vars => self.drop_tag(place, at, sink),
            Kind::Remove | Kind::Choose | Kind::Try => {
                sink.skip(at.start);
                opened.drops = true;
            }
            Kind::When | Kind::Otherwise | Kind::Attempt | Kind::Except => {
                let Some(parent) = self.open.last_mut().filter(|parent| Some(parent.kind) == kind.parent())
                else {
                    sink.problem(place, Fault::Misplaced);
                    self.drop_tag(place, at, sink);
                    return false;
                };
                let test = || Test::Unreadable;
                let markers = match (kind, parent.is_begun, parent.has_second) {
                    (Kind::When, is_begun, false) => {
                        let test = condition(attributes, place, sink);
                        vec![if is_begun { Op::ElseIf(test) } else { Op::If(test) }]
                    }
                    (Kind::Otherwise, true, false) => vec![Op::Else],
                    (Kind::Otherwise, false, false) => vec![Op::If(test()), Op::Else],
                    (Kind::Attempt, false, false) => vec![Op::Try],
                    (Kind::Except, true, false) => vec![Op::Except],
                    _ => {
                        sink.problem(place, Fault::Misplaced);
                        Vec::new()
                    }
                };
                let is_counted = !markers.is_empty();
                parent.has_second |= is_counted && matches!(kind, Kind::Otherwise | Kind::Except);
                parent.is_begun |= is_counted;
                opened.drops = parent.is_dropped || !is_counted;
                opened.is_dropped = opened.drops;
                let mut from = at.start;
                for op in markers {
                    if !opened.drops {
                        sink.emit(place, from..at.end, op);
                        from = at.end;
                    }
                }
            }
        }
        self.open.push(opened);
        true
    }

    /// Reads an end tag.
    pub(super) fn end(&mut self, inside: &[u8], place: Place, at: Range<u64>, sink: &mut Sink) {
        let name = inside.trim_ascii();
        match name {
            // Of elements that are empty.
            b"include" | b"comment" | b"assign" => self.drop_tag(place, at, sink),
            name => self.end_of(Kind::of(name), place, at, sink),
        }
    }

    /// Ends the innermost element of that kind, and what is open inside.
    fn end_of(&mut self, kind: Option<Kind>, place: Place, at: Range<u64>, sink: &mut Sink) {
        if self.too_deep > 0 {
            self.too_deep -= usize::from(kind.is_some());
            if !self.drops() {
                sink.end_skip(place, at.end);
            }
            return;
        }
        let found = kind.and_then(|kind| self.open.iter().rposition(|open| open.kind == kind));
        let Some(found) = found else {
            if !self.drops() {
                sink.problem(place, if kind.is_some() { Fault::Misplaced } else { Fault::Unknown });
            }
            return self.drop_tag(place, at, sink);
        };
        while self.open.len() > found + 1 {
            self.close_last(at.start..at.start, true, sink);
        }
        self.close_last(at, false, sink);
    }

    /// Closes what is still open where the template ends.
    pub(super) fn close_all(&mut self, end: u64, sink: &mut Sink) {
        while !self.open.is_empty() {
            self.close_last(end..end, true, sink);
        }
    }

    fn close_last(&mut self, at: Range<u64>, is_missing: bool, sink: &mut Sink) {
        let Some(closed) = self.open.pop() else { return };
        if is_missing {
            sink.problem(closed.place, Fault::Unclosed);
        }
        let is_complete = match closed.kind {
            Kind::Choose => closed.is_begun,
            Kind::Try => closed.is_begun && closed.has_second,
            _ => true,
        };
        if !is_complete && !closed.is_dropped {
            sink.problem(closed.place, Fault::Missing);
        }
        if self.drops() {
            // Between the branches of what is around it, or in something that is dropped.
            sink.skip(at.start);
        } else if matches!(closed.kind, Kind::Choose | Kind::Try) && closed.is_begun {
            sink.emit(closed.place, at, Op::End);
        } else {
            sink.skip(at.start);
            sink.end_skip(closed.place, at.end);
        }
    }
}

fn condition(attributes: &Attributes, place: Place, sink: &mut Sink) -> Test {
    let Some(text) = attributes.value(b"test") else {
        sink.problem(place, Fault::Missing);
        return Test::Unreadable;
    };
    match EsiCondition::read(text) {
        Ok(read) => {
            if read.is_mixed {
                sink.problem(place, Fault::Mixed);
            }
            Test::Esi(Box::new(read.expression))
        }
        Err(Unreadable::Syntax | Unreadable::Pattern) => {
            sink.problem(place, Fault::Expression);
            Test::Unreadable
        }
    }
}

fn include(attributes: &Attributes, place: Place, sink: &mut Sink) -> Result<Op, Fault> {
    // An empty one would be the document itself, which nobody means.
    let text = attributes.value(b"src").filter(|text| !text.trim_ascii().is_empty()).ok_or(Fault::Missing)?;
    if attributes.is_repeated(b"src") {
        return Err(Fault::Repeated);
    }
    let uri = sink.program().uri().clone();
    let source = |text: &[u8]| Source::of(Composed::esi(text), Form::Site, &uri);
    let (source, otherwise) = (source(text), attributes.value(b"alt").map(source));
    let is_failed = |source: &Source| matches!(source, Source::Fixed(Err(_)));
    if is_failed(&source) || otherwise.as_ref().is_some_and(is_failed) {
        sink.problem(place, Fault::Reference);
    }
    let is = |name: &[u8], expected: &[u8]| attributes.value(name).is_some_and(|value| value == expected);
    let wait_ms_max =
        attributes.value(b"maxwait").map(|text| std::str::from_utf8(text).unwrap_or_default().parse().ok());
    let is_odd = wait_ms_max == Some(None)
        || attributes.value(b"onerror").is_some() && !is(b"onerror", b"continue")
        || attributes.value(b"dca").is_some() && !is(b"dca", b"none") && !is(b"dca", b"esi");
    if is_odd {
        sink.problem(place, Fault::Value);
    }
    Ok(Op::Include(Box::new(Include {
        source,
        otherwise,
        stub: None,
        may_be_missing: is(b"onerror", b"continue"),
        waits: false,
        set: None,
        as_it_is: is(b"dca", b"none"),
        wait_ms_max: wait_ms_max.flatten(),
    })))
}

fn assign(attributes: &Attributes) -> Result<Op, Fault> {
    let (name, value) = attributes.value(b"name").zip(attributes.value(b"value")).ok_or(Fault::Missing)?;
    Ok(Op::Set(Box::new(Set { name: name.into(), value: Composed::esi(value) })))
}
