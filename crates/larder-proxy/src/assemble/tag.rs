//! The entity tag of a page: 128 bits of SHA-256 over what the page was put together from.
//!
//! In: the pieces of a page in order, which are ranges of templates, values, and bodies of fragments. Out: the tag. Templates and
//! bodies go in by their digests, which are made once for each stored body, so a page costs some bytes for each of its
//! pieces and not its own length. Pages with the same tag have the same bytes, and the same parts and values give the same tag in
//! every process. A template is numbered by its first text in the page, because the order in which templates come is chance.

use std::ops::Range;

use aws_lc_rs::digest::{Context, SHA256, digest};
use bytes::Bytes;
use http::HeaderValue;
use smallvec::SmallVec;

/// A SHA-256.
pub(crate) type Digest = [u8; 32];

/// A longer body has no digest where none is kept: making it would keep a worker from its other work.
pub(crate) const DIGESTED_BYTES_MAX: u64 = 1 << 20;

/// A digest and a range, each with what it is.
const PART_BYTES: usize = 64;

/// What a token is; its content follows, of a fixed length or behind its length.
#[repr(u8)]
#[derive(Clone, Copy)]
enum Token {
    Template = 1,
    Text = 2,
    Value = 3,
    Fragment = 4,
}

/// What a tag is made from.
#[derive(Default)]
pub(crate) struct TagInput {
    tokens: Vec<u8>,
    /// The templates that have text in the page, in the order of their first one.
    templates: SmallVec<[usize; 4]>,
    /// The last text, which may go on.
    text: Option<(usize, Range<u64>)>,
    /// A digest is missing: then there is no tag.
    is_incomplete: bool,
}

impl TagInput {
    /// With room for the tokens of so many parts, with text between them.
    pub(crate) fn for_parts(parts: usize) -> Self {
        Self { tokens: Vec::with_capacity(parts * PART_BYTES), ..Self::default() }
    }

    /// Text of a template. Whether it comes in one piece or in several makes no difference.
    pub(crate) fn text(
        &mut self,
        template: usize,
        range: &Range<u64>,
        digest: impl FnOnce() -> Option<Digest>,
    ) {
        if let Some((last, text)) = &mut self.text
            && *last == template
            && text.end == range.start
        {
            text.end = range.end;
            return;
        }
        self.end_text();
        self.text = Some((template, range.clone()));
        if !self.templates.contains(&template) {
            self.templates.push(template);
            self.digest(Token::Template, digest());
        }
    }

    /// Bytes that are in no body.
    pub(crate) fn value(&mut self, bytes: &[u8]) {
        self.end_text();
        self.tokens.push(Token::Value as u8);
        self.number(bytes.len() as u64);
        self.tokens.extend_from_slice(bytes);
    }

    /// The whole body of a fragment.
    pub(crate) fn fragment(&mut self, digest: Option<Digest>) {
        self.end_text();
        self.digest(Token::Fragment, digest);
    }

    /// The tag, as a field's value.
    pub(crate) fn finish(mut self) -> Option<HeaderValue> {
        self.end_text();
        if self.is_incomplete {
            return None;
        }
        let digest = digest(&SHA256, &self.tokens);
        let mut tag = String::with_capacity(34);
        tag.push('"');
        for byte in digest.as_ref().iter().take(16) {
            for digit in [byte >> 4, byte & 15] {
                tag.extend(char::from_digit(digit.into(), 16));
            }
        }
        tag.push('"');
        HeaderValue::try_from(tag).ok()
    }

    fn end_text(&mut self) {
        let Some((template, range)) = self.text.take() else { return };
        let number = self.templates.iter().position(|known| *known == template).unwrap_or_default();
        self.tokens.push(Token::Text as u8);
        self.number(number as u64);
        self.number(range.start);
        self.number(range.end);
    }

    fn digest(&mut self, token: Token, digest: Option<Digest>) {
        let Some(digest) = digest else {
            self.is_incomplete = true;
            return;
        };
        self.tokens.push(token as u8);
        self.tokens.extend_from_slice(&digest);
    }

    fn number(&mut self, number: u64) {
        self.tokens.extend_from_slice(&number.to_le_bytes());
    }
}

/// The digest of chunks, one behind the other.
pub(crate) fn digest_of<'a>(chunks: impl Iterator<Item = &'a Bytes>) -> Option<Digest> {
    let mut context = Context::new(&SHA256);
    chunks.for_each(|chunk| context.update(chunk));
    context.finish().as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const A: Option<Digest> = Some([1; 32]);
    const B: Option<Digest> = Some([2; 32]);

    fn tag(put: impl FnOnce(&mut TagInput)) -> Option<HeaderValue> {
        let mut input = TagInput::default();
        put(&mut input);
        input.finish()
    }

    #[test]
    fn text_is_the_same_however_it_is_cut() {
        let whole = tag(|input| input.text(0, &(3..9), || A));
        let cut = tag(|input| {
            input.text(0, &(3..4), || A);
            input.text(0, &(4..9), || A);
        });
        assert!(whole.is_some());
        assert_eq!(whole, cut);
    }

    #[test]
    fn templates_are_told_by_their_content_and_not_by_when_they_came() {
        let two = |first: usize, second: usize| {
            tag(|input| {
                input.text(first, &(0..1), || A);
                input.text(second, &(0..1), || B);
                input.text(first, &(1..2), || A);
            })
        };
        assert_eq!(two(0, 1), two(5, 3));
    }

    #[test]
    fn what_differs_in_anything_has_another_tag() {
        let tags = [
            tag(|_| ()),
            tag(|input| input.text(0, &(0..1), || A)),
            tag(|input| input.text(0, &(0..1), || B)),
            tag(|input| input.text(0, &(0..2), || A)),
            tag(|input| input.text(0, &(1..2), || A)),
            tag(|input| {
                input.text(0, &(0..1), || A);
                input.text(0, &(2..3), || A);
            }),
            tag(|input| {
                input.text(0, &(0..1), || A);
                input.text(1, &(1..2), || B);
            }),
            tag(|input| input.value(b"ab")),
            tag(|input| input.value(b"abc")),
            tag(|input| input.fragment(A)),
            tag(|input| input.fragment(B)),
            tag(|input| {
                input.fragment(A);
                input.fragment(B);
            }),
            tag(|input| {
                input.fragment(B);
                input.fragment(A);
            }),
            // A value that looks like other tokens.
            tag(|input| {
                let mut like = vec![Token::Fragment as u8];
                like.extend_from_slice(&[1; 32]);
                input.value(&like);
            }),
        ];
        for (at, one) in tags.iter().enumerate() {
            assert!(one.is_some(), "{at}");
            assert!(!tags[at + 1..].contains(one), "{at}");
        }
    }

    #[test]
    fn without_a_digest_there_is_no_tag() {
        assert_eq!(tag(|input| input.fragment(None)), None);
        assert_eq!(tag(|input| input.text(0, &(0..1), || None)), None);
    }

    #[test]
    fn chunks_have_the_digest_of_their_bytes() {
        let chunks = [Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"c")];
        let expected: Digest = digest(&SHA256, b"abc").as_ref().try_into().unwrap();
        assert_eq!(digest_of(chunks.iter()), Some(expected));
    }
}
