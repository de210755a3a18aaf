//! Names: which file stands for a URI.
//!
//! In: authority, raw path and raw query. Out: a name beneath the store's directory, `HOST/PATH`, and back again. What
//! people, other web servers and applications would call the file is what it is called, as far as that is possible:
//! `/a%20b/c.json` is `HOST/a b/c.json`, and `/a/` is `HOST/a/index.html`. Two URIs never have one name: what is
//! spelled in an unusual way is written with an escape that begins with `%`. So is what would be dangerous or in the
//! way (a leading dot or dash, empty and dot segments, control characters, escaped slashes).
//!
//! Nothing here looks at the file system. A name never has an empty component, `.`, `..`, a NUL or more than 255 bytes
//! in a component; a longer one ends in a digest of all of it. Deliberately absent: the scheme. One file stands for both, as
//! in any document root; which of them a response was stored for is in its meta and is compared there.

use std::fmt;

use larder_http::message::Scheme;
pub use larder_tier::TargetUri;

#[cfg(test)]
mod tests;

/// The longest component, in bytes: what Linux file systems have in common.
pub(super) const COMPONENT_BYTES_MAX: usize = 255;
/// Components of a name, the host included.
const COMPONENTS_MAX: usize = 34;
/// A whole name, in bytes; with what else is put before and behind it, below the kernel's 4096.
const NAME_BYTES_MAX: usize = 3000;
/// `%<`, which neither a path nor a query is ever written with, and 32 digits.
const DIGEST_BYTES: usize = 34;

/// What stands for a path that ends in a slash: what web servers look for.
pub(super) const INDEX: &[u8] = b"index.html";
/// What stands for a path that is a directory as well.
pub(super) const SELF: &[u8] = b"%self";

/// Why no file can stand for a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unnameable {
    /// A byte that no valid target has.
    #[error("a byte that no target has")]
    Byte,
    /// More directories than are made.
    #[error("too many directories")]
    TooDeep,
    /// A longer name than is made.
    #[error("name too long")]
    TooLong,
}

/// The name of a file, relative to the store's directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name(Vec<u8>);

impl Name {
    /// The name of the file that stands for `uri`.
    pub(super) fn of(uri: &TargetUri<'_>) -> Result<Self, Unnameable> {
        Self::of_usual(uri).map_or_else(|| Self::of_any(uri), Ok)
    }

    /// The same for a URI whose name is what it looks like, as nearly all are: one pass, one allocation.
    fn of_usual(uri: &TargetUri<'_>) -> Option<Self> {
        let length = uri.authority.len() + uri.path.len() + INDEX.len();
        if uri.query.is_some() || length > NAME_BYTES_MAX {
            return None;
        }
        let mut name = Vec::with_capacity(length);
        name.extend_from_slice(uri.authority.as_bytes());
        name.extend_from_slice(uri.path.as_bytes());
        let (mut before, mut component_len, mut components) = (b'/', 0, 1);
        for byte in &name {
            match byte {
                b'/' if before == b'/' => return None,
                b'/' => (component_len, components) = (0, components + 1),
                b'.' | b'-' if before == b'/' => return None,
                byte if is_plain(*byte) => component_len += 1,
                _ => return None,
            }
            if component_len > COMPONENT_BYTES_MAX || components > COMPONENTS_MAX {
                return None;
            }
            before = *byte;
        }
        let is_of_host = !uri.authority.contains('/') && uri.path.starts_with('/');
        // Any segment of that name has a code, not only the last.
        let is_index_named = uri.path.contains("/index.html") || uri.authority == "index.html";
        if !is_of_host || is_index_named {
            return None;
        }
        if before == b'/' {
            name.extend_from_slice(INDEX);
        }
        Some(Self(name))
    }

