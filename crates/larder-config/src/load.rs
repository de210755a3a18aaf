//! From a file, a text or a command line to a checked config.
//!
//! A file of more than 1 MiB is refused unread: nobody writes one, and everything below is bounded by it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::document::source::Source;
use crate::document::{self, Table};
use crate::flags::{self, Flags};
use crate::places::Places;
use crate::problem::{Errors, Problem};
use crate::reading::{At, Reading};
use crate::schema::Section;
use crate::sections::config::Config;
use crate::sections::places_of;
use crate::sections::store::{DEFAULT_STORE, Store};
use crate::told::{ConfigText, query};
use crate::value::name::Name;

/// The longest config, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A config without errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What holds.
    pub config: Config,
    /// What is probably not meant, in the order of the file.
    pub warnings: Vec<Problem>,
    /// What holds and may surprise, though nothing is wrong with it, in the order of the file: for `larder check`.
    pub notes: Vec<Problem>,
    /// What it was read from, without secrets.
    pub text: ConfigText,
    /// Where each key of it stands.
    pub places: Places,
}

impl Checked {
    /// Line and column of the value of a key such as `site[0].tls[1].cert`, both from 1; see [`Places::place`].
    pub fn place(&self, key: &str) -> Option<(usize, usize)> {
        self.places.place(key)
    }

    /// A problem with the value of a key, for what is found out where files are opened; see [`Places::problem`].
    pub fn problem(&self, key: &str, found: impl Into<String>) -> Problem {
        self.places.problem(key, found)
    }
}

/// Reads and checks a file. Relative paths in it start at its directory.
///
/// # Errors
/// Everything that is wrong with it, or why it cannot be read.
pub fn load(path: &Path) -> Result<Checked, Errors> {
    load_with(path, &Flags::default())
}

/// The same, with flags of the command line over the file's keys.
///
/// # Errors
/// As [`load`].
pub fn load_with(path: &Path, flags: &Flags) -> Result<Checked, Errors> {
    let name = path.display().to_string();
    let text = read(path, &name)?;
    let base_dir = path.parent().unwrap_or(Path::new(""));
    let checked = parse_with(&text, &name, base_dir, flags)?;
    Ok(Checked { text: checked.text.read_from(path.to_owned(), flags.clone()), ..checked })
}

/// The text of a file, which is called `name` in messages.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn read(path: &Path, name: &str) -> Result<String, Errors> {
    let refuse = |found: String| Errors(vec![Problem::of_file(name, found)]);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| refuse(format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let valid = String::from_utf8_lossy(valid);
        let (line, column) = Source::new(name, &valid).position(valid.len());
        let problem = Problem::of_file(name, "not UTF-8, which TOML has to be");
        Errors(vec![Problem { line, column, ..problem }])
    })
}

/// Checks a text. `file_name` is for messages; relative paths start at `base_dir`.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(text: &str, file_name: &str, base_dir: &Path) -> Result<Checked, Errors> {
    parse_with(text, file_name, base_dir, &Flags::default())
}

/// The same, with flags of the command line over the text's keys.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(text: &str, file_name: &str, base_dir: &Path, flags: &Flags) -> Result<Checked, Errors> {
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Errors(vec![Problem::of_file(file_name, "larger than 1 MiB")]));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let reading = Reading::new(Source::new(file_name, text), base_dir, places_of);
    match document::parse(text) {
        Ok(mut document) => {
            flags.apply(&mut document);
            check(&document, reading, Some((file_name, text)))
        }
        Err(errors) => {
            let problems = errors
                .into_iter()
                .map(|error| reading.problem(&error.place, &At::Top, format!("not TOML: {}", error.message)));
            Err(Errors(in_order(problems.collect())))
        }
    }
}

/// The config of `larder run --origin URL` without a file: one origin, one site for every host, and flags.
///
/// # Errors
/// Everything that is wrong with the flags; each problem names its flag.
pub fn accelerate(origin: &str, flags: &Flags) -> Result<Checked, Errors> {
    let mut document = flags::document_for(origin, flags);
    flags.apply(&mut document);
    check(&document, Reading::new(Source::new("", ""), Path::new(""), places_of), None)
}

fn check(
    document: &Table,
    mut reading: Reading<'_>,
    source: Option<(&str, &str)>,
) -> Result<Checked, Errors> {
    reading.unknown_keys::<Config>(document, &At::Top);
    let mut config = Config::read_keys(document, &At::Top, &mut reading);
    if !reading.errors.is_empty() {
        return Err(Errors(in_order(reading.errors)));
    }
    let mut hidden = std::mem::take(&mut reading.hidden);
    let targets = reading.targets.iter();
    hidden.extend(targets.filter_map(|(place, target)| query::hidden(place, target, &config.live.redact)));
    let text = source.map(|source| ConfigText::of(source, (document, &config), hidden));
    let default_store = Name::declared(DEFAULT_STORE);
    if config.store(&default_store).is_none() {
        config.stores.push((default_store, Store::default()));
    }
    let places = Places::of(document, &reading);
    let (warnings, notes) = (in_order(reading.warnings), in_order(reading.notes));
    Ok(Checked { config, warnings, notes, text: text.unwrap_or_default(), places })
}

fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems
}
