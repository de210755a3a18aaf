//! A tree that any web server can serve, written from responses.
//!
//! In: responses, one after the other. Out: `DIR/HOST/PATH` for each that a static file can stand for where all that a
//! server knows is the file's name: the type has to show in the name. HTML without an extension becomes an `index.html` in
//! a directory, so that `/about` is `about/index.html`. What has no place in such a tree (queries, other statuses, types that no
//! name shows) is left out and told. Unlike in [`super::FileStore`] names are decoded all the way, as servers do, and two
//! spellings of one path are one file: the first that comes. Nothing is followed or written outside of the directory.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};
use larder_cache::VaryNames;
use larder_http::fields::date::DateField;
use larder_http::target::Target;
use larder_http::time::WallTime;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::calls;
use super::error::FilesError;
use super::name::COMPONENT_BYTES_MAX;
use super::resolver::{DIRECTORY, as_path};

/// How many of those left out are named; of more only the number is told.
const NAMED_MAX: usize = 10_000;

/// Where to, and how.
#[derive(Clone, Debug)]
pub struct ExportSettings {
    /// The directory; made where it is missing. What is there already stays, or is replaced by what is exported.
    pub path: PathBuf,
    /// The permissions of files, 0o644 for instance.
    pub mode: u32,
    /// The type that the web server gives to names that show none, where it gives one.
    pub default_type: Option<String>,
}

/// A response to be written.
pub struct Page {
    /// The directory beneath which it goes.
    pub authority: String,
    /// The raw path.
    pub path: String,
    /// The raw query.
    pub query: Option<String>,
    /// Only 200 is written.
    pub status: StatusCode,
    /// Its fields; type, coding, Vary and Last-Modified matter.
    pub fields: HeaderMap,
    /// All of its content.
    pub body: Box<dyn Read>,
    /// Why it has no place in the tree, where that is known.
    pub left_out: Option<LeftOut>,
}

/// Why a response is not in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeftOut {
    /// A file is served as 200.
    Status,
    /// A static server does not look at queries.
    Query,
    /// It answers other requests differently.
    Varies,
    /// Its content has a coding that a static server would not tell.
    Encoded,
    /// Its name does not show its type.
    TypeNotShown,
    /// Its path is no name: hidden, too long, or with bytes that no file name has.
    Name,
    /// Another response, or another spelling of its path, has the file.
    Taken,
    /// Something else is where its file or one of its directories would be.
    InTheWay,
    /// Its body could not be read to its end.
    Body,
    /// A page with a part that is not stored.
    PartMissing,
    /// A page with a part that fails, and nothing stands in its place.
    FragmentFailed,
    /// A page of a template with problems, under a rule that takes none.
    TemplateInvalid,
    /// A page that is longer than one may be.
    PageTooLarge,
    /// A page whose parts could not be read in time.
    PageTimeout,
    /// A page for one visitor.
    Personal,
    /// A page that nobody may store.
    NoStore,
}

impl LeftOut {
    /// The reason in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Status => "its status is not 200",
            Self::Query => "it has a query",
            Self::Varies => "it depends on fields of the request",
            Self::Encoded => "its content is encoded",
            Self::TypeNotShown => "its name does not show its type",
            Self::Name => "no file can have its name",
            Self::Taken => "another response has its file",
            Self::InTheWay => "something else is where its file would be",
            Self::Body => "its body could not be read",
            Self::PartMissing => "part-missing: a part of the page is not stored",
            Self::FragmentFailed => {
                "fragment-failed: a part of the page fails, and nothing stands in its place"
            }
            Self::TemplateInvalid => "template-invalid: its template has problems, and the rule is strict",
            Self::PageTooLarge => "page-too-large: the page is longer than page_size of fragments",
            Self::PageTimeout => "page-timeout: its parts could not be read in time",
            Self::Personal => "personal: the page is for one visitor",
            Self::NoStore => "no-store: the page may not be stored",
        }
    }
}

/// What was written and what was not.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// Files.
    pub files: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// The first 10 000 that were left out, and why.
    pub left_out: Vec<(String, LeftOut)>,
    /// How many were left out in all.
    pub left_out_count: u64,
}

