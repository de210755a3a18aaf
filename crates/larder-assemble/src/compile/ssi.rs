//! SSI: directives `<!--#name attribute="value" -->`, in the union of nginx's and Apache's syntax.
//!
//! In: the body. Out: an operation for each directive. A directive with a fault becomes SSI's error text, but for conditions, which
//! are false as well. A directive beyond its limit ends at the next `-->`, in quotes or not.
//! Deliberately absent: `exec`, `perl`, `printenv`, `fsize`, `flastmod`. A proxy has no programs and no files to show.

use std::ops::Range;

use memchr::memmem::Finder;

use super::attribute::{Attributes, plain};
use super::directive::{EndSearch, Ending};
use super::scan::{Syntax, find};
use super::sink::{Place, Sink};
use crate::composed::Composed;
use crate::expression::{Unreadable, ssi::SsiCondition};
use crate::name::ssi::SsiName;
use crate::problem::Fault;
use crate::program::{Config, DEPTH_MAX, Echo, Encoding, Include, Op, Set, Test};
use crate::source::{Form, Source};

const MARKER: &[u8] = b"<!--#";
const TERMINATOR: &[u8] = b"-->";
const ENDING: Ending = Ending { terminator: TERMINATOR, quotes: b"\"'`", escapes: true };
/// Of a directive, from its marker on.
const DIRECTIVE_BYTES_MAX: usize = 4096;

/// The state between two directives.
#[derive(Default)]
pub(super) struct Ssi {
    end: EndSearch,
    /// Within a directive that is too long.
    is_in_rest: bool,
    open: Vec<Open>,
    /// How many are open beyond the depth that is allowed. Nothing in them counts.
    too_deep: usize,
}

struct Open {
    kind: Kind,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    If { has_else: bool },
    Block,
}

impl Syntax for Ssi {
    fn scan(&mut self, input: &[u8], at: u64, ended: bool, sink: &mut Sink) -> usize {
        let (marker, terminator) = (Finder::new(MARKER), Finder::new(TERMINATOR));
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            let from = at + used as u64;
            if self.is_in_rest {
                let (place, length) = match find(&terminator, rest, ended) {
                    Ok(found) => (sink.place(input, at, from), found + TERMINATOR.len()),
                    Err(_) if ended => (sink.place(input, at, from), rest.len()),
                    Err(safe) => return used + safe,
                };
                self.is_in_rest = false;
                used += length;
                self.write(place, from..at + used as u64, Op::Error, sink);
                continue;
            }
            let found = match find(&marker, rest, ended) {
                Ok(found) => found,
                Err(safe) => {
                    sink.text(from + safe as u64);
                    return used + safe;
                }
            };
            let start = from + found as u64;
            sink.text(start);
            let rest = rest.get(found..).unwrap_or_default();
            let within = rest.get(..DIRECTIVE_BYTES_MAX).unwrap_or(rest);
            let is_all = ended || within.len() < rest.len() || within.len() == DIRECTIVE_BYTES_MAX;
            match self.end.end(within, MARKER.len(), ENDING, is_all) {
                Some(length) => {
                    self.end = EndSearch::default();
                    let place = sink.place(input, at, start);
                    let inside = within.get(MARKER.len()..length - TERMINATOR.len()).unwrap_or_default();
                    self.directive(inside, place, start..start + length as u64, sink);
                    used += found + length;
                }
                None if within.len() == DIRECTIVE_BYTES_MAX => {
                    self.end = EndSearch::default();
                    let place = sink.place(input, at, start);
                    sink.problem(place, Fault::TooLong);
                    sink.skip(start);
                    self.is_in_rest = true;
                    used += found + DIRECTIVE_BYTES_MAX;
                }
                None if ended => {
                    let place = sink.place(input, at, start);
                    sink.problem(place, Fault::Unclosed);
                    self.write(place, start..at + input.len() as u64, Op::Error, sink);
                    used = input.len();
                }
                None => return used + found,
            }
        }
    }

    fn close(&mut self, end: u64, sink: &mut Sink) {
        for open in std::mem::take(&mut self.open).into_iter().rev() {
            sink.problem(open.place, Fault::Unclosed);
            if self.too_deep == 0 {
                sink.emit(open.place, end..end, Op::End);
            }
        }
        sink.text(end);
    }
}

