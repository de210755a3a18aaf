//! Text of a template with variables in it: `$name` and `${name}` in SSI, `$(NAME)` in ESI.
//!
//! In: the text, when the template is compiled. Out: its parts, and later the value that they have together. Text without
//! variables is one part, and its value shares its bytes. Deliberately absent: what a variable stands for ([`Lookup`]).

use bytes::Bytes;

use crate::name::{Variable, esi, ssi};
use crate::value::{Joined, VALUE_BYTES_MAX, Value, ValueTooLong};

/// Where values come from.
pub(crate) trait Lookup {
    /// The value of a variable; `None` where it has none.
    fn look_up(&mut self, variable: &Variable) -> Option<Value>;

    /// Counts work that a page may do a limited amount of.
    fn spend(&mut self, operations: usize);

    /// Takes what the groups of a pattern matched: by number, and by name.
    fn captured(&mut self, numbered: Vec<Option<Value>>, named: Vec<(Box<[u8]>, Value)>);
}

/// A part of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The template's own text.
    Own(Bytes),
    /// A variable.
    Variable(Variable),
}

/// Text with variables in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Composed {
    pub(crate) parts: Box<[Part]>,
}

/// `${` without `}`, or with nothing between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnclosedVariable;

/// Collects parts, so that own text is one part.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    own: Vec<u8>,
}

impl Parts {
    fn variable(&mut self, variable: Variable) {
        self.flush();
        self.parts.push(Part::Variable(variable));
    }

    fn flush(&mut self) {
        if !self.own.is_empty() {
            self.parts.push(Part::Own(std::mem::take(&mut self.own).into()));
        }
    }

    fn finish(mut self) -> Composed {
        self.flush();
        Composed { parts: self.parts.into() }
    }
}

impl Composed {
    /// Reads text of SSI. A backslash takes the meaning from `$`, a quote or another backslash.
    pub(crate) fn ssi(text: &[u8]) -> Result<Self, UnclosedVariable> {
        let mut parts = Parts::default();
        let mut rest = text;
        while let [byte, after @ ..] = rest {
            rest = after;
            match (byte, after) {
                (b'\\', [escaped @ (b'$' | b'\\' | b'"' | b'\'' | b'`'), after @ ..]) => {
                    parts.own.push(*escaped);
                    rest = after;
                }
                (b'$', [b'{', after @ ..]) => {
                    let end = after.iter().position(|byte| *byte == b'}').ok_or(UnclosedVariable)?;
                    let (name, after) = after.split_at(end);
                    if name.is_empty() {
                        return Err(UnclosedVariable);
                    }
                    parts.variable(Variable::Ssi(ssi::SsiName::of(name)));
                    rest = after.get(1..).unwrap_or_default();
                }
                (b'$', after) if ssi::SsiName::len_at(after) > 0 => {
                    let (name, after) = after.split_at(ssi::SsiName::len_at(after));
                    parts.variable(Variable::Ssi(ssi::SsiName::of(name)));
                    rest = after;
                }
                _ => parts.own.push(*byte),
            }
        }
        Ok(parts.finish())
    }

    /// Reads text of ESI. What is no variable is text.
    pub(crate) fn esi(text: &[u8]) -> Self {
        let mut parts = Parts::default();
        let mut rest = text;
        while let [byte, after @ ..] = rest {
            if let (b'$', esi::Found::Variable(name, length)) = (byte, esi::EsiName::read(rest)) {
                parts.variable(Variable::Esi(name));
                rest = rest.get(length..).unwrap_or_default();
            } else {
                parts.own.push(*byte);
                rest = after;
            }
        }
        parts.finish()
    }

    /// The text, where there is no variable in it.
    pub(crate) fn fixed(&self) -> Option<Bytes> {
        match &*self.parts {
            [] => Some(Bytes::new()),
            [Part::Own(text)] => Some(text.clone()),
            _ => None,
        }
    }

    /// Its value now. What has no value is empty.
    pub(crate) fn value(&self, lookup: &mut impl Lookup) -> Result<Value, ValueTooLong> {
        match &*self.parts {
            [] => Ok(Value::default()),
            [Part::Own(text)] => Ok(Value::own(text.clone())),
            [Part::Variable(variable)] => {
                let value = lookup.look_up(variable).unwrap_or_default();
                if value.text().len() > VALUE_BYTES_MAX { Err(ValueTooLong) } else { Ok(value) }
            }
            parts => {
                let mut joined = Joined::default();
                for part in parts {
                    match part {
                        Part::Own(text) => joined.own(text)?,
                        Part::Variable(variable) => {
                            lookup.spend(1);
                            if let Some(value) = lookup.look_up(variable) {
                                joined.value(&value)?;
                            }
                        }
                    }
                }
                Ok(joined.finish())
            }
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        self.parts
            .iter()
            .map(|part| size_of::<Part>() + if let Part::Own(text) = part { text.len() } else { 32 })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssi(text: &str) -> Result<String, UnclosedVariable> {
        let parts = Composed::ssi(text.as_bytes())?.parts;
        Ok(parts.iter().map(shown).collect())
    }

    fn shown(part: &Part) -> String {
        match part {
            Part::Own(text) => format!("[{}]", String::from_utf8_lossy(text)),
            Part::Variable(Variable::Ssi(name)) => format!("({})", String::from_utf8_lossy(&name.text)),
            Part::Variable(Variable::Esi(name)) => format!("({:?})", name.known),
        }
    }

    #[test]
    fn variables_of_ssi() {
        for (text, expected) in [
            ("", ""),
            ("a", "[a]"),
            ("$a", "(a)"),
            ("/$A/${b}c$", "[/](a)[/](b)[c$]"),
            ("\\$a\\\\\\\"\\n", "[$a\\\"\\n]"),
            ("$1$10", "(1)(1)[0]"),
            ("${a b}", "(a b)"),
            ("$-$$a", "[$-$](a)"),
        ] {
            assert_eq!(ssi(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(ssi("${a"), Err(UnclosedVariable));
        assert_eq!(ssi("${}"), Err(UnclosedVariable));
    }

    #[test]
    fn variables_of_esi() {
        let parts = Composed::esi(b"/a?$(QUERY_STRING)&x=$(y$(HTTP_HOST)").parts;
        let shown: String = parts.iter().map(shown).collect();
        assert_eq!(shown, "[/a?](Query)[&x=$(y](Host)");
    }
}
