//! A renewal, as it waits for the thread that writes.

use super::filling::OwnedUri;
use super::hit::FileStamp;
use super::meta::Meta;
use super::name::Name;

/// What is to be done, and to which file.
#[derive(Debug)]
pub(super) struct Renewal {
    pub(super) name: Name,
    pub(super) uri: OwnedUri,
    pub(super) stamp: FileStamp,
    pub(super) meta: Meta,
}
