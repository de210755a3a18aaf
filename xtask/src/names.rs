//! Names of types: within a crate each stands for one thing.
//!
//! In: the sources below crates/*/src. Out: every type that is visible beyond its file and has the name of another such
//! type of the same crate, or of one that the crate imports from another crate of larder, with all places.
//! Deliberately absent: tests, names that are private to a file, and types that are named by their whole path only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::sources::{self, Module};

/// How the names of larder's own crates begin in paths.
const OWN_CRATES: &str = "larder_";

/// Fails with the names that stand for two things.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut crates: Vec<_> = fs::read_dir(root.join("crates"))?.collect::<std::io::Result<_>>()?;
    crates.sort_by_key(fs::DirEntry::file_name);
    let (mut breaches, mut names) = (Vec::new(), 0);
    for entry in &crates {
        let folder = entry.path().join("src");
        if folder.is_dir() {
            let files = sources::of_product(sources::read(&folder)?);
            names += named(&files).len();
            let name = entry.file_name().to_string_lossy().into_owned();
            breaches.extend(doubles(&files).into_iter().map(|double| format!("{name}: {double}")));
        }
    }
    ensure!(breaches.is_empty(), "names that stand for two things:\n  {}", breaches.join("\n  "));
    println!("names: {names} types, each with a name of its own in its crate");
    Ok(())
}

/// A file of a crate: its module, its path and its text.
type SourceFile = (Module, String, String);

/// Names of types, with the places that define them.
type Named = BTreeMap<String, Vec<String>>;

/// The types that are visible beyond their files, with the files that define them.
fn named(files: &[SourceFile]) -> Named {
    let mut named = Named::new();
    for (_, path, text) in files {
        for name in text.lines().filter_map(visible_type) {
            named.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    named
}

/// The names that `use` declarations bring in from larder's other crates, with their paths there.
fn imported(files: &[SourceFile]) -> Named {
    let mut imported = Named::new();
    for (_, _, text) in files {
        for (at, _) in text.match_indices(OWN_CRATES) {
            let statement = text[..at].rsplit([';', '}', '{', '\n']).next().unwrap_or_default().trim();
            if statement != "use" && !statement.ends_with(" use") {
                continue;
            }
            let mut paths = Vec::new();
            sources::expand(&text[at..], &mut Vec::new(), &mut paths);
            for (path, alias) in paths {
                let (path, places) = (path.join("::"), imported.entry(alias).or_default());
                if !places.contains(&path) {
                    places.push(path);
                }
            }
        }
    }
    imported
}

/// The names that stand for two things, with the places of both.
fn doubles(files: &[SourceFile]) -> Vec<String> {
    let mut imported = imported(files);
    let with_imported = named(files).into_iter().map(|(name, mut places)| {
        places.append(&mut imported.remove(&name).unwrap_or_default());
        (name, places)
    });
    let doubles = with_imported.filter(|(_, places)| places.len() > 1);
    doubles.map(|(name, places)| format!("{name} in {}", places.join(" and "))).collect()
}

/// The name of a type that a line begins to define, where others see it. Types of impls and traits are indented.
fn visible_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace().skip_while(|word| *word == "unsafe");
    let kind = words.next()?;
    let name = words.next()?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    ["struct", "enum", "trait", "type", "union"].contains(&kind).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(doubles(&sources::of_product(files)), expected);
    }

    #[test]
    fn a_name_that_stands_for_two_things_is_found() {
        check(
            &[("a.rs", "pub struct A;"), ("b.rs", "pub(crate) enum A {"), ("c.rs", "pub type B = A;")],
            &["A in a.rs and b.rs"],
        );
        check(
            &[("a.rs", "pub(in crate::x) trait A<T> {"), ("b.rs", "pub(super) struct A(u8);")],
            &["A in a.rs and b.rs"],
        );
    }

    #[test]
    fn a_name_that_is_imported_for_another_thing_is_found() {
        let import = |import| [("a.rs", import), ("b.rs", "pub struct A;")];
        check(&import("use larder_x::{B, c::A};"), &["A in b.rs and larder_x::c::A"]);
        check(&import("pub use larder_x::B as A;"), &["A in b.rs and larder_x::B"]);
        check(&import("fn f() {\n    use larder_x::A;\n}"), &["A in b.rs and larder_x::A"]);
        check(&import("use larder_x::A as B;"), &[]);
        check(&import("use other::A;"), &[]);
        check(&import("fn f(a: larder_x::A) {}"), &[]);
        check(&[("a.rs", "use larder_x::A;"), ("b.rs", "use larder_x::A;\nstruct A;")], &[]);
    }

    #[test]
    fn private_names_and_tests_may_be_alike() {
        check(&[("a.rs", "struct A;"), ("b.rs", "pub struct A;"), ("b/tests.rs", "pub struct A;")], &[]);
        check(
            &[
                ("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests {\n    pub struct A;\n}"),
                ("b.rs", "// pub struct A;"),
            ],
            &[],
        );
    }
}
