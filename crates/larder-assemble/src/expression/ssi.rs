//! Conditions of SSI: nginx's comparisons, and Apache's `&&`, `||`, `!` and parentheses around them.
//!
//! ```text
//! or         = and *("||" and)
//! and        = not *("&&" not)
//! not        = "!" not / "(" or ")" / comparison
//! comparison = ("-n" / "-z") operand / operand [operator (operand / "/" pattern "/")]
//! operand    = quoted / bare words / v("NAME")
//! ```
//! A condition without any of these is false. Apache gives `&&` and `||` one rank; a mix of them without parentheses is marked, so that the list of problems can say so.

use super::regex::Pattern;
use super::{Comparison, DEPTH_MAX, Read, Unreadable, one_or};
use crate::composed::{Composed, Lookup, Part};
use crate::name::{Variable, ssi};

/// A condition.
#[derive(Debug)]
pub(crate) enum SsiCondition {
    Any(Vec<SsiCondition>),
    All(Vec<SsiCondition>),
    Not(Box<SsiCondition>),
    /// Not empty.
    Holds(Composed),
    Compare(Composed, Comparison, Composed),
    Match(Composed, Pattern),
}

impl SsiCondition {
    /// Reads the text of `expr`. An empty one is false, and no fault: nginx and Apache have it so.
    pub(crate) fn read(text: &[u8]) -> Result<Read<Self>, Unreadable> {
        if text.trim_ascii().is_empty() {
            return Ok(Read { expression: Self::Holds(Composed::default()), is_mixed: false });
        }
        let mut reader = Reader { rest: text, depth: 0, is_mixed: false };
        let expression = reader.any()?;
        reader.skip_blanks();
        if reader.rest.is_empty() {
            Ok(Read { expression, is_mixed: reader.is_mixed })
        } else {
            Err(Unreadable::Syntax)
        }
    }

    /// Whether it holds now. A value that is too long makes it false.
    pub(crate) fn is_true(&self, lookup: &mut impl Lookup) -> bool {
        lookup.spend(1);
        match self {
            Self::Any(sides) => sides.iter().any(|side| side.is_true(lookup)),
            Self::All(sides) => sides.iter().all(|side| side.is_true(lookup)),
            Self::Not(inner) => !inner.is_true(lookup),
            Self::Holds(operand) => operand.value(lookup).is_ok_and(|value| !value.is_empty()),
            Self::Compare(left, comparison, right) => match (left.value(lookup), right.value(lookup)) {
                (Ok(left), Ok(right)) => comparison.holds(left.text().cmp(right.text())),
                _ => false,
            },
            Self::Match(left, pattern) => {
                left.value(lookup).is_ok_and(|value| pattern.matches(&value, lookup))
            }
        }
    }

