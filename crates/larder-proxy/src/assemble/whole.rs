//! A page of which all is in memory: the chunks of its parts, one behind the other.
//!
//! In: chunks, in the order of the page. Out: [`Pieces`] over them, which nobody has copied. Who holds the page holds its parts, so
//! their bytes stay counted against the caps of their stores.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use larder_http::body::Pieces;

/// The chunks of a page.
#[derive(Default)]
pub(crate) struct WholePage {
    pieces: Vec<Bytes>,
    length: u64,
    /// Who keeps them counted.
    owners: Vec<Arc<dyn Pieces>>,
    /// `None` where it has a part that is too long.
    tag: Option<HeaderValue>,
    /// Room for bytes that were copied, or for the page itself.
    rooms: Vec<Box<dyn Send + Sync>>,
}

impl WholePage {
    /// With room for so many parts, with text between them.
    pub(super) fn for_parts(parts: usize) -> Self {
        Self { pieces: Vec::with_capacity(2 * parts), owners: Vec::with_capacity(parts), ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.length += bytes.len() as u64;
            self.pieces.push(bytes);
        }
    }

    pub(crate) fn hold(&mut self, owner: Option<Arc<dyn Pieces>>) {
        self.owners.extend(owner);
    }

    pub(crate) fn set_tag(&mut self, tag: Option<HeaderValue>) {
        self.tag = tag;
    }

    /// Its entity tag, where it has one.
    pub(crate) fn tag(&self) -> Option<&HeaderValue> {
        self.tag.as_ref()
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
        Self { pieces, length: self.length, owners: Vec::new(), tag: self.tag.clone(), rooms: vec![room] }
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
