//! Static files first: a document root in front of cache and origin, as `try_files $uri $uri/`.
//!
//! In: a request. Out: a file beneath the root, or nothing, and then the request goes on as if there were no root.
//! Names resolve beneath the root only: the kernel is asked to refuse anything that would leave it (`openat2` with
//! `RESOLVE_BENEATH`), whatever `..`, symbolic links or races are tried. Names that begin with a dot are hidden.
//! No read blocks a worker: what the kernel's name cache can answer is asked inline (`RESOLVE_CACHED`), the rest goes to
//! the pool for blocking calls.
//! The directory is the one that the path leads to, at most [`LOOK_EVERY`] ago: a deployment may rename it, switch a link, or
//! remove and build it anew. The first request after that time looks, on the pool where it is anyway; none waits for the look
//! of another. While the path leads nowhere there are no files. Deliberately absent: listings of directories.

mod file;
mod open;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use http::{HeaderMap, Method};
use larder_files::{Links, Resolver};
use larder_http::message::RequestHead;

use crate::decision::Document;

pub(crate) use file::StaticFile;

/// How long a directory is used before it is looked again where its path leads.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A document root.
pub(crate) struct Root {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// What the path led to; nothing while it leads nowhere.
    directory: ArcSwapOption<OwnedFd>,
    resolver: Resolver,
    opened: Instant,
    /// When the next look is due, in milliseconds since `opened`.
    next_look: AtomicU64,
}

impl Shared {
    /// Whether a look is due; says so to one of those who ask.
    fn is_due(&self) -> bool {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.next_look.load(Ordering::Relaxed);
        let next = now.saturating_add(LOOK_EVERY.as_millis() as u64);
        now >= due && self.next_look.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Looks where the path leads. Blocks; runs on the pool.
    fn look_again(&self) {
        match open::directory(&self.path) {
            Ok(there) => {
                let before = self.directory.load();
                let is_same = before.as_ref().is_some_and(|before| open::is_same(before, &there));
                if !is_same {
                    self.directory.store(Some(Arc::new(there)));
                }
            }
            Err(error) if open::is_gone(&error) => self.directory.store(None),
            // Of another reason than the directory, no descriptor left for instance: it is used as long as it can be.
            Err(_) => {}
        }
    }
}

/// What the root has for a request.
pub(crate) enum RootEntry {
    File(Box<StaticFile>),
    /// A directory that was asked for without its slash: the path to go to.
    Directory(String),
    Nothing,
}

impl RootEntry {
    /// What it is, as a fact for what comes next.
    pub(crate) fn document(&self) -> Option<Document> {
        match self {
            Self::File(_) => Some(Document::File),
            Self::Directory(_) => Some(Document::Directory),
            Self::Nothing => None,
        }
    }
}

impl Root {
    /// Opens `path`.
    ///
    /// # Errors
    /// Not there, not a directory, or not permitted.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let directory = open::directory(path)?;
        let resolver = Resolver::probe(&directory, Links::Beneath);
        let directory = ArcSwapOption::from_pointee(directory);
        let next_look = AtomicU64::new(LOOK_EVERY.as_millis() as u64);
        let (path, opened) = (path.to_owned(), Instant::now());
        Ok(Self { shared: Arc::new(Shared { path, directory, resolver, opened, next_look }) })
    }

    /// Looks for a file. Errors of the file system mean that there is none: the origin may know better.
    pub(crate) async fn find(&self, request: &RequestHead) -> RootEntry {
        if request.method != Method::GET && request.method != Method::HEAD {
            return RootEntry::Nothing;
        }
        let Ok(path) = request.target.canonical_path() else {
            return RootEntry::Nothing;
        };
        let Some(name) = file_name(&path) else {
            return RootEntry::Nothing;
        };
        let (is_due, resolver) = (self.shared.is_due(), self.shared.resolver);
        let is_absent = |directory: &Arc<OwnedFd>| open::is_surely_absent(resolver, directory, &name);
        if !is_due && self.shared.directory.load().as_ref().is_none_or(is_absent) {
            return RootEntry::Nothing;
        }
        let shared = Arc::clone(&self.shared);
        let with_slash = path.ends_with('/');
        let open = move || {
            if is_due {
                shared.look_again();
            }
            let directory = shared.directory.load_full().ok_or(std::io::ErrorKind::NotFound)?;
            open::open(resolver, &directory, &name, with_slash)
        };
        let opened = tokio::task::spawn_blocking(open).await;
        match opened {
            Ok(Ok(open::Opened::File(file))) => RootEntry::File(Box::new(file)),
            Ok(Ok(open::Opened::Directory)) => {
                let query = request.target.query().map(|query| format!("?{query}"));
                // The canonical path begins with one slash: the raw one may begin with two, and would lead a browser
                // to another host.
                RootEntry::Directory(format!("{path}/{}", query.unwrap_or_default()))
            }
            Ok(Err(_)) | Err(_) => RootEntry::Nothing,
        }
    }
}

