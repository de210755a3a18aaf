//! What the fuzz targets call.
//!
//! In: bytes as a value might have them. Out: the message that they are.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::format::read;

/// Status, fields and body of a message.
pub fn read_message(value: &Bytes) -> Option<(StatusCode, HeaderMap, Bytes)> {
    read(value).map(|message| (message.status, message.fields, message.body))
}
