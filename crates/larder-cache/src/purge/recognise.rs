//! Patterns that mean something exact.
//!
//! In: expressions as they were sent. Out: the hosts, and the tags, URLs or paths, that they name, which are found by a hash
//! instead of by matching each response. Purge tools build such expressions from lists of names:
//!
//! | for | expression | names |
//! |---|---|---|
//! | any part | nothing, `.*`, `.`, `^.*$` | everything |
//! | host | `^(a\.example\|b\.example)$` | these hosts, whatever the port |
//! | target | `/`, `^/` | everything |
//! | target | `^/a/`, `^/a/.*`; as a path `/a/`, `/a/.*` | what is below `/a/` |
//! | target | `^/a\?b$`; as a path `/a\?b$` | this path and query |
//! | tags | `(^\|,)(a\|b)(,\|$)`, `((^\|,)a(,\|$))\|((^\|,)b(,\|$))` | these tags |
//! | tags, [`Bare::Exact`] | `a\|b`, `(a)\|(b)` | these tags |
//!
//! A pattern is recognised as a whole, or not at all. What is recognised names at least what the pattern matches, with two
//! exceptions. A bare name in [`Bare::Exact`] is that tag alone, where its expression matches tags that contain it as well.
//! A path is compared in its canonical form: it names `/%61/` too, and not `/a/../b`, which is the application's `/b`.

mod words;

use std::collections::BTreeSet;

use bytes::Bytes;
use larder_http::target::Target;

use super::pattern::{Expression, PatternText, in_our_syntax};
use super::tags::is_separator;
use super::{ANCESTORS_MAX, What};
use words::{Atom, WORDS_MAX};

/// Names that one pattern may stand for, at all its hosts together.
pub const NAMES_MAX: usize = WORDS_MAX;
/// The longest expression that is looked at, in bytes. One that is recognised is never compiled, and may be longer than one
/// that is.
pub const RECOGNISED_BYTES_MAX: usize = 16 * 1024;

/// What bare literal alternatives (`a|b`) for tags mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    /// The tags of these names, as the dialects that send them document it.
    Exact,
    /// What they say as an expression: every tag that contains one of them.
    Expression,
}

/// What a pattern names exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// At these hosts only, in lower case and each once; at every host of the scope where there is none.
    pub hosts: Option<Vec<Box<str>>>,
    /// Any of these, of kinds that are found by a hash; each once.
    pub what: Vec<What>,
}

/// What a pattern means exactly; `None` where it has to be compiled and matched.
pub fn recognise(text: &PatternText, bare: Bare) -> Option<Recognised> {
    let hosts = read(text.host.as_ref(), |_| false, |shape| host(&shape))?;
    let below = read(text.target.as_ref(), is_every_target, |shape| path(&shape))?;
    let tags = read(text.tags.as_ref(), |_| false, |shape| tag(&shape, bare))?;
    let of_every_type = read(text.content_type.as_ref(), |_| false, |_| None::<()>)?;
    debug_assert!(matches!(of_every_type, Named::All), "no type has a name");
    let what: Vec<What> = match (below, tags) {
        (Named::All, Named::All) => vec![What::All],
        (Named::These(paths), Named::All) => paths.into_iter().map(Path::named).collect(),
        (Named::All, Named::These(tags)) => tags.into_iter().map(What::Tag).collect(),
        // Of what lies below a path, the responses with a tag: no hash finds both at once.
        (Named::These(_), Named::These(_)) => return None,
    };
    let hosts = match hosts {
        Named::All => None,
        Named::These(hosts) => Some(hosts.into_iter().collect::<Vec<_>>()),
    };
    let names = what.len().saturating_mul(hosts.as_ref().map_or(1, Vec::len));
    (names <= NAMES_MAX).then_some(Recognised { hosts, what })
}

/// What one expression names of its part.
enum Named<T> {
    All,
    These(BTreeSet<T>),
}