impl Ssi {
    /// Writes an operation, unless it stands where nothing counts.
    fn write(&self, place: Place, at: Range<u64>, op: Op, sink: &mut Sink) {
        if self.too_deep == 0 {
            sink.emit(place, at, op);
        } else {
            sink.skip(at.start);
        }
    }

    fn directive(&mut self, inside: &[u8], place: Place, at: Range<u64>, sink: &mut Sink) {
        let inside = inside.trim_ascii_start();
        let length = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let (name, rest) = inside.split_at(length);
        let name = name.to_ascii_lowercase();
        if self.too_deep > 0 {
            return self.beyond(&name, place, at.end, sink);
        }
        let op = match &*name {
            b"if" | b"block" if self.open.len() >= DEPTH_MAX => {
                sink.problem(place, Fault::TooDeep);
                sink.emit(place, at.clone(), Op::Error);
                self.too_deep = 1;
                sink.skip(at.end);
                return;
            }
            b"if" => {
                self.open.push(Open { kind: Kind::If { has_else: false }, place });
                Ok(Op::If(test(rest, place, sink)))
            }
            b"elif" | b"else" => self.branch(&name, rest, place, sink),
            b"endif" => self.ended(false),
            b"block" => block(rest).inspect(|_| self.open.push(Open { kind: Kind::Block, place })),
            b"endblock" => {
                // What is still open inside ends with it.
                let blocks = self.open.iter().rposition(|open| open.kind == Kind::Block);
                for open in
                    self.open.split_off(blocks.map_or(self.open.len(), |block| block + 1)).into_iter().rev()
                {
                    sink.problem(open.place, Fault::Unclosed);
                    sink.emit(place, at.start..at.start, Op::End);
                }
                self.ended(true)
            }
            b"include" => include(rest, place, sink),
            b"echo" => echo(rest),
            b"set" => set(rest),
            b"config" => config(rest),
            b"comment" => Ok(Op::Skip),
            _ => Err(Fault::Unknown),
        };
        let op = op.unwrap_or_else(|fault| {
            sink.problem(place, fault);
            Op::Error
        });
        sink.emit(place, at, op);
    }

    /// Within what is nested too deeply only the nesting counts.
    fn beyond(&mut self, name: &[u8], place: Place, end: u64, sink: &mut Sink) {
        match name {
            b"if" | b"block" => self.too_deep += 1,
            b"endif" | b"endblock" => self.too_deep -= 1,
            _ => {}
        }
        if self.too_deep == 0 {
            sink.end_skip(place, end);
        }
    }

    fn branch(&mut self, name: &[u8], rest: &[u8], place: Place, sink: &mut Sink) -> Result<Op, Fault> {
        match self.open.last_mut() {
            Some(Open { kind: Kind::If { has_else: has_else @ false }, .. }) => {
                if name == b"elif" {
                    return Ok(Op::ElseIf(test(rest, place, sink)));
                }
                *has_else = true;
                Ok(Op::Else)
            }
            _ => Err(Fault::Misplaced),
        }
    }

    fn ended(&mut self, is_block: bool) -> Result<Op, Fault> {
        match self.open.last() {
            Some(open) if (open.kind == Kind::Block) == is_block => {
                self.open.pop();
                Ok(Op::End)
            }
            _ => Err(Fault::Misplaced),
        }
    }
}

/// The attributes of a directive that may have those in `allowed`, each once.
fn attributes(text: &[u8], allowed: &[&[u8]]) -> Result<Attributes, Fault> {
    let read = Attributes::ssi(text);
    if read.is_malformed || read.pairs.iter().any(|(name, _)| !allowed.contains(&&**name)) {
        return Err(Fault::Attribute);
    }
    if read.pairs.iter().any(|(name, _)| read.is_repeated(name)) {
        return Err(Fault::Repeated);
    }
    Ok(read)
}

fn test(text: &[u8], place: Place, sink: &mut Sink) -> Test {
    let read = attributes(text, &[b"expr"]).and_then(|attributes| {
        let text = attributes.value(b"expr").ok_or(Fault::Missing)?;
        SsiCondition::read(text).map_err(|unreadable| match unreadable {
            Unreadable::Syntax => Fault::Expression,
            Unreadable::Pattern => Fault::Pattern,
        })
    });
    match read {
        Ok(read) if sink.takes_patterns(read.expression.patterns()) => {
            if read.is_mixed {
                sink.problem(place, Fault::Mixed);
            }
            Test::Ssi(Box::new(read.expression))
        }
        Ok(_) => {
            sink.problem(place, Fault::TooMany);
            Test::Unreadable
        }
        Err(fault) => {
            sink.problem(place, fault);
            Test::Unreadable
        }
    }
}

