//! Responses that larders share, for metrics.
//!
//! In: what stores have in other programs' memory. Out: a sample for each reason for which a record was not used or not written.

use larder_observe::{Exposition, family};

use crate::wire::RemoteTier;

pub(super) fn expose(stores: &[(String, RemoteTier)], out: &mut Exposition) {
    let with_records = || stores.iter().filter_map(|(name, remote)| Some((name, remote.records()?)));
    if with_records().next().is_none() {
        return;
    }
    let mut refused = out.family(&family::RECORDS_REFUSED);
    for (name, records) in with_records() {
        records.each_refusal(|reason, count| {
            refused.value(&[("store", name), ("reason", reason)], count);
        });
    }
    let saved = || with_records().filter_map(|(name, records)| Some((name, records.saved_bytes()?)));
    if saved().next().is_some() {
        let mut family = out.family(&family::RECORDS_SAVED);
        for (name, bytes) in saved() {
            family.value(&[("store", name)], bytes);
        }
    }
    let mut leads = out.family(&family::RECORDS_LEADS);
    for (name, records) in with_records() {
        records.each_lead(|result, count| {
            leads.value(&[("store", name), ("result", result)], count);
        });
    }
    let mut not_shared = out.family(&family::RECORDS_NOT_SHARED);
    for (name, records) in with_records() {
        records.each_not_shared(|reason, count| {
            not_shared.value(&[("store", name), ("reason", reason)], count);
        });
    }
}
