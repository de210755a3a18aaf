//! ESI 1.0: elements `<esi:name>`, `<!--esi ... -->`, and variables in `vars`.
//!
//! In: the body. Out: operations. No element of ESI is text: what is unknown or misplaced loses its tags and keeps its content. Of
//! `<!--esi ... -->` all between the two markers stays. Other comments and CDATA sections are text and are not searched. An
//! element that is still open where the template ends is closed there: what is in it may be on its way to a client already.
//! Deliberately absent: `inline`, `foreach`, `function`, `eval`, and attributes that change a fragment's request.

use std::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memchr3};

use super::attribute::Attributes;
use super::directive::{EndSearch, Ending};
use super::scan::{Syntax, find};
use super::sink::{Place, Sink};
use crate::name::esi::{EsiName, Found};
use crate::problem::Fault;
use crate::program::Op;
use elements::Elements;

mod elements;

const ENDING: Ending = Ending { terminator: b">", quotes: b"\"'", escapes: false };
const START: &[u8] = b"<esi:";
const END: &[u8] = b"</esi:";
const COMMENT: &[u8] = b"<!--";
const UNWRAPPED: &[u8] = b"<!--esi";
const CDATA: &[u8] = b"<![CDATA[";
const LITERAL_END: &[u8] = b"</esi:text>";
/// Of a tag with its attributes.
const TAG_BYTES_MAX: usize = 16 * 1024;

/// The state between two tags.
#[derive(Default)]
pub(super) struct Esi {
    mode: Mode,
    end: EndSearch,
    /// How many `<!--esi` are open.
    unwrapped: usize,
    elements: Elements,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Text,
    Comment,
    Cdata,
    /// Within `<esi:text>`.
    Literal,
    /// Within a tag that is too long.
    Rest,
}

/// What begins at a byte that may be the first of something.
enum Begins {
    Tag {
        is_end: bool,
    },
    Text(Mode, usize),
    Unwrapped,
    Wrapped,
    Variable(Box<EsiName>, usize),
    /// Nothing.
    Nothing,
    /// More has to be seen.
    Cut,
}

impl Syntax for Esi {
    fn scan(&mut self, input: &[u8], at: u64, ended: bool, sink: &mut Sink) -> usize {
        let mut used = 0;
        while used < input.len() {
            let rest = input.get(used..).unwrap_or_default();
            let from = at + used as u64;
            let step = match self.mode {
                Mode::Text => self.text(input, used, at, ended, sink),
                Mode::Comment => self.until(b"-->", rest, from, ended, sink),
                Mode::Cdata => self.until(b"]]>", rest, from, ended, sink),
                Mode::Literal => {
                    let step = self.until(LITERAL_END, rest, from, ended, sink);
                    if self.mode == Mode::Text {
                        // The end tag is no text, and was not handed on as such.
                        let end = from + step as u64;
                        let place = sink.place(input, at, end);
                        self.elements.drop_tag(place, end - LITERAL_END.len() as u64..end, sink);
                    }
                    step
                }
                Mode::Rest => match memchr(b'>', rest) {
                    Some(found) => {
                        self.mode = Mode::Text;
                        let end = from + found as u64 + 1;
                        let place = sink.place(input, at, end);
                        self.elements.drop_tag(place, end..end, sink);
                        found + 1
                    }
                    None => rest.len(),
                },
            };
            if step == 0 {
                break;
            }
            used += step;
        }
        used
    }

    fn close(&mut self, end: u64, sink: &mut Sink) {
        self.elements.close_all(end, sink);
        sink.text(end);
    }
}

impl Esi {
    /// Text up to `terminator`. The end of `<esi:text>` is left out.
    fn until(&mut self, terminator: &[u8], rest: &[u8], from: u64, ended: bool, sink: &mut Sink) -> usize {
        match find(&Finder::new(terminator), rest, ended) {
            Ok(found) => {
                let length = found + terminator.len();
                let is_text = self.mode != Mode::Literal;
                sink.text(from + if is_text { length } else { found } as u64);
                self.mode = Mode::Text;
                length
            }
            Err(safe) => {
                sink.text(from + safe as u64);
                safe
            }
        }
    }

