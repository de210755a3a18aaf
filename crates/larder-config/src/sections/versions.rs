//! Versions that an application keeps in Redis, by which a rule tells responses apart.

use std::time::Duration;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section as _, Setting, Shape};
use crate::sections::redis_server::RedisServer;
use crate::value::version_key::VersionKey;

section! {
    /// Versions that an application keeps in Redis or Valkey: `versions = { hash = "resource_versions", field = "{target}" }`. What was
    /// stored under one version is not used under another, so an application that counts a version up has invalidated what it
    /// stands for. Either `hash` with `field` or `fields`, or `keys`.
    pub(crate) struct VersionsTable in "`versions`" {
        /// The key of a hash that holds versions.
        hash: Option<VersionKey> = ("none"), why "There is nothing to guess from.";
        /// The field of that hash in which the version of a request stands.
        field: Option<VersionKey> = ("none"), why "As above.";
        /// The same of several: all of them together are the version.
        fields: Vec<VersionKey>, why "A page that shows two things changes with either.";
        /// Keys that hold a version each, in place of a hash. All of them together are the version.
        keys: Vec<VersionKey>, why "A change of one field makes larder read again what it uses of its hash. Keys stand for themselves.";
        /// The server where they lie.
        redis: Option<RedisServer> = ("that of the rule's store, else that of `[fleet]`"), why "Versions mostly lie beside what they are versions of.";
        /// How long reading a version may take, connecting included. After that the origin is asked as if nothing were stored.
        timeout: Duration = "200ms", in "5ms" ..= "10s", why "Versions in use are known without reading.";
        /// Begin a version that is missing, with the server's time in seconds, once the origin has given a 200 that may be stored. One
        /// that is there is never overwritten.
        write: bool = false, why "The versions are the application's.";
    }
}

impl Consistent for VersionsTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let has = |key: &str| table.get(key).is_some();
        let problem = match (has("hash"), has("field"), has("fields"), has("keys")) {
            (true, true, false, false) | (true, false, true, false) | (false, false, false, true) => {
                let empty = ["fields", "keys"].into_iter().find(|key| {
                    matches!(table.get(key).map(|node| &node.value), Some(Value::List(items)) if items.is_empty())
                });
                let Some((key, node)) = empty.and_then(|key| Some((key, table.get(key)?))) else { return };
                reading.refuse_value(node, &At::Key(at, key), "at least one", None);
                return;
            }
            (true, true, true, _) => "`field` and `fields` say the same",
            (true, _, _, true) => "a hash and keys are two ways to say where versions lie",
            (true, false, false, false) => {
                "which field of the hash holds the version of a request is missing"
            }
            (false, true, _, _) | (false, _, true, _) => "a field without a hash is nowhere",
            (false, false, false, false) => "where the versions lie is missing",
        };
        let problem = reading.problem(&table.place, at, problem);
        reading.refuse(problem.hint(HINT));
    }
}

/// In place of a table.
const OFF: &str = "off";
/// What to write instead.
const HINT: &str = "write versions = { hash = \"resource_versions\", field = \"{target}\" } or versions = { keys = [\"ver:{target}\"] }";

/// Where a version lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionPlace {
    /// The key, or the hash.
    pub key: VersionKey,
    /// The field of the hash.
    pub field: Option<VersionKey>,
}

/// The versions of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// One or more.
    pub places: Vec<VersionPlace>,
    /// The server, where it is said.
    pub redis: Option<RedisServer>,
    /// How long a read may take.
    pub timeout: Duration,
    /// Whether a missing one is begun.
    pub write: bool,
}

/// What `versions` says: that there are some, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionsSetting {
    /// None, whatever the site or the defaults say.
    Off,
    /// These.
    On(Box<Versions>),
}

impl VersionsSetting {
    pub(crate) fn versions(self) -> Option<Versions> {
        match self {
            Self::Off => None,
            Self::On(versions) => Some(*versions),
        }
    }
}

impl Setting for VersionsSetting {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Words(&[OFF]), Shape::Section(VersionsTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Text(text) if text == OFF => Some(Self::Off),
            Value::Table(_) => {
                let errors = reading.errors.len();
                let VersionsTable { hash, field, fields, keys, redis, timeout, write } =
                    VersionsTable::read(node, at, reading)?;
                if reading.errors.len() > errors {
                    return None;
                }
                let of_hash = hash.iter().flat_map(|hash| {
                    let fields = field.iter().chain(&fields);
                    fields.map(|field| VersionPlace { key: hash.clone(), field: Some(field.clone()) })
                });
                let places =
                    of_hash.chain(keys.iter().map(|key| VersionPlace { key: key.clone(), field: None }));
                let places = places.collect();
                Some(Self::On(Box::new(Versions { places, redis, timeout, write })))
            }
            _ => {
                reading.refuse_value(node, at, "a table, or \"off\"", Some(HINT.to_owned()));
                None
            }
        }
    }
}
