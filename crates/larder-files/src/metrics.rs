//! The figures of a store of plain files as metric families.
//!
//! In: a [`FilesUsage`]. Out: each figure under its name, with what it tells. The labels that say which store and which directory
//! are the caller's. What clients were answered with is counted where they are served.

use super::{FilesUsage, NotFiled};
use larder_tier::metrics::Visit;

/// Hands every figure to `visit`: name, what it is, labels beyond those of the directory, value.
pub fn for_each(usage: &FilesUsage, visit: Visit<'_>) {
    let mut tell = |name, help, value| visit(name, help, &[], value);
    tell("larder_files_objects", "Files known in a directory, those of others included.", usage.files);
    tell("larder_files_bytes", "Bytes that files and directories take on the disk.", usage.bytes);
    tell("larder_files_max_bytes", "The most bytes that they may take.", usage.max_bytes);
    tell(
        "larder_files_high_water_bytes",
        "The most bytes that they ever took at once.",
        usage.high_water_bytes,
    );
    tell("larder_files_queued_bytes", "Bytes of bodies that wait to be written.", usage.queued_bytes);
    tell("larder_files_inodes", "Inodes taken: files and directories.", usage.inodes);
    tell("larder_files_max_inodes", "The most inodes that may be taken.", usage.max_inodes);
    tell(
        "larder_files_counted",
        "1 once everything in the directory has been counted, before which nothing is stored, else 0.",
        u64::from(usage.is_counted),
    );
    tell("larder_files_stored_total", "Responses written to files.", usage.stored);
    tell(
        "larder_files_renewed_total",
        "Files whose fields and times were written anew after a 304, and whose content was not.",
        usage.renewed,
    );
    tell("larder_files_evicted_total", "Files removed to make room.", usage.evicted);
    tell(
        "larder_files_changed_total",
        "Look-ups that found a file changed, replaced or removed since it was last asked for.",
        usage.changed,
    );
    tell(
        "larder_files_unreadable_total",
        "Reads of files that failed: the request, or the next one, was answered by the origin.",
        usage.unreadable,
    );
    tell("larder_files_errors_total", "Errors of the file system.", usage.errors);
    tell(
        "larder_files_invalidated",
        "Names under which something was invalidated whose file is not gone yet. It is not served.",
        usage.invalidated,
    );
    tell(
        "larder_files_journal_failures_total",
        "Attempts to write down what was invalidated that failed.",
        usage.journal_failures,
    );
    tell(
        "larder_files_journal_behind",
        "1 while what was invalidated is remembered in memory only, since it cannot be written down, else 0.",
        u64::from(usage.is_journal_behind),
    );
    tell(
        "larder_files_failing",
        "1 while nothing is written because the file system failed, or the directory is absent, or what was invalidated cannot be \
         written down, else 0.",
        u64::from(usage.is_failing),
    );
    tell(
        "larder_files_absent",
        "1 while the directory is not there, or cannot be used, else 0.",
        u64::from(usage.is_absent),
    );
    for (reason, value) in NotFiled::ALL.into_iter().zip(usage.refused) {
        let help = "Responses that did not become files, by reason: they were served, and what no file can stand for is \
                    kept in memory.";
        visit("larder_files_refused_total", help, &[("reason", reason.token())], value);
    }
}