/// Reads an expression: each of its alternatives is `one` name, or one of them is everything.
fn read<T: Ord>(
    expression: Option<&Expression>,
    is_every: impl Fn(&Shape<'_>) -> bool,
    one: impl Fn(Shape<'_>) -> Option<T>,
) -> Option<Named<T>> {
    let Some(Expression { text, at_start }) = expression else { return Some(Named::All) };
    if text.len() > RECOGNISED_BYTES_MAX {
        return None;
    }
    let words = words::words(&in_our_syntax(text))?;
    let shapes = || words.iter().map(|word| Shape::of(word, *at_start));
    if shapes().any(|shape| shape.is_everything() || is_every(&shape)) {
        return Some(Named::All);
    }
    shapes().map(one).collect::<Option<_>>().map(Named::These)
}

/// One alternative of an expression.
struct Shape<'a> {
    /// What is between anchors, without `.*` at either end.
    body: &'a [Atom],
    from_start: bool,
    to_end: bool,
    /// Whether it is the alternative as it was written.
    is_bare: bool,
}

impl<'a> Shape<'a> {
    fn of(word: &'a [Atom], at_start: bool) -> Self {
        let (mut body, mut from_start, mut to_end) = (word, at_start, false);
        while let [Atom::Start, rest @ ..] = body {
            (body, from_start) = (rest, true);
        }
        while let [rest @ .., Atom::End] = body {
            (body, to_end) = (rest, true);
        }
        while let [Atom::Any, rest @ ..] = body {
            (body, from_start) = (rest, false);
        }
        while let [rest @ .., Atom::Any] = body {
            (body, to_end) = (rest, false);
        }
        Self { body, from_start, to_end, is_bare: body.len() == word.len() && !at_start }
    }

    fn is_whole(&self) -> bool {
        self.from_start && self.to_end
    }

    /// Whether it matches whatever is there.
    fn is_everything(&self) -> bool {
        !self.is_whole() && matches!(self.body, [] | [Atom::One])
    }
}

/// The text that the atoms stand for.
fn literal(atoms: &[Atom]) -> Option<String> {
    let char = |atom: &Atom| match atom {
        Atom::Char(char) => Some(*char),
        _ => None,
    };
    atoms.iter().map(char).collect()
}

fn host(shape: &Shape<'_>) -> Option<Box<str>> {
    let host = literal(shape.body).filter(|host| shape.is_whole() && !host.is_empty())?;
    // A cache that stores the Host field as it came has the port in it.
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |name: &str| !name.is_empty() && (!name.contains(':') || name.ends_with(']'));
    let name = host.rsplit_once(':').filter(|(name, port)| is_name(name) && is_port(port));
    Some(name.map_or(&*host, |(name, _)| name).to_ascii_lowercase().into())
}

/// A target, or the path above some.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Path {
    Exact(Box<str>),
    Above(Box<str>),
}

impl Path {
    fn named(self) -> What {
        match self {
            Self::Exact(target) => What::Target(target),
            Self::Above(path) => What::Prefix(path),
        }
    }
}

/// Every target begins with `/`.
fn is_every_target(shape: &Shape<'_>) -> bool {
    !shape.to_end && matches!(shape.body, [Atom::Char('/')])
}

fn path(shape: &Shape<'_>) -> Option<Path> {
    let text = literal(shape.body).filter(|text| shape.from_start && text.starts_with('/'))?;
    if shape.to_end {
        return Some(Path::Exact(text.into()));
    }
    let is_path = text.ends_with('/') && text.matches('/').count() <= ANCESTORS_MAX;
    let target = Target::parse(Bytes::copy_from_slice(text.as_bytes())).ok().filter(|_| is_path)?;
    // What is written in another way than the canonical one is found by no hash of it.
    let is_canonical = target.canonical_path().is_ok_and(|path| path == text.as_str());
    is_canonical.then(|| Path::Above(text.into()))
}

fn tag(shape: &Shape<'_>, bare: Bare) -> Option<Box<[u8]>> {
    let name = match shape.body {
        [Atom::EdgeBefore, name @ .., Atom::EdgeAfter] if !shape.from_start && !shape.to_end => name,
        name if bare == Bare::Exact && shape.is_bare => name,
        _ => return None,
    };
    let name = literal(name)?.into_bytes();
    let is_tag = !name.is_empty() && !name.iter().any(|byte| is_separator(*byte));
    is_tag.then(|| name.into())
}

#[cfg(test)]
mod tests;
