//! Versions as this larder reads them, for metrics.
//!
//! In: the reports of its readers. Out: samples, by server. Two readers of one server that differ in their limits count as one.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_observe::{Exposition, family};
use larder_remote::versions::{Versions, VersionsReport};

pub(super) fn expose(readers: &[Arc<Versions>], out: &mut Exposition) {
    if readers.is_empty() {
        return;
    }
    let mut servers: BTreeMap<String, VersionsReport> = BTreeMap::new();
    for report in readers.iter().map(|reader| reader.report()) {
        match servers.get_mut(&report.server) {
            Some(sum) => add(sum, report),
            None => {
                servers.insert(report.server.clone(), report);
            }
        }
    }
    let mut reads = out.family(&family::VERSION_READS);
    for (server, report) in &servers {
        for (result, count) in [("read", report.read), ("absent", report.absent), ("unknown", report.unknown)]
        {
            reads.value(&[("server", server), ("result", result)], count);
        }
    }
    let mut each = |family, of: fn(&VersionsReport) -> u64| {
        let mut samples = out.family(family);
        for (server, report) in &servers {
            samples.value(&[("server", server)], of(report));
        }
    };
    each(&family::VERSIONS_KNOWN, |report| report.known as u64);
    each(&family::VERSIONS_WENT_BACK, |report| report.went_back);
    each(&family::VERSIONS_SERVER_UP, |report| u64::from(report.failure.is_none()));
}

fn add(sum: &mut VersionsReport, other: VersionsReport) {
    sum.known += other.known;
    sum.read += other.read;
    sum.absent += other.absent;
    sum.unknown += other.unknown;
    sum.went_back += other.went_back;
    sum.failure = sum.failure.take().or(other.failure);
}
