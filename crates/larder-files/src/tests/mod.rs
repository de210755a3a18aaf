//! The store on a real file system: what is stored is found, and people's files are people's.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used)]

mod along;
mod aside;
mod caps;
mod contract;
mod export;
mod faults;
mod hands;
mod holds;
mod invalidated;
mod links;
mod listed;
mod ordered;
mod renewed;
mod replaced;
mod stored;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::LifetimeSource;
use larder_http::message::Scheme;
use larder_http::time::{Clock, WallTime};
use tempfile::TempDir;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::SystemTime;

use super::index::IndexedFile;
use super::*;

/// A store in a folder of its own.
struct Fixture {
    folder: TempDir,
    store: Arc<FileStore>,
}

impl Fixture {
    fn new(size: u64) -> Self {
        Self::with(size, |_| {})
    }

    fn with(size: u64, change: impl FnOnce(&mut FilesSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("store"), size, change);
        Self { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("store").join(name)
    }

    /// Closed and opened again.
    fn reopened(self, size: u64) -> Self {
        self.store.close();
        drop(self.store);
        let store = open(&self.folder.path().join("store"), size, |_| {});
        Self { folder: self.folder, store }
    }
}

fn open(path: &Path, size: u64, change: impl FnOnce(&mut FilesSettings)) -> Arc<FileStore> {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut settings = FilesSettings { max_object: size, ..FilesSettings::new(path, size) };
    change(&mut settings);
    let store = FileStore::open(&settings).unwrap();
    wait(|| store.usage().is_counted);
    store
}

/// Holds up the writing thread until what is returned is dropped.
fn hold_up(store: &FileStore) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let hold = Box::new(move || {
        let _ = held.recv();
    });
    assert!(store.shared().queue.push_end(queue::FileJob::Run(hold), || true).is_ok());
    release
}

/// Waits for something that is sure to come.
#[track_caller]
fn wait(is_there: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::yield_now();
    }
}

fn uri(path: &str) -> TargetUri<'_> {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    TargetUri { scheme: Scheme::Http, authority: "h", path, query }
}

fn meta() -> Meta {
    let mut fields = HeaderMap::new();
    fields.insert("content-type", HeaderValue::from_static("application/x-stored"));
    let times = StoredTimes {
        received: WallTime(1),
        lifetime: Duration::from_secs(60),
        source: LifetimeSource::MaxAge,
        initial_age: Duration::ZERO,
    };
    Meta {
        status: StatusCode::OK,
        fields,
        times,
        took: Duration::ZERO,
        number: 1,
        relieved: larder_cache::Relieved::default(),
        older: false,
    }
}

/// Stores a body and waits for the end of it.
fn put(store: &FileStore, path: &str, body: &[u8]) -> Result<(), Refused> {
    put_uri(store, &uri(path), body)
}

fn put_uri(store: &FileStore, uri: &TargetUri<'_>, body: &[u8]) -> Result<(), Refused> {
    let mut fill = store.begin(uri, Some(body.len() as u64))?;
    for piece in body.chunks(1000) {
        fill.write(Bytes::copy_from_slice(piece))?;
    }
    commit(fill)
}

fn commit(fill: FileFill) -> Result<(), Refused> {
    let (tell, told) = mpsc::sync_channel(1);
    fill.commit(meta(), || true, Box::new(move |done| tell.send(done).unwrap()));
    told.recv().unwrap()
}

fn find(store: &FileStore, path: &str) -> Option<Arc<FileHit>> {
    find_uri(store, &uri(path))
}

fn find_uri(store: &FileStore, uri: &TargetUri<'_>) -> Option<Arc<FileHit>> {
    match store.look(uri) {
        Look::Found(hit) => Some(hit),
        Look::Absent => None,
        Look::WouldBlock => store.look_blocking(uri),
    }
}

/// The body, and whether larder stored it.
fn read(store: &FileStore, path: &str) -> Option<(Vec<u8>, bool)> {
    let hit = find(store, path)?;
    let mut body = Vec::new();
    while (body.len() as u64) < hit.size() {
        let left = usize::try_from(hit.size()).unwrap() - body.len();
        body.extend_from_slice(&hit.read_at(body.len() as u64, left.min(PIECE_BYTES)).unwrap());
    }
    Some((body, matches!(hit.source(), Source::Stored(_))))
}

#[track_caller]
fn check(store: &FileStore, path: &str, body: Option<(&str, bool)>) {
    let found = read(store, path);
    let found = found.as_ref().map(|(body, stored)| (std::str::from_utf8(body).unwrap(), *stored));
    assert_eq!(found, body, "{path}");
}

/// Ends another thread, also when the test fails.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes a file look as if it had been there for a while.
fn age(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
}

/// Everything beneath a folder, files only.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() && !path.is_symlink() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// A file system of its own; unmounted on drop. `None` without the rights to mount one.
struct Mounted(TempDir);

impl Mounted {
    fn new(kind: &str, options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let status = std::process::Command::new("mount")
            .args(["-t", kind, "-o", options, kind])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        match status.is_ok_and(|status| status.success()) {
            true => Some(Self(folder)),
            false => {
                eprintln!("skipped: mounting a {kind} needs root");
                None
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn remount(&self, options: &str) {
        // What was just written may not be closed yet.
        wait(|| {
            let mut command = std::process::Command::new("mount");
            command.args(["-o", options]).arg(self.0.path()).output().unwrap().status.success()
        });
    }
}

/// A file system of its own at a directory of a store, in whose way it is; unmounted on drop, wherever it is by then.
struct InTheWay(std::fs::File);

impl InTheWay {
    fn at(path: &Path) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(path);
        match command.stderr(std::process::Stdio::null()).status().is_ok_and(|status| status.success()) {
            true => Some(Self(std::fs::File::open(path).unwrap())),
            false => {
                eprintln!("skipped: mounting a tmpfs needs root");
                None
            }
        }
    }

    fn path(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.0.as_raw_fd())).unwrap()
    }
}

impl Drop for InTheWay {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
