//! `larder fsck`: reads the directory of a disk that no larder has open.
//!
//! In: a directory. Out: what is in it, what is damaged and where, and which files are not larder's; 0 where all is sound, 1
//! where something is damaged, 2 where there is no disk to be read. Nothing is changed. While it reads for long, a line on
//! standard error says how far it is.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use larder_disk::engine::{DiskError, Finding, Report, fsck as read_disk};
use serde::Serialize;

use super::exit;
use super::output::{complain, print_all, printable, say};
use super::table::{bytes, count, counted};

/// How often it is told how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Damaged places that are told one by one.
const DAMAGED_MAX: usize = 50;

#[derive(Debug, clap::Args)]
pub(super) struct FsckArguments {
    /// The directory of a disk, as in a store's `disks`
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn fsck(arguments: &FsckArguments) -> ExitCode {
    let mut told = Instant::now();
    let progress = |done: u64, all: u64| {
        if told.elapsed() >= PROGRESS_EVERY && done < all {
            told = Instant::now();
            say(format_args!("larder: read {done} of {}", counted(all, "segment", "segments")));
        }
    };
    let report = match read_disk(&arguments.directory, progress) {
        Ok(report) => report,
        Err(error) => {
            complain(&error);
            return ExitCode::from(if is_wrong_use(&error) { exit::USAGE } else { exit::FAILURE });
        }
    };
    let told = FsckReport::of(&arguments.directory, &report);
    let out = match arguments.json {
        true => serde_json::to_string_pretty(&told).map(|json| json + "\n"),
        false => Ok(told.text()),
    };
    let printed = match out {
        Ok(out) => print_all(out.as_bytes()),
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    };
    if told.sound { printed } else { ExitCode::from(exit::FAILURE) }
}

/// There is no disk, or a larder has it open.
fn is_wrong_use(error: &DiskError) -> bool {
    match error {
        DiskError::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        }
        DiskError::InUse(_) => true,
        _ => false,
    }
}

/// A report as it is printed.
#[derive(Debug, Serialize)]
struct FsckReport {
    path: String,
    /// The disk's identity; null where that is damaged.
    disk: Option<String>,
    sound: bool,
    segments: u64,
    /// Replaced and invalidated ones count as long as their segment is there.
    responses: u64,
    pieces: u64,
    bytes: u64,
    journal_entries: u64,
    damaged: Vec<Damage>,
    /// What else is wrong, a sentence each.
    findings: Vec<String>,
    /// Files that are not larder's; they are left alone.
    foreign: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Damage {
    file: String,
    offset: u64,
}

impl FsckReport {
    fn of(path: &Path, report: &Report) -> Self {
        let damage =
            |(file, offset): &(PathBuf, u64)| Damage { file: file.display().to_string(), offset: *offset };
        Self {
            path: path.display().to_string(),
            disk: report.disk.map(|disk| format!("{disk:016x}")),
            sound: report.is_sound(),
            segments: report.segments,
            responses: report.objects,
            pieces: report.pieces,
            bytes: report.bytes,
            journal_entries: report.journal_entries,
            damaged: report.damaged.iter().map(damage).collect(),
            findings: report.findings.iter().filter_map(sentence).collect(),
            foreign: report.findings.iter().filter_map(foreign).collect(),
        }
    }

    fn text(&self) -> String {
        let identity = self.disk.as_deref().unwrap_or("its identity is damaged");
        let mut lines = vec![format!("{}: disk {identity}", self.path)];
        let figures = [
            ("segments", count(self.segments)),
            ("responses", count(self.responses)),
            ("pieces", count(self.pieces)),
            ("size", bytes(self.bytes)),
            ("journal entries", count(self.journal_entries)),
            ("damaged places", count(self.damaged.len() as u64)),
        ];
        lines.extend(figures.map(|(name, figure)| format!("  {name:<16} {figure:>10}")));
        for damage in self.damaged.iter().take(DAMAGED_MAX) {
            lines.push(format!("damaged: {} at byte {}", damage.file, damage.offset));
        }
        if self.damaged.len() > DAMAGED_MAX {
            lines.push(format!("and {} more: --json shows all", self.damaged.len() - DAMAGED_MAX));
        }
        lines.extend(self.findings.iter().cloned());
        lines.extend(self.foreign.iter().map(|file| format!("not larder's: {file}")));
        lines.push(if self.sound { "sound".to_owned() } else { "damaged".to_owned() });
        lines.into_iter().map(|line| printable(&line) + "\n").collect()
    }
}

fn foreign(finding: &Finding) -> Option<String> {
    match finding {
        Finding::Foreign(path) => Some(path.display().to_string()),
        _ => None,
    }
}

/// What it means for the next start, which is what does something about it.
fn sentence(finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::Foreign(_) => return None,
        Finding::NewIdentity => {
            "the file `larder` is damaged: the next start gives everything here up".to_owned()
        }
        Finding::OtherDisk(path) => {
            format!("{} belongs to another disk: the next start removes it", path.display())
        }
        Finding::DamagedTable(path) => {
            format!("{} is damaged: the next start reads its segment instead", path.display())
        }
        Finding::DamagedSegment { path, places } => {
            let places = counted(*places as u64, "place", "places");
            format!("{} is damaged at {places}, which the next start skips", path.display())
        }
        Finding::DamagedJournal(path) => {
            format!("{} is damaged: the next start gives up what it may have invalidated", path.display())
        }
        Finding::NoJournal => "the journal is missing: the next start gives everything here up".to_owned(),
        Finding::Unreadable { path, why } => format!("cannot read {}: {why}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_is_there_and_what_is_damaged() {
        let report = Report {
            disk: Some(7),
            segments: 2,
            objects: 1234,
            bytes: 12_595,
            damaged: vec![("/d/1.seg".into(), 96)],
            findings: vec![Finding::Foreign("/d/notes".into()), Finding::NoJournal],
            ..Report::default()
        };
        let told = FsckReport::of(Path::new("/d"), &report);
        assert!(!told.sound);
        let text = told.text();
        for part in [
            "/d: disk 0000000000000007\n",
            "  responses             1 234\n",
            "damaged: /d/1.seg at byte 96\n",
            "the journal is missing",
            "not larder's: /d/notes\n",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
        assert!(text.ends_with("\ndamaged\n"));
        let foreign = vec![Finding::Foreign("/d/notes".into())];
        let sound = Report { damaged: Vec::new(), findings: foreign, ..report };
        assert!(FsckReport::of(Path::new("/d"), &sound).text().ends_with("\nsound\n"));
    }
}
