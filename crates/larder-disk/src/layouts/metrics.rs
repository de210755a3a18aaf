//! The figures of a disk as metric families.
//!
//! In: a [`DiskUsage`]. Out: each figure under its name, with what it tells. The labels that say which store and which disk
//! are the caller's.

use larder_tier::metrics::Visit;

use crate::engine::DiskUsage;

/// Hands every figure to `visit`: name, what it is, labels beyond those of the disk, value.
pub fn for_each(usage: &DiskUsage, visit: Visit<'_>) {
    let mut tell = |name, help, value| visit(name, help, &[], value);
    tell("larder_disk_objects", "Responses in the index of a disk.", usage.objects);
    tell(
        "larder_disk_bytes",
        "Bytes allocated on a disk: segments, their tables, the journal.",
        usage.allocated_bytes,
    );
    tell(
        "larder_disk_max_bytes",
        "The most bytes that may be allocated on a disk at the moment.",
        usage.max_bytes,
    );
    tell(
        "larder_disk_high_water_bytes",
        "The most bytes that were ever allocated at once.",
        usage.high_water_bytes,
    );
    tell("larder_disk_segments", "Segments on a disk.", usage.segments);
    tell("larder_disk_index_bytes", "Memory that the index of a disk takes.", usage.index_bytes);
    tell("larder_disk_journal_bytes", "Bytes of the journal of invalidations.", usage.journal_bytes);
    tell("larder_disk_queued_bytes", "Bytes that wait to be written.", usage.queued_bytes);
    tell("larder_disk_queued_objects", "Responses that wait to be written.", usage.queued_objects);
    tell("larder_disk_written_bytes_total", "Bytes written to segments.", usage.written_bytes);
    tell("larder_disk_written_objects_total", "Responses written.", usage.written_objects);
    tell("larder_disk_reclaimed_segments_total", "Segments given up to make room.", usage.reclaimed_segments);
    tell(
        "larder_disk_rescued_objects_total",
        "Responses that had been in use when their segment was given up, and were written once more.",
        usage.rescued_objects,
    );
    tell(
        "larder_disk_dropped_objects_total",
        "Responses that went with their segment.",
        usage.dropped_objects,
    );
    tell(
        "larder_disk_idle_objects_total",
        "Responses that went because nobody asked for them.",
        usage.idle_objects,
    );
    tell(
        "larder_disk_damaged_total",
        "Records and pieces that were not what had been written.",
        usage.damaged,
    );
    tell("larder_disk_read_errors_total", "Reads that failed.", usage.read_errors);
    tell("larder_disk_write_errors_total", "Writes that failed.", usage.write_errors);
    tell(
        "larder_disk_failing",
        "1 while a disk is left alone because it failed or could not be opened, else 0.",
        u64::from(usage.is_failing),
    );
    for (reason, value) in usage.refused.by_reason() {
        let help = "Responses and pieces that a disk did not take: they were served, and not stored there.";
        visit("larder_disk_refused_total", help, &[("reason", reason)], value);
    }
}
