//! Names of files: whatever the URI, the name stays beneath the directory and no two URIs have one; and whatever name is
//! found there, it stands for one URI at most, whose name it is.
//!
//! The lines of an input are authority, path, query and another such three; where there is no query line, there is no
//! query. All of the input is a name that is found as well.

use crate::allocated::in_proportion;
use larder_files::TargetUri;
use larder_files::fuzzing;
use larder_http::message::Scheme;

/// The longest component and the longest name, in bytes.
const COMPONENT_BYTES_MAX: usize = 255;
const NAME_BYTES_MAX: usize = 3000 + COMPONENT_BYTES_MAX;

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    in_proportion(input.len() * 8, || {
        is_found(input);
        let Ok(text) = std::str::from_utf8(input) else { return };
        let mut lines = text.split('\n');
        let one = uri(&mut lines);
        let other = uri(&mut lines);
        let names = [&one, &other].map(|uri| uri.as_ref().and_then(stays_beneath));
        if let ([Some(one), Some(other)], [Some(name), Some(other_name)]) = ([&one, &other], &names) {
            assert_eq!(parts(one) == parts(other), name == other_name, "{one} {other}");
        }
    });
}

fn uri<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<TargetUri<'a>> {
    let (authority, path) = (lines.next()?, lines.next()?);
    Some(TargetUri { scheme: Scheme::Http, authority, path, query: lines.next() })
}

fn parts<'a>(uri: &TargetUri<'a>) -> (&'a str, &'a str, Option<&'a str>) {
    (uri.authority, uri.path, uri.query)
}

/// The name, which never leads anywhere else, and is read back as what it was made of.
fn stays_beneath(uri: &TargetUri<'_>) -> Option<Vec<u8>> {
    let (name, read) = fuzzing::name(uri).ok()?;
    assert!(name.len() <= NAME_BYTES_MAX && !name.contains(&0), "{uri}");
    let mut is_cut = false;
    for component in name.split(|byte| *byte == b'/') {
        assert!(!matches!(component, b"" | b"." | b".."), "{uri}: {}", name.escape_ascii());
        assert!(!matches!(component, [b'.' | b'-', ..]), "{uri}: {}", name.escape_ascii());
        assert!(
            component.len() <= COMPONENT_BYTES_MAX && !component.iter().any(u8::is_ascii_control),
            "{uri}"
        );
        is_cut |= component.windows(2).any(|two| two == b"%<");
    }
    let made_of = (uri.authority.to_owned(), uri.path.to_owned(), uri.query.map(str::to_owned));
    match read {
        Some(read) => assert_eq!(read, made_of, "{}", name.escape_ascii()),
        None => assert!(is_cut, "{uri} cannot be read back from {}", name.escape_ascii()),
    }
    Some(name)
}

fn is_found(path: &[u8]) {
    let Some((authority, path_of, query)) = fuzzing::name_found(path) else { return };
    let uri =
        TargetUri { scheme: Scheme::Http, authority: &authority, path: &path_of, query: query.as_deref() };
    let (name, _) = fuzzing::name(&uri).expect("what is said to be its name");
    let inside = path.strip_suffix(b"/%self").unwrap_or(path);
    assert_eq!(name.escape_ascii().to_string(), inside.escape_ascii().to_string(), "{uri}");
}
