//! Directories of stores: none twice, none inside another, and no disk where a site's files are served from.
//!
//! Two stores in one directory would delete each other's files as foreign, or count them twice; a disk beneath a
//! site's `root` would be served as it lies there, with what was stored for others. Compared is what the names stand for,
//! so that neither `..` nor a symbolic link hides anything, as far as it exists.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};

use crate::document::{Position, Table, Value};
use crate::reading::{At, Reading, tables};
use crate::value::path::{Directory, StoreDirectory};

pub(crate) fn check(table: &Table, reading: &mut Reading<'_>) {
    let served = served(table, reading);
    let mut taken = Taken::default();
    let stores_at = At::Key(&At::Top, "stores");
    for entry in tables(table, "stores").into_iter().flat_map(|stores| &stores.entries) {
        let Value::Table(store) = &entry.node.value else { continue };
        let store_at = At::Key(&stores_at, &entry.name);
        let disks_at = At::Key(&store_at, "disks");
        for (index, disk) in tables(store, "disks").into_iter().enumerate() {
            let disk_at = At::Item(&disks_at, index);
            let path_at = At::Key(&disk_at, "path");
            for (path, place, _) in reading.located::<StoreDirectory>(disk, "path") {
                take(&path.0, (&place, &path_at), &mut taken, reading);
                apart(&path.0, (&place, &path_at), &served, reading);
            }
        }
        let files_at = At::Key(&store_at, "files");
        let (files, at) = match store.get("files").map(|node| &node.value) {
            Some(Value::Table(files)) => {
                (reading.located::<StoreDirectory>(files, "path"), At::Key(&files_at, "path"))
            }
            _ => (reading.located::<StoreDirectory>(store, "files"), files_at),
        };
        for (path, place, _) in files {
            take(&path.0, (&place, &at), &mut taken, reading);
        }
    }
}

/// Notes that a store has this directory, or refuses it.
fn take(path: &Path, (place, at): (&Position, &At<'_>), taken: &mut Taken, reading: &mut Reading<'_>) {
    let path = real(path);
    match taken.touching(&path) {
        Some(said) => {
            let problem = reading.problem(place, at, said);
            reading.refuse(problem.hint("each disk, and each store of files, has a directory of its own"));
        }
        None => taken.insert(path, format!("{at} ({})", reading.line_of(place))),
    }
}

/// Refuses a disk that lies where files are served from. Plain files are made to be looked at: those may.
fn apart(path: &Path, (place, at): (&Position, &At<'_>), served: &Taken, reading: &mut Reading<'_>) {
    if let Some(root) = served.around(&real(path)) {
        let problem = reading.problem(place, at, format!("it lies inside the directory of {root}"));
        reading
            .refuse(problem.hint("what is stored would be served as files: take a directory outside of it"));
    }
}

/// Where sites serve files from.
fn served(table: &Table, reading: &Reading<'_>) -> Taken {
    let sites_at = At::Key(&At::Top, "site");
    let mut roots = BTreeMap::new();
    for (index, site) in tables(table, "site").into_iter().enumerate() {
        let site_at = At::Item(&sites_at, index);
        for (root, place, _) in reading.located::<Directory>(site, "root") {
            let owner = format!("{} ({})", At::Key(&site_at, "root"), reading.line_of(&place));
            roots.entry(real(&root.0)).or_insert(owner);
        }
    }
    let mut served = Taken::default();
    // In their order, what is around others comes before them.
    for (root, owner) in roots {
        if served.around(&root).is_none() {
            served.insert(root, owner);
        }
    }
    served
}

/// Directories with what they belong to, none inside another. So what lies around one is the last before it in their
/// order, which is that of the names between the slashes, and what lies inside of it is the first behind it.
#[derive(Default)]
struct Taken(BTreeMap<PathBuf, String>);

impl Taken {
    fn insert(&mut self, path: PathBuf, owner: String) {
        self.0.insert(path, owner);
    }

    /// What `path` belongs to, or lies inside of.
    fn around(&self, path: &Path) -> Option<&str> {
        self.before(path).map(|(_, owner)| owner)
    }

    fn before(&self, path: &Path) -> Option<(&Path, &str)> {
        let (other, owner) = self.0.range::<Path, _>((Unbounded, Included(path))).next_back()?;
        path.starts_with(other).then_some((other, owner))
    }

    /// What stands against taking `path`, in words.
    fn touching(&self, path: &Path) -> Option<String> {
        if let Some((other, owner)) = self.before(path) {
            return Some(match other == path {
                true => format!("it is the directory of {owner}"),
                false => format!("it lies inside the directory of {owner}"),
            });
        }
        let (other, owner) = self.0.range::<Path, _>((Excluded(path), Unbounded)).next()?;
        other.starts_with(path).then(|| format!("the directory of {owner} lies inside of it"))
    }
}

/// What a path stands for, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let parent =
        path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    match (parent.map(Path::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}
