//! Values of variables, with the part of them that comes from a request or a fragment.
//!
//! In: text of a template, and text from elsewhere. Out: a value that knows which is which. A reference takes the text of
//! its template as it is written, and escapes all else: `set var="base" value="/a/b"` may hold a path, a cookie may not.
//! Cloning shares the bytes. Deliberately absent: the escaping itself.

use std::ops::Range;

use bytes::Bytes;
use smallvec::SmallVec;

/// The longest value of a variable, in bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A value would be longer than [`VALUE_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueTooLong;

/// A value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value {
    text: Bytes,
    /// Where it is not the template's own text: in order, apart from each other.
    foreign: SmallVec<[Range<usize>; 1]>,
}

impl Value {
    /// Text of the template.
    pub(crate) fn own(text: Bytes) -> Self {
        Self { text, foreign: SmallVec::new() }
    }

    /// Text that came with the request, or from a fragment.
    pub(crate) fn foreign(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let foreign = (!text.is_empty()).then_some(0..text.len());
        Self { text, foreign: foreign.into_iter().collect() }
    }

    /// All of it.
    pub(crate) fn text(&self) -> &Bytes {
        &self.text
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// A part of it.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        let of_part = |foreign: &Range<usize>| {
            let (start, end) = (foreign.start.max(range.start), foreign.end.min(range.end));
            (start < end).then(|| start - range.start..end - range.start)
        };
        Self {
            text: self.text.slice(range.clone()),
            foreign: self.foreign.iter().filter_map(of_part).collect(),
        }
    }

    /// The stretches of it in order; true for what is not the template's own.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let text = &self.text;
        let ends = self.foreign.iter().flat_map(|range| [(range.start, false), (range.end, true)]);
        let mut from = 0;
        ends.chain([(text.len(), false)]).filter_map(move |(end, is_foreign)| {
            let stretch = text.get(from..end).unwrap_or_default();
            from = end;
            (!stretch.is_empty()).then_some((stretch, is_foreign))
        })
    }
}

/// A value that is put together.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    text: Vec<u8>,
    foreign: SmallVec<[Range<usize>; 1]>,
}

impl Joined {
    /// Adds text of the template.
    pub(crate) fn own(&mut self, text: &[u8]) -> Result<(), ValueTooLong> {
        if self.text.len() + text.len() > VALUE_BYTES_MAX {
            return Err(ValueTooLong);
        }
        self.text.extend_from_slice(text);
        Ok(())
    }

    /// Adds another value.
    pub(crate) fn value(&mut self, value: &Value) -> Result<(), ValueTooLong> {
        let before = self.text.len();
        self.own(&value.text)?;
        for range in &value.foreign {
            let range = before + range.start..before + range.end;
            match self.foreign.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.foreign.push(range),
            }
        }
        Ok(())
    }

    /// What was put together.
    pub(crate) fn finish(self) -> Value {
        Value { text: self.text.into(), foreign: self.foreign }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_knows_what_is_the_template_s_own() {
        let mut joined = Joined::default();
        let visitor = Value::foreign("<x>");
        for part in
            [&Value::own("/a/".into()), &visitor, &visitor, &Value::own("".into()), &Value::own("b".into())]
        {
            joined.value(part).expect("short");
        }
        let value = joined.finish();
        let found: Vec<_> = value.stretches().collect();
        assert_eq!(found, [(&b"/a/"[..], false), (b"<x><x>", true), (b"b", false)]);
        let found = value.slice(2..5);
        assert_eq!(found.stretches().collect::<Vec<_>>(), [(&b"/"[..], false), (b"<x", true)]);
        assert_eq!(value.slice(9..10), Value::own("b".into()));
        assert!(Value::foreign("").stretches().next().is_none());
    }

    #[test]
    fn a_value_has_a_limit() {
        let mut joined = Joined::default();
        let half = Value::foreign(vec![b'x'; VALUE_BYTES_MAX / 2]);
        assert_eq!(joined.value(&half), Ok(()));
        assert_eq!(joined.value(&half), Ok(()));
        assert_eq!(joined.own(b"x"), Err(ValueTooLong));
        assert_eq!(joined.finish().text().len(), VALUE_BYTES_MAX);
    }
}