    fn of_any(uri: &TargetUri<'_>) -> Result<Self, Unnameable> {
        let mut name = Vec::with_capacity(uri.authority.len() + uri.path.len() + 16);
        let host = code(uri.authority.as_bytes())?;
        name.extend_from_slice(&shortened(if host.is_empty() { b"%_".to_vec() } else { host }));
        let mut segments = uri.path.strip_prefix('/').ok_or(Unnameable::Byte)?.split('/').peekable();
        let mut count = 1;
        while let Some(segment) = segments.next() {
            count += 1;
            if count > COMPONENTS_MAX {
                return Err(Unnameable::TooDeep);
            }
            let is_last = segments.peek().is_none();
            let mut coded = match code(segment.as_bytes())? {
                // Distinct from what stands for a slash at the end.
                coded if coded == INDEX => [b"%", INDEX].concat(),
                coded if !coded.is_empty() => coded,
                _ if is_last => INDEX.to_vec(),
                _ => b"%_".to_vec(),
            };
            if let Some(query) = uri.query.filter(|_| is_last) {
                push_query(&mut coded, query)?;
            }
            name.push(b'/');
            name.extend_from_slice(&shortened(coded));
            if name.len() > NAME_BYTES_MAX {
                return Err(Unnameable::TooLong);
            }
        }
        Ok(Self(name))
    }

    /// The name of a file that was found at `path`: for one within the directory that has its name, that name.
    pub(super) fn found(path: &[u8]) -> Self {
        let inside = path.strip_suffix(SELF).and_then(|above| above.strip_suffix(b"/"));
        Self(inside.unwrap_or(path).to_vec())
    }

    /// The place of a file, as it is.
    pub(super) fn found_at(path: &[u8]) -> Self {
        Self(path.to_vec())
    }

    /// As the kernel gets it.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The directories, and what the file is called in the last of them.
    pub(super) fn split(&self) -> (impl Iterator<Item = &[u8]>, &[u8]) {
        let (directories, last) = match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (self.0.get(..slash), self.0.get(slash + 1..).unwrap_or_default()),
            None => (None, self.0.as_slice()),
        };
        (directories.into_iter().flat_map(|path| path.split(|byte| *byte == b'/')), last)
    }

    /// What the last segment of the path shows: of a name with a query, the part before it.
    pub(super) fn shown(&self) -> &[u8] {
        let (_, last) = self.split();
        last.split(|byte| *byte == b'?').next().unwrap_or_default()
    }

    /// The URI's authority, path and query; `None` where the name is no URI's, or is cut and ends in a digest.
    pub(super) fn uri(&self) -> Option<(String, String, Option<String>)> {
        let (authority, path, query) = self.decoded()?;
        // What somebody called a file may be read like a name, and be another spelling of one.
        let uri =
            TargetUri { scheme: Scheme::Http, authority: &authority, path: &path, query: query.as_deref() };
        let is_its_name = Self::of(&uri).is_ok_and(|name| name == *self);
        is_its_name.then_some((authority, path, query))
    }

    fn decoded(&self) -> Option<(String, String, Option<String>)> {
        let mut components = self.0.split(|byte| *byte == b'/').peekable();
        let authority = decode(components.next()?)?;
        let (mut path, mut query) = (String::new(), None);
        while let Some(component) = components.next() {
            path.push('/');
            let (component, said) = match component.iter().position(|byte| *byte == b'?') {
                Some(mark) if components.peek().is_none() => component.split_at_checked(mark)?,
                _ => (component, b"".as_slice()),
            };
            match component {
                INDEX if components.peek().is_none() => {}
                component => path.push_str(&decode(component)?),
            }
            if let Some((_, said)) = said.split_first() {
                query = Some(String::from_utf8(said.to_vec()).ok()?.replace('#', "/"));
            }
        }
        (!path.is_empty()).then_some((authority, path, query))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.0.escape_ascii())
    }
}

/// Bytes that stand for themselves in a path, spelled plainly. Of the others a target may have `"`, `{` and `}`.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'!' | 0x24 | 0x26..=0x2e | 0x30..=0x3b | b'=' | 0x40..=0x5f | 0x61..=0x7a | b'|' | b'~')
}

/// Bytes that stand in a name as they are where the path has them escaped, in upper case, as browsers do.
const fn is_unescaped(byte: u8) -> bool {
    matches!(byte, b' ' | b'"' | b'#' | b'<' | b'>' | b'`' | b'{' | b'}' | 0x80..)
}

/// What a target may spell plainly, and browsers do not.
const fn is_plain_oddity(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}')
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Two digits as a byte.
fn escaped(high: u8, low: u8) -> Option<u8> {
    Some(hex(high)? * 16 + hex(low)?)
}