/// The fields of a file's response.
pub(crate) fn fields(file: &StaticFile) -> HeaderMap {
    file.fields()
}

/// The name beneath the root, without a leading slash; `None` where no file can have it or it is hidden.
fn file_name(path: &str) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes().strip_prefix(b"/")?;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            name.push(*byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let decoded = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        // An escaped slash is not a slash, and no file name has one; nor NUL.
        if matches!(decoded, b'/' | 0) {
            return None;
        }
        name.push(decoded);
        rest = tail;
    }
    let hidden = name.split(|byte| *byte == b'/').any(|component| component.starts_with(b"."));
    (!hidden).then_some(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use larder_http::target::Target;

    fn check(target: &'static str, name: Option<&str>) {
        let parsed = Target::parse(bytes::Bytes::from_static(target.as_bytes())).unwrap();
        let found = parsed.canonical_path().ok().and_then(|path| file_name(&path));
        assert_eq!(found.as_deref(), name.map(str::as_bytes), "{target}");
    }

    /// What a root has for a target, as soon as it is that: a path is looked at again after a while.
    async fn comes_to(root: &Root, target: &'static str, wanted: Option<&str>) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let found = match root.find(&crate::testing::request(target)).await {
                RootEntry::File(file) => match file.body(0..file.size()) {
                    larder_http::body::Body::Full(bytes) => Some(bytes),
                    _ => None,
                },
                RootEntry::Directory(_) | RootEntry::Nothing => None,
            };
            if found.as_deref() == wanted.map(str::as_bytes) {
                return;
            }
            assert!(Instant::now() < until, "{target} stays {found:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_root_is_the_directory_that_its_path_leads_to_now() {
        let folder = tempfile::tempdir().unwrap();
        let release = |name: &str| {
            let release = folder.path().join(name);
            std::fs::create_dir(&release).unwrap();
            std::fs::write(release.join("a"), name).unwrap();
            release
        };
        let path = folder.path().join("dist");
        let (one, two) = (release("one"), release("two"));
        // A link that is switched.
        std::os::unix::fs::symlink(&one, &path).unwrap();
        let root = Root::open(&path).unwrap();
        comes_to(&root, "/a", Some("one")).await;
        let next = folder.path().join("next");
        std::os::unix::fs::symlink(&two, &next).unwrap();
        std::fs::rename(&next, &path).unwrap();
        comes_to(&root, "/a", Some("two")).await;
        // Gone for a while; then another directory, which was built elsewhere.
        std::fs::remove_file(&path).unwrap();
        comes_to(&root, "/a", None).await;
        let three = release("three");
        std::fs::rename(&three, &path).unwrap();
        comes_to(&root, "/a", Some("three")).await;
        // Renamed away with its content still there, and removed and made anew in one go.
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        release("dist");
        comes_to(&root, "/a", Some("dist")).await;
        std::fs::remove_dir_all(&path).unwrap();
        release("dist");
        std::fs::write(path.join("a"), "anew").unwrap();
        comes_to(&root, "/a", Some("anew")).await;
        // Nothing outside of it is ever reached.
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", path.join("b")).unwrap();
        comes_to(&root, "/b", None).await;
    }

    #[test]
    fn names_are_decoded_once_and_never_hidden_ones() {
        check("/", Some(""));
        check("/a/b.html?x", Some("a/b.html"));
        check("/a%20b", Some("a b"));
        check("/.git/config", None);
        check("/%2egit/config", None);
        check("/a/.b", None);
        check("/a%2fb", None);
        check("/a%00", None);
        check("/a/../b", Some("b"));
        check("/../b", None);
        check("/a%252e%252e", Some("a%2e%2e"));
    }
}
