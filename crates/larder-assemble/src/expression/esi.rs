//! Conditions of ESI (W3C 5).
//!
//! ```text
//! or         = and *("|" and)
//! and        = not *("&" not)
//! not        = "!" not / "(" or ")" / comparison
//! comparison = operand [operator operand]
//! operand    = "'" literal "'" / "$(" variable ")" / word
//! ```
//! A side that is empty or missing makes a comparison false, whatever its operator. But against a literal `''`, `==` and `!=`
//! ask whether the other side is empty, because pages of the field rely on it. A value alone is no condition, but for
//! `HTTP_ACCEPT_LANGUAGE{tag}`, which is true or false by itself.

use std::cmp::Ordering;

use bytes::Bytes;

use super::{Comparison, DEPTH_MAX, Read, Unreadable, one_or};
use crate::composed::{Composed, Lookup, Part};
use crate::name::{Variable, esi};
use crate::value::Value;

/// A condition.
#[derive(Debug)]
pub(crate) enum EsiCondition {
    Any(Vec<EsiCondition>),
    All(Vec<EsiCondition>),
    Not(Box<EsiCondition>),
    /// A value alone.
    Value(Composed),
    Compare(Composed, Comparison, Composed),
}

impl EsiCondition {
    /// Reads the text of `test`, in which references to characters are decoded already.
    pub(crate) fn read(text: &[u8]) -> Result<Read<Self>, Unreadable> {
        let mut reader = Reader { rest: text, depth: 0, is_mixed: false };
        let expression = reader.any()?;
        if reader.rest.trim_ascii_start().is_empty() {
            Ok(Read { expression, is_mixed: reader.is_mixed })
        } else {
            Err(Unreadable::Syntax)
        }
    }

    /// Whether it holds now.
    pub(crate) fn is_true(&self, lookup: &mut impl Lookup) -> bool {
        lookup.spend(1);
        match self {
            Self::Any(sides) => sides.iter().any(|side| side.is_true(lookup)),
            Self::All(sides) => sides.iter().all(|side| side.is_true(lookup)),
            Self::Not(inner) => !inner.is_true(lookup),
            Self::Value(operand) => match &*operand.parts {
                [Part::Variable(Variable::Esi(esi::EsiName { known: esi::EsiKnown::Language(_), .. }))] => {
                    operand.value(lookup).is_ok_and(|value| &**value.text() == b"true")
                }
                _ => false,
            },
            Self::Compare(left, comparison, right) => {
                let asks_for_empty = left.parts.is_empty() || right.parts.is_empty();
                let (Ok(left), Ok(right)) = (left.value(lookup), right.value(lookup)) else { return false };
                match comparison {
                    Comparison::Equal | Comparison::Unequal if asks_for_empty => {
                        comparison.holds(left.text().cmp(right.text()))
                    }
                    _ if left.is_empty() || right.is_empty() => false,
                    _ => comparison.holds(compare(&left, &right)),
                }
            }
        }
    }
}

/// As numbers, if both are; else as text.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (Number::read(left.text()), Number::read(right.text())) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.text().cmp(right.text()),
    }
}

/// A decimal number of any length, without leading zeros, and without trailing ones in its fraction.
#[derive(PartialEq, Eq)]
struct Number<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Number<'a> {
    fn read(text: &'a [u8]) -> Option<Self> {
        let text = text.trim_ascii();
        let (is_negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
        let (whole, fraction) = digits.split_at(point);
        let fraction_digits = fraction.get(1..).unwrap_or_default();
        let are_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        let is_cut = fraction == b"." || whole.is_empty();
        if is_cut || !are_digits(whole) || !are_digits(fraction_digits) {
            return None;
        }
        let zeros = whole.iter().take_while(|byte| **byte == b'0').count();
        let kept = fraction_digits.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
        let (whole, fraction) = (whole.get(zeros..)?, fraction_digits.get(..kept)?);
        let is_zero = whole.is_empty() && fraction.is_empty();
        Some(Self { is_negative: is_negative && !is_zero, whole, fraction })
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let size = || {
            let whole = self.whole.len().cmp(&other.whole.len()).then(self.whole.cmp(other.whole));
            whole.then(self.fraction.cmp(other.fraction))
        };
        match (self.is_negative, other.is_negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => size(),
            (true, true) => size().reverse(),
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
    is_mixed: bool,
}

impl Reader<'_> {
    fn take(&mut self, byte: u8) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// `&` and `|`; twice means the same.
    fn joins(&mut self, byte: u8) -> bool {
        let joins = self.take(byte);
        if joins && self.rest.first() == Some(&byte) {
            self.take(byte);
        }
        joins
    }

    fn any(&mut self) -> Result<EsiCondition, Unreadable> {
        let mut sides = vec![self.all()?];
        while self.joins(b'|') {
            sides.push(self.all()?);
        }
        self.is_mixed |= sides.len() > 1 && sides.iter().any(|side| matches!(side, EsiCondition::All(_)));
        Ok(one_or(sides, EsiCondition::Any))
    }

    fn all(&mut self) -> Result<EsiCondition, Unreadable> {
        let mut sides = vec![self.not()?];
        while self.joins(b'&') {
            sides.push(self.not()?);
        }
        Ok(one_or(sides, EsiCondition::All))
    }

    fn not(&mut self) -> Result<EsiCondition, Unreadable> {
        let mut negations = 0_usize;
        while self.take(b'!') {
            negations += 1;
        }
        let inner = if self.take(b'(') {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(Unreadable::Syntax);
            }
            let inner = self.any()?;
            self.depth -= 1;
            if !self.take(b')') {
                return Err(Unreadable::Syntax);
            }
            // One side is enough to keep the rank of what is inside from showing outside.
            if matches!(inner, EsiCondition::All(_)) { EsiCondition::Any(vec![inner]) } else { inner }
        } else {
            let left = self.operand()?;
            self.rest = self.rest.trim_ascii_start();
            match Comparison::read(self.rest) {
                None => EsiCondition::Value(left),
                Some((comparison, rest)) => {
                    self.rest = rest;
                    EsiCondition::Compare(left, comparison, self.operand()?)
                }
            }
        };
        Ok(if negations % 2 == 1 { EsiCondition::Not(Box::new(inner)) } else { inner })
    }

    fn operand(&mut self) -> Result<Composed, Unreadable> {
        self.rest = self.rest.trim_ascii_start();
        let (part, length) = match self.rest {
            [b'\'', after @ ..] => {
                let end = after.iter().position(|byte| *byte == b'\'').ok_or(Unreadable::Syntax)?;
                (after.get(..end).map(Bytes::copy_from_slice).map(Part::Own), end + 2)
            }
            [b'$', ..] => match esi::EsiName::read(self.rest) {
                esi::Found::Variable(name, length) => (Some(Part::Variable(Variable::Esi(name))), length),
                _ => return Err(Unreadable::Syntax),
            },
            rest => {
                let is_of_word =
                    |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
                let length = rest.iter().take_while(is_of_word).count();
                if length == 0 {
                    return Err(Unreadable::Syntax);
                }
                (rest.get(..length).map(Bytes::copy_from_slice).map(Part::Own), length)
            }
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
        let is_empty = |part: &Part| matches!(part, Part::Own(text) if text.is_empty());
        Ok(Composed { parts: part.into_iter().filter(|part| !is_empty(part)).collect() })
    }
}
