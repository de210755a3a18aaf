//! Static files first: a document root in front of cache and origin, as `try_files $uri $uri/`.
//!
//! In: a request. Out: a file beneath the root, or nothing, and then the request goes on as if there were no root.
//! Names resolve beneath the root only: the kernel is asked to refuse anything that would leave it (`openat2` with
//! `RESOLVE_BENEATH`), whatever `..`, symbolic links or races are tried. Names that begin with a dot are hidden.
//! No read blocks a worker: what the kernel's name cache can answer is asked inline (`RESOLVE_CACHED`), the rest goes to
//! the pool for blocking calls. Deliberately absent: listings of directories.

mod file;
mod open;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, Method};
use larder_http::message::RequestHead;

pub(crate) use file::StaticFile;

/// A document root, opened once.
pub(crate) struct Root {
    directory: Arc<OwnedFd>,
}

/// What the root has for a request.
pub(crate) enum Found {
    File(StaticFile),
    /// A directory that was asked for without its slash: the path to go to.
    Directory(String),
    Nothing,
}

impl Root {
    /// Opens `path`.
    ///
    /// # Errors
    /// Not there, not a directory, or not permitted.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self { directory: Arc::new(open::directory(path)?) })
    }

    /// Looks for a file. Errors of the file system mean that there is none: the origin may know better.
    pub(crate) async fn find(&self, request: &RequestHead) -> Found {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Found::Nothing;
        }
        let Ok(path) = request.target.canonical_path() else {
            return Found::Nothing;
        };
        let Some(name) = file_name(&path) else {
            return Found::Nothing;
        };
        if open::is_surely_absent(&self.directory, &name) {
            return Found::Nothing;
        }
        let directory = Arc::clone(&self.directory);
        let with_slash = path.ends_with('/');
        let opened = tokio::task::spawn_blocking(move || open::open(&directory, &name, with_slash)).await;
        match opened {
            Ok(Ok(open::Opened::File(file))) => Found::File(file),
            Ok(Ok(open::Opened::Directory)) => {
                let query = request.target.query().map(|query| format!("?{query}"));
                // The canonical path begins with one slash: the raw one may begin with two, and would lead a browser
                // to another host.
                Found::Directory(format!("{path}/{}", query.unwrap_or_default()))
            }
            Ok(Err(_)) | Err(_) => Found::Nothing,
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