    /// Text, up to and with the next thing that is none.
    fn text(&mut self, input: &[u8], used: usize, at: u64, ended: bool, sink: &mut Sink) -> usize {
        let mut seen = 0;
        loop {
            let rest = input.get(used + seen..).unwrap_or_default();
            let found = match (self.elements.are_variables_read(), self.unwrapped > 0) {
                (false, false) => memchr(b'<', rest),
                (true, false) => memchr2(b'<', b'$', rest),
                (false, true) => memchr2(b'<', b'-', rest),
                (true, true) => memchr3(b'<', b'$', b'-', rest),
            };
            let Some(found) = found else {
                sink.text(at + input.len() as u64);
                return input.len() - used;
            };
            let offset = used + seen + found;
            let start = at + offset as u64;
            let rest = input.get(offset..).unwrap_or_default();
            let begun = begins(rest, ended);
            if matches!(begun, Begins::Nothing) {
                seen += found + 1;
                continue;
            }
            sink.text(start);
            let length = match begun {
                Begins::Cut | Begins::Nothing => 0,
                Begins::Text(mode, length) => {
                    self.mode = mode;
                    length
                }
                Begins::Tag { is_end } => self.tag(input, offset, at, is_end, ended, sink),
                Begins::Unwrapped => {
                    self.unwrapped += 1;
                    self.drop(input, at, start..start + UNWRAPPED.len() as u64, sink)
                }
                Begins::Wrapped => {
                    self.unwrapped -= 1;
                    self.drop(input, at, start..start + 3, sink)
                }
                Begins::Variable(name, length) => {
                    let place = sink.place(input, at, start);
                    self.elements.write(place, start..start + length as u64, Op::Variable(name), sink);
                    length
                }
            };
            return offset - used + length;
        }
    }

    fn drop(&mut self, input: &[u8], at: u64, range: Range<u64>, sink: &mut Sink) -> usize {
        let place = sink.place(input, at, range.start);
        self.elements.drop_tag(place, range.clone(), sink);
        usize::try_from(range.end - range.start).unwrap_or(0)
    }

    /// Reads a tag; 0 where more of it has to be seen.
    fn tag(
        &mut self,
        input: &[u8],
        offset: usize,
        at: u64,
        is_end: bool,
        ended: bool,
        sink: &mut Sink,
    ) -> usize {
        let rest = input.get(offset..).unwrap_or_default();
        let start = at + offset as u64;
        let within = rest.get(..TAG_BYTES_MAX).unwrap_or(rest);
        let is_full = within.len() == TAG_BYTES_MAX;
        let marker = if is_end { END } else { START };
        match self.end.end(within, marker.len(), ENDING, ended || is_full) {
            Some(length) => {
                self.end = EndSearch::default();
                let place = sink.place(input, at, start);
                let inside = within.get(marker.len()..length - 1).unwrap_or_default();
                let range = start..start + length as u64;
                if is_end {
                    self.elements.end(inside, place, range, sink);
                } else if self.start(inside, place, range, sink) {
                    self.mode = Mode::Literal;
                }
                length
            }
            None if is_full => {
                self.end = EndSearch::default();
                let place = sink.place(input, at, start);
                sink.problem(place, Fault::TooLong);
                sink.skip(start);
                self.mode = Mode::Rest;
                TAG_BYTES_MAX
            }
            None if ended => {
                let place = sink.place(input, at, start);
                sink.problem(place, Fault::Unclosed);
                sink.skip(start);
                rest.len()
            }
            None => 0,
        }
    }

    /// Reads a start tag; true where literal text follows.
    fn start(&mut self, inside: &[u8], place: Place, at: Range<u64>, sink: &mut Sink) -> bool {
        let (inside, is_empty) = match inside.trim_ascii_end() {
            [inside @ .., b'/'] => (inside, true),
            inside => (inside, false),
        };
        let length = inside.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
        let (name, rest) = inside.split_at(length);
        let attributes = Attributes::esi(rest);
        if attributes.is_malformed {
            sink.problem(place, Fault::Attribute);
        }
        self.elements.start(name, &attributes, is_empty, place, at, sink)
    }
}

fn begins(rest: &[u8], ended: bool) -> Begins {
    let is_cut = |marker: &[u8]| !ended && rest.len() < marker.len() && marker.starts_with(rest);
    match rest {
        [b'$', ..] => match EsiName::read(rest) {
            Found::Variable(name, length) => Begins::Variable(Box::new(name), length),
            Found::Cut if !ended => Begins::Cut,
            _ => Begins::Nothing,
        },
        [b'-', ..] if rest.starts_with(b"-->") => Begins::Wrapped,
        [b'-', ..] if is_cut(b"-->") => Begins::Cut,
        _ if rest.starts_with(START) => Begins::Tag { is_end: false },
        _ if rest.starts_with(END) => Begins::Tag { is_end: true },
        _ if rest.starts_with(CDATA) => Begins::Text(Mode::Cdata, CDATA.len()),
        _ if rest.starts_with(UNWRAPPED) => match rest.get(UNWRAPPED.len()) {
            // Of a longer word it is the beginning of a comment.
            Some(byte) if !byte.is_ascii_alphanumeric() => Begins::Unwrapped,
            None if !ended => Begins::Cut,
            _ => Begins::Text(Mode::Comment, COMMENT.len()),
        },
        _ if is_cut(UNWRAPPED) || is_cut(END) || is_cut(CDATA) || is_cut(START) => Begins::Cut,
        _ if rest.starts_with(COMMENT) => Begins::Text(Mode::Comment, COMMENT.len()),
        _ => Begins::Nothing,
    }
}