/// One segment as a component. Each step reads one byte or escape and writes a code of its own, none of which begins
/// another: so what is written can be read back in one way only.
fn code(segment: &[u8]) -> Result<Vec<u8>, Unnameable> {
    let mut coded = Vec::with_capacity(segment.len());
    let mut rest = segment;
    // Hidden files are editors' and other programs', and larder's own; a name like `-rf` is an option to somebody's `rm *`.
    if let [first @ (b'.' | b'-'), after @ ..] = rest {
        coded.extend_from_slice(&[b'%', *first]);
        rest = after;
    }
    loop {
        rest = match rest {
            [] => return Ok(coded),
            [b'%', high, low, after @ ..] if escaped(*high, *low).is_some() => {
                let is_upper = !high.is_ascii_lowercase() && !low.is_ascii_lowercase();
                match escaped(*high, *low) {
                    Some(byte) if is_upper && is_unescaped(byte) => coded.push(byte),
                    _ => coded.extend_from_slice(&[b'%', *high, *low]),
                }
                after
            }
            [b'%', after @ ..] => {
                coded.extend_from_slice(b"%%");
                after
            }
            [byte, after @ ..] if is_plain(*byte) => {
                coded.push(*byte);
                after
            }
            // What its escaped form would be, which is written as the byte itself.
            [byte, after @ ..] if is_plain_oddity(*byte) => {
                coded.extend_from_slice(format!("%{byte:02X}").as_bytes());
                after
            }
            [_, ..] => return Err(Unnameable::Byte),
        };
    }
}

/// The segment that a component was made from.
fn decode(component: &[u8]) -> Option<String> {
    let mut segment = String::with_capacity(component.len());
    let mut rest = match component {
        b"" | [b'.' | b'-', ..] => return None,
        b"%_" => return Some(segment),
        [b'%', after @ ..] if after == INDEX => after,
        [b'%', first @ (b'.' | b'-'), after @ ..] => {
            segment.push(*first as char);
            after
        }
        all => all,
    };
    loop {
        rest = match rest {
            [] => return Some(segment),
            [b'%', b'%', after @ ..] => {
                segment.push('%');
                after
            }
            [b'%', high, low, after @ ..] => {
                let byte = escaped(*high, *low)?;
                let is_upper = !high.is_ascii_lowercase() && !low.is_ascii_lowercase();
                match is_upper && is_unescaped(byte) {
                    true if is_plain_oddity(byte) => segment.push(byte as char),
                    true => return None,
                    false => segment.extend(['%', *high as char, *low as char]),
                }
                after
            }
            [byte, after @ ..] if is_plain(*byte) => {
                segment.push(*byte as char);
                after
            }
            [byte, after @ ..] if is_unescaped(*byte) => {
                segment.push_str(&format!("%{byte:02X}"));
                after
            }
            _ => return None,
        };
    }
}

/// A query stays as it is but for its slashes: `#` is no byte of a query.
fn push_query(coded: &mut Vec<u8>, query: &str) -> Result<(), Unnameable> {
    coded.push(b'?');
    for byte in query.bytes() {
        coded.push(match byte {
            b'/' => b'#',
            b'!' | 0x24..=0x3b | b'=' | 0x3f..=0x7e => byte,
            _ => return Err(Unnameable::Byte),
        });
    }
    Ok(())
}

/// A component that is too long, cut at a whole code and ended by a digest of all of it.
fn shortened(coded: Vec<u8>) -> Vec<u8> {
    if coded.len() <= COMPONENT_BYTES_MAX {
        return coded;
    }
    let mut keep = COMPONENT_BYTES_MAX - DIGEST_BYTES;
    // A code that begins with `%` has at most three bytes.
    while coded.get(keep.saturating_sub(2)..keep).is_some_and(|end| end.contains(&b'%')) {
        keep -= 1;
    }
    let mut short = coded.get(..keep).unwrap_or_default().to_vec();
    short.extend_from_slice(b"%<");
    short.extend_from_slice(digest(&coded).as_bytes());
    short
}

/// 128 bits of SHA-256 in hexadecimal: nobody can make two of them collide.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
