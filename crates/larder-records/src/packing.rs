//! Compression of what is written, for the thread that writes it.
//!
//! In: nothing; it is made once for a store that compresses. Out: what makes a record shorter, and a piece, each counting what it saves.

use std::sync::Arc;

use bytes::Bytes;
use larder_remote::Pack;

use crate::coding::{SavedBytes, packed};
use crate::record::with_packed_body;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Packing {
    pub(crate) record: Pack,
    pub(crate) piece: Pack,
    saved: Arc<SavedBytes>,
}

impl Packing {
    pub(crate) fn new() -> Self {
        let saved = Arc::new(SavedBytes::default());
        let counted = |pack: fn(&Bytes) -> Option<Bytes>| {
            let saved = Arc::clone(&saved);
            Pack::new(move |plain: Bytes| match pack(&plain) {
                Some(packed) => {
                    saved.note(plain.len(), packed.len());
                    packed
                }
                None => plain,
            })
        };
        let (record, piece) = (counted(with_packed_body), counted(|plain| packed(plain)));
        Self { record, piece, saved }
    }

    /// Bytes that were saved.
    pub(crate) fn saved(&self) -> u64 {
        self.saved.sum()
    }
}