fn lower(text: &[u8]) -> Box<[u8]> {
    plain(text).to_ascii_lowercase().into()
}

fn block(text: &[u8]) -> Result<Op, Fault> {
    let attributes = attributes(text, &[b"name"])?;
    Ok(Op::Block(lower(attributes.value(b"name").ok_or(Fault::Missing)?)))
}

fn include(text: &[u8], place: Place, sink: &mut Sink) -> Result<Op, Fault> {
    let names: [&[u8]; 6] = [b"virtual", b"file", b"wait", b"set", b"stub", b"onerror"];
    let attributes = attributes(text, &names)?;
    let composed = |text: &[u8]| Composed::ssi(text).map_err(|_| Fault::Value);
    let (text, form) = match (attributes.value(b"virtual"), attributes.value(b"file")) {
        (Some(text), None) => (text, Form::Path),
        (None, Some(text)) => (text, Form::Beneath),
        (None, None) => return Err(Fault::Missing),
        (Some(_), Some(_)) => return Err(Fault::Value),
    };
    let waits = match attributes.value(b"wait") {
        None => None,
        Some(text) if text.eq_ignore_ascii_case(b"yes") => Some(true),
        Some(text) if text.eq_ignore_ascii_case(b"no") => Some(false),
        Some(_) => return Err(Fault::Value),
    };
    let (set, stub) = (attributes.value(b"set").map(lower), attributes.value(b"stub").map(lower));
    if form == Form::Beneath && waits.is_some() || set.is_some() && stub.is_some() {
        return Err(Fault::Value);
    }
    let uri = sink.program().uri().clone();
    let source = Source::of(composed(text)?, form, &uri);
    let otherwise = attributes.value(b"onerror").map(composed).transpose()?;
    let otherwise = otherwise.map(|text| Source::of(text, Form::Path, &uri));
    let is_failed = |source: &Source| matches!(source, Source::Fixed(Err(_)));
    if is_failed(&source) || otherwise.as_ref().is_some_and(is_failed) {
        sink.problem(place, Fault::Reference);
    }
    let waits = waits == Some(true) || set.is_some() || form == Form::Beneath;
    let (may_be_missing, as_it_is, wait_ms_max) = (false, false, None);
    let include = Include { source, otherwise, stub, may_be_missing, waits, set, as_it_is, wait_ms_max };
    Ok(Op::Include(Box::new(include)))
}

fn echo(text: &[u8]) -> Result<Op, Fault> {
    let attributes = attributes(text, &[b"var", b"default", b"encoding"])?;
    let encoding = match attributes.value(b"encoding").map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"entity") => Encoding::Entity,
        Some(b"url" | b"urlencoded") => Encoding::Url,
        Some(b"base64") => Encoding::Base64,
        Some(b"none") => Encoding::None,
        Some(_) => return Err(Fault::Value),
    };
    let name = SsiName::of(&plain(attributes.value(b"var").ok_or(Fault::Missing)?));
    let default = attributes.value(b"default").map(|text| plain(text).into());
    Ok(Op::Echo(Box::new(Echo { name, default, encoding })))
}

fn set(text: &[u8]) -> Result<Op, Fault> {
    let attributes = attributes(text, &[b"var", b"value"])?;
    let (name, value) = attributes.value(b"var").zip(attributes.value(b"value")).ok_or(Fault::Missing)?;
    let value = Composed::ssi(value).map_err(|_| Fault::Value)?;
    Ok(Op::Set(Box::new(Set { name: lower(name), value })))
}

fn config(text: &[u8]) -> Result<Op, Fault> {
    let attributes = attributes(text, &[b"errmsg", b"timefmt", b"echomsg", b"sizefmt"])?;
    if attributes.pairs.is_empty() {
        return Err(Fault::Missing);
    }
    let text = |name: &[u8]| attributes.value(name).map(|text| plain(text).into());
    let (error_text, missing_text, date_format) = (text(b"errmsg"), text(b"echomsg"), text(b"timefmt"));
    Ok(Op::Config(Box::new(Config { error_text, missing_text, date_format })))
}
