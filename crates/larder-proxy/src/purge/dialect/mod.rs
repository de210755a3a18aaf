//! The dialects: a file for each that is read from requests at the sites' own addresses.
//!
//! In: a request. Out: what its fields name. Several dialects may read fields of one request; then all that they name is
//! purged, and the first of them is the one that answers.

pub(super) mod drupal;
mod magento;
pub(super) mod nginx;
pub(super) mod plain;
pub(super) mod shopware;
mod symfony;
mod typo3;
mod varnish;

use super::manner::Claim;
use super::names::Names;
use super::request::PurgeRequest;
use crate::purges::Dialect;

/// Reads the fields of a dialect, adds what they name, and claims the request where one of them is there.
type ReadFields = fn(&PurgeRequest<'_>, &mut Names) -> Option<Claim>;

/// In the order in which they answer. TYPO3 is before Varnish, whose fields its extensions send as well.
const READERS: [(Dialect, ReadFields); 7] = [
    (Dialect::Magento, magento::read),
    (Dialect::Typo3, typo3::read),
    (Dialect::Varnish, varnish::read),
    (Dialect::Symfony, symfony::read),
    (Dialect::Shopware, shopware::read),
    (Dialect::Drupal, drupal::read),
    (Dialect::Plain, plain::read),
];

/// Reads the fields of all dialects. Out: the first dialect that claims the request.
pub(super) fn read_fields(request: &PurgeRequest<'_>, names: &mut Names) -> Option<(Dialect, Claim)> {
    let mut first = None;
    for (dialect, read) in READERS {
        if let Some(claim) = read(request, names) {
            first.get_or_insert((dialect, claim));
        }
    }
    first
}