    /// How many patterns are in it, each of which may take some memory.
    pub(crate) fn patterns(&self) -> usize {
        match self {
            Self::Any(sides) | Self::All(sides) => sides.iter().map(Self::patterns).sum(),
            Self::Not(inner) => inner.patterns(),
            Self::Match(..) => 1,
            Self::Holds(_) | Self::Compare(..) => 0,
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
    is_mixed: bool,
}

/// How a comparison begins that may have a pattern on its right.
enum Operator {
    Plain(Comparison),
    /// `=`, `==` and `=~`, or `!=` and `!~`.
    Same,
    Other,
    /// Only a pattern may follow.
    Matches,
    Differs,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, what: &[u8]) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn any(&mut self) -> Result<SsiCondition, Unreadable> {
        let first = self.all()?;
        let mut sides = vec![first];
        while self.take(b"||") {
            sides.push(self.all()?);
        }
        let is_plain = |side: &SsiCondition| !matches!(side, SsiCondition::All(_));
        // What stands in parentheses is wrapped, and does not show here.
        self.is_mixed |= sides.len() > 1 && !sides.iter().all(is_plain);
        Ok(one_or(sides, SsiCondition::Any))
    }

    fn all(&mut self) -> Result<SsiCondition, Unreadable> {
        let mut sides = vec![self.not()?];
        while self.take(b"&&") {
            sides.push(self.not()?);
        }
        Ok(one_or(sides, SsiCondition::All))
    }

    fn not(&mut self) -> Result<SsiCondition, Unreadable> {
        let mut negations = 0_usize;
        while self.take(b"!") {
            negations += 1;
        }
        let inner = if self.take(b"(") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(Unreadable::Syntax);
            }
            let inner = self.any()?;
            self.depth -= 1;
            if !self.take(b")") {
                return Err(Unreadable::Syntax);
            }
            // One side is enough to keep the rank of what is inside from showing outside.
            if matches!(inner, SsiCondition::All(_)) { SsiCondition::Any(vec![inner]) } else { inner }
        } else {
            self.comparison()?
        };
        Ok(if negations % 2 == 1 { SsiCondition::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> Result<SsiCondition, Unreadable> {
        self.skip_blanks();
        if let [b'-', sign @ (b'n' | b'z'), blank, after @ ..] = self.rest
            && (blank.is_ascii_whitespace() || matches!(blank, b'"' | b'\'' | b'$'))
        {
            self.rest =
                if blank.is_ascii_whitespace() { after } else { self.rest.get(2..).unwrap_or_default() };
            let holds = SsiCondition::Holds(self.operand()?.ok_or(Unreadable::Syntax)?);
            return Ok(if *sign == b'n' { holds } else { SsiCondition::Not(Box::new(holds)) });
        }
        let left = self.operand()?.ok_or(Unreadable::Syntax)?;
        let Some(operator) = self.operator() else { return Ok(SsiCondition::Holds(left)) };
        let pattern = match operator {
            Operator::Plain(_) => None,
            _ => self.pattern(),
        };
        if let Some(pattern) = pattern {
            let found = SsiCondition::Match(left, Pattern::compile(&pattern)?);
            let is_negated = matches!(operator, Operator::Other | Operator::Differs);
            return Ok(if is_negated { SsiCondition::Not(Box::new(found)) } else { found });
        }
        let comparison = match operator {
            Operator::Plain(comparison) => comparison,
            Operator::Same => Comparison::Equal,
            Operator::Other => Comparison::Unequal,
            Operator::Matches | Operator::Differs => return Err(Unreadable::Syntax),
        };
        // Nothing on the right is an empty text.
        let right = self.operand()?.unwrap_or_default();
        Ok(SsiCondition::Compare(left, comparison, right))
    }

    fn operator(&mut self) -> Option<Operator> {
        self.skip_blanks();
        let (operator, rest) = match self.rest {
            [b'=', b'~', rest @ ..] => (Operator::Matches, rest),
            [b'!', b'~', rest @ ..] => (Operator::Differs, rest),
            [b'=', b'=', rest @ ..] | [b'=', rest @ ..] => (Operator::Same, rest),
            [b'!', b'=', rest @ ..] => (Operator::Other, rest),
            text => {
                let (comparison, rest) = Comparison::read(text)?;
                (Operator::Plain(comparison), rest)
            }
        };
        self.rest = rest;
        Some(operator)
    }

    /// What stands between two slashes, if nothing but the end of this comparison follows: `/a/b` is a path.
    fn pattern(&mut self) -> Option<Vec<u8>> {
        self.skip_blanks();
        let mut rest = self.rest.strip_prefix(b"/")?;
        let mut pattern = Vec::new();
        loop {
            match rest {
                [b'\\', b'/', after @ ..] => {
                    pattern.push(b'/');
                    rest = after;
                }
                [b'\\', escaped, after @ ..] => {
                    pattern.extend([b'\\', *escaped]);
                    rest = after;
                }
                [b'/', after @ ..] => {
                    let follows = after.trim_ascii_start();
                    let is_end = matches!(follows, [] | [b')', ..] | [b'&', b'&', ..] | [b'|', b'|', ..]);
                    self.rest = if is_end { after } else { return None };
                    return Some(pattern);
                }
                [byte, after @ ..] => {
                    pattern.push(*byte);
                    rest = after;
                }
                [] => return None,
            }
        }
    }

    /// `None` where there is none.
    fn operand(&mut self) -> Result<Option<Composed>, Unreadable> {
        self.skip_blanks();
        match self.rest {
            [quote @ (b'\'' | b'"'), after @ ..] => {
                let end = closing(after, *quote).ok_or(Unreadable::Syntax)?;
                let (text, rest) = after.split_at(end);
                self.rest = rest.get(1..).unwrap_or_default();
                composed(text).map(Some)
            }
            [b'v', after @ ..] if after.trim_ascii_start().starts_with(b"(") => self.named(after).map(Some),
            _ => self.words(),
        }
    }

    /// `v("NAME")`, from its parenthesis on.
    fn named(&mut self, after: &'a [u8]) -> Result<Composed, Unreadable> {
        let inside = after.trim_ascii_start().get(1..).unwrap_or_default().trim_ascii_start();
        let [quote @ (b'\'' | b'"'), inside @ ..] = inside else { return Err(Unreadable::Syntax) };
        let end = closing(inside, *quote).ok_or(Unreadable::Syntax)?;
        let (name, rest) = inside.split_at(end);
        let rest = rest.get(1..).unwrap_or_default().trim_ascii_start();
        self.rest = rest.strip_prefix(b")").ok_or(Unreadable::Syntax)?;
        Ok(Composed { parts: [Part::Variable(Variable::Ssi(ssi::SsiName::of(name)))].into() })
    }

    /// Bare words up to the next operator. Blanks between them become one.
    fn words(&mut self) -> Result<Option<Composed>, Unreadable> {
        let mut words = Vec::new();
        loop {
            match self.rest {
                [] | [b'=' | b'<' | b'>' | b'(' | b')' | b'\'' | b'"', ..] => break,
                [b'!', b'=' | b'~', ..] | [b'&', b'&', ..] | [b'|', b'|', ..] => break,
                [b'$', b'{', after @ ..] => {
                    let end = after.iter().position(|byte| *byte == b'}').ok_or(Unreadable::Syntax)?;
                    let (variable, rest) = self.rest.split_at(end + 3);
                    words.extend_from_slice(variable);
                    self.rest = rest;
                }
                [b'\\', escaped, after @ ..] => {
                    words.extend([b'\\', *escaped]);
                    self.rest = after;
                }
                [byte, after @ ..] if byte.is_ascii_whitespace() => {
                    if words.last().is_some_and(|last| *last != b' ') {
                        words.push(b' ');
                    }
                    self.rest = after;
                }
                [byte, after @ ..] => {
                    words.push(*byte);
                    self.rest = after;
                }
            }
        }
        let words = words.trim_ascii_end();
        if words.is_empty() { Ok(None) } else { composed(words).map(Some) }
    }
}

fn composed(text: &[u8]) -> Result<Composed, Unreadable> {
    Composed::ssi(text).map_err(|_| Unreadable::Syntax)
}

/// Where the quote ends that has begun.
fn closing(text: &[u8], quote: u8) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let closes = *byte == quote && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })
}
