//! A page of which all is in memory: the chunks of its parts, one behind the other, and its entity tag.
//!
//! In: chunks, in the order of the page. Out: [`Pieces`] over them, which nobody has copied. Who holds the page holds its parts, so
//! their bytes stay counted against the caps of their stores.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use larder_http::body::Pieces;
use ring::digest::{Context, SHA256};

/// The chunks of a page.
#[derive(Default)]
pub(crate) struct WholePage {
    pieces: Vec<Bytes>,
    length: u64,
    /// Who keeps them counted.
    owners: Vec<Arc<dyn Pieces>>,
    /// Room for bytes that were copied, or for the page itself.
    rooms: Vec<Box<dyn Send + Sync>>,
}

impl WholePage {
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.length += bytes.len() as u64;
            self.pieces.push(bytes);
        }
    }

    pub(crate) fn hold(&mut self, owner: Option<Arc<dyn Pieces>>) {
        self.owners.extend(owner);
    }

    /// What `room` stands for is taken for as long as the page is there.
    pub(crate) fn hold_room(&mut self, room: Box<dyn Send + Sync>) {
        self.rooms.push(room);
    }

    /// The same in one piece, for which `room` was reserved.
    pub(crate) fn joined(&self, room: Box<dyn Send + Sync>) -> Self {
        let mut all = BytesMut::with_capacity(usize::try_from(self.length).unwrap_or(0));
        self.pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        let pieces = if all.is_empty() { Vec::new() } else { vec![all.freeze()] };
        Self { pieces, length: self.length, owners: Vec::new(), rooms: vec![room] }
    }

    /// In bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}

impl Pieces for WholePage {
    fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }
}

/// The entity tag of a page: 128 bits of SHA-256 over its bytes. The same bytes have the same tag, in every process, and however they were
/// put together.
pub(crate) fn entity_tag(page: &WholePage) -> HeaderValue {
    let mut context = Context::new(&SHA256);
    page.pieces.iter().for_each(|piece| context.update(piece));
    let digest = context.finish();
    let mut tag = String::with_capacity(34);
    tag.push('"');
    for byte in digest.as_ref().iter().take(16) {
        for digit in [byte >> 4, byte & 15] {
            tag.extend(char::from_digit(digit.into(), 16));
        }
    }
    tag.push('"');
    HeaderValue::try_from(tag).expect("digits within quotes are a field value")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page(texts: &[&'static str]) -> WholePage {
        let mut page = WholePage::default();
        texts.iter().for_each(|text| page.push(Bytes::from_static(text.as_bytes())));
        page
    }

    #[test]
    fn a_tag_belongs_to_bytes_however_they_are_cut() {
        let tag = entity_tag(&page(&["abc", "def"]));
        assert_eq!(tag, entity_tag(&page(&["", "a", "bcdef"])));
        assert_ne!(tag, entity_tag(&page(&["abc", "deg"])));
        assert_eq!(entity_tag(&page(&[])), "\"e3b0c44298fc1c149afbf4c8996fb924\"");
    }
}