/// Writes `pages` into a tree. Blocks.
///
/// # Errors
/// The directory cannot be written to. What was written before stays.
pub fn export(
    settings: &ExportSettings,
    pages: impl IntoIterator<Item = Page>,
) -> Result<Exported, FilesError> {
    let path = &settings.path;
    let failed = |step| move |source| FilesError::Io { path: path.clone(), step, source };
    calls::create_dir_all(path).map_err(failed("cannot make the directory"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = calls::open(path, flags, Mode::empty()).map_err(io::Error::from);
    let root = root.map_err(failed("cannot open the directory"))?;
    let mode = Mode::from_bits_truncate(settings.mode & 0o777) | Mode::RUSR | Mode::WUSR;
    let mut tree = Export { root, mode, taken: HashSet::new() };
    let mut exported = Exported::default();
    for page in pages {
        let uri = match &page.query {
            Some(query) => format!("{}{}?{query}", page.authority, page.path),
            None => format!("{}{}", page.authority, page.path),
        };
        match tree.write(page, settings.default_type.as_deref()) {
            Ok(bytes) => {
                exported.files += 1;
                exported.bytes += bytes;
            }
            Err(Failure::LeftOut(why)) => {
                exported.left_out_count += 1;
                if exported.left_out.len() < NAMED_MAX {
                    exported.left_out.push((uri, why));
                }
            }
            Err(Failure::Io(error)) => return Err(failed("cannot write to the directory")(error)),
        }
    }
    Ok(exported)
}

enum Failure {
    LeftOut(LeftOut),
    Io(io::Error),
}

impl From<LeftOut> for Failure {
    fn from(why: LeftOut) -> Self {
        Self::LeftOut(why)
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

struct Export {
    root: OwnedFd,
    mode: Mode,
    /// Names that have been written.
    taken: HashSet<Vec<Vec<u8>>>,
}

impl Export {
    fn write(&mut self, page: Page, default_type: Option<&str>) -> Result<u64, Failure> {
        let name = file_name(&page, default_type)?;
        if self.taken.contains(&name) {
            return Err(LeftOut::Taken.into());
        }
        let (last, directories) = name.split_last().ok_or(LeftOut::Name)?;
        let mut parent = rustix::io::dup(&self.root)?;
        for component in directories {
            parent = self.enter(&parent, component)?;
        }
        // Hidden, so that nobody serves it while it is half there.
        let temp = format!(".larder-export-{}", std::process::id());
        match calls::unlinkat(&parent, temp.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(calls::openat(&parent, temp.as_str(), flags, Mode::RUSR | Mode::WUSR)?);
        let written = self.fill(file, page).and_then(|bytes| {
            match calls::renameat(&parent, temp.as_str(), &parent, as_path(last)) {
                Ok(()) => Ok(bytes),
                Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => Err(LeftOut::InTheWay.into()),
                Err(error) => Err(error.into()),
            }
        });
        match &written {
            Ok(_) => drop(self.taken.insert(name)),
            // The reason to give is the first one.
            Err(_) => drop(calls::unlinkat(&parent, temp.as_str(), AtFlags::empty())),
        }
        written
    }

    fn fill(&self, file: File, mut page: Page) -> Result<u64, Failure> {
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        loop {
            let read = match page.body.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(LeftOut::Body.into()),
            };
            calls::write_all(&file, buffer.get(..read).unwrap_or_default())?;
            bytes += read as u64;
        }
        calls::fchmod(&file, self.mode)?;
        // What the server will say of the file is what the origin said.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = WallTime::from_secs(now.as_secs());
        if let Some(modified) = DateField::read(&page.fields, &LAST_MODIFIED, now).at() {
            file.set_modified(UNIX_EPOCH + Duration::from_secs(modified.secs()))?;
        }
        Ok(bytes)
    }

    fn enter(&self, at: &OwnedFd, component: &[u8]) -> Result<OwnedFd, Failure> {
        let open = || calls::openat(at, as_path(component), DIRECTORY, Mode::empty());
        let made = match open() {
            Err(Errno::NOENT) => match calls::mkdirat(at, as_path(component), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(error) => Err(error),
            },
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(LeftOut::InTheWay.into()),
            opened => return Ok(opened?),
        };
        let made = made?;
        let bits = self.mode.bits();
        calls::fchmod(&made, Mode::from_bits_truncate(bits | (bits & 0o444) >> 2 | 0o700))?;
        Ok(made)
    }
}

/// The components of the file that stands for a response.
fn file_name(page: &Page, default_type: Option<&str>) -> Result<Vec<Vec<u8>>, LeftOut> {
    if let Some(why) = page.left_out {
        return Err(why);
    }
    if page.status != StatusCode::OK {
        return Err(LeftOut::Status);
    }
    if page.query.is_some() {
        return Err(LeftOut::Query);
    }
    if page.fields.contains_key(CONTENT_ENCODING) {
        return Err(LeftOut::Encoded);
    }
    let vary = VaryNames::of(&page.fields).ok_or(LeftOut::Varies)?;
    if vary.names().iter().any(|name| *name != ACCEPT_ENCODING) {
        return Err(LeftOut::Varies);
    }
    let target = Target::parse(Bytes::copy_from_slice(page.path.as_bytes())).map_err(|_| LeftOut::Name)?;
    let path = target.canonical_path().map_err(|_| LeftOut::Name)?;
    let mut name = vec![page.authority.as_bytes().to_vec()];
    for segment in path.split('/').skip(1) {
        name.push(decoded(segment).ok_or(LeftOut::Name)?);
    }
    let media = page.fields.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media =
        media.and_then(|value| value.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = matches!(media.as_str(), "text/html" | "application/xhtml+xml");
    match name.last_mut() {
        Some(last) if last.is_empty() && is_html => *last = b"index.html".to_vec(),
        Some(last) if last.is_empty() => return Err(LeftOut::TypeNotShown),
        Some(last) if shows(last, &media, default_type) => {}
        _ if is_html => name.push(b"index.html".to_vec()),
        _ => return Err(LeftOut::TypeNotShown),
    }
    let is_name = |component: &Vec<u8>| {
        let is_plain = !component.iter().any(|byte| matches!(byte, b'/' | 0..0x20 | 0x7f));
        !component.is_empty()
            && component.len() <= COMPONENT_BYTES_MAX
            && is_plain
            && !component.starts_with(b".")
    };
    name.iter().all(is_name).then_some(name).ok_or(LeftOut::Name)
}

/// Whether a server that knows the name alone gives the file this type.
fn shows(name: &[u8], media: &str, default_type: Option<&str>) -> bool {
    // The same types under two names each.
    let one_name = |media: &str| match media {
        "application/javascript" | "application/x-javascript" => "text/javascript".to_owned(),
        "application/xml" => "text/xml".to_owned(),
        "image/vnd.microsoft.icon" => "image/x-icon".to_owned(),
        media => media.to_owned(),
    };
    let guessed = mime_guess::from_path(as_path(name));
    match guessed.first_raw() {
        Some(_) => guessed.iter().any(|known| one_name(known.essence_str()) == one_name(media)),
        None => default_type.is_some_and(|default| default.eq_ignore_ascii_case(media)),
    }
}

/// A segment with its escapes decoded; `None` where one is malformed.
fn decoded(segment: &str) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            name.push(*byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
        name.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    Some(name)
}
