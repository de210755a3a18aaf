//! Names of types: within a crate each stands for one thing.
//!
//! In: the sources below crates/*/src. Out: every type that is visible beyond its file and has the name of another such
//! type of the same crate, with both places.
//! Deliberately absent: tests, and names that are private to a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::sources;

/// Fails with the names that stand for two things.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut crates: Vec<_> = fs::read_dir(root.join("crates"))?.collect::<std::io::Result<_>>()?;
    crates.sort_by_key(fs::DirEntry::file_name);
    let (mut breaches, mut names) = (Vec::new(), 0);
    for entry in &crates {
        let folder = entry.path().join("src");
        if folder.is_dir() {
            let named = named(sources::read(&folder)?);
            names += named.len();
            let name = entry.file_name().to_string_lossy().into_owned();
            breaches.extend(doubles(&named).map(|double| format!("{name}: {double}")));
        }
    }
    ensure!(breaches.is_empty(), "names that stand for two things:\n  {}", breaches.join("\n  "));
    println!("names: {names} types, each with a name of its own in its crate");
    Ok(())
}

/// The types that are visible beyond their files, with the files that define them.
fn named(files: Vec<(String, String)>) -> BTreeMap<String, Vec<String>> {
    let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, path, text) in sources::of_product(files) {
        for name in text.lines().filter_map(visible_type) {
            named.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    named
}

fn doubles(named: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = String> {
    let doubles = named.iter().filter(|(_, files)| files.len() > 1);
    doubles.map(|(name, files)| format!("{name} in {}", files.join(" and ")))
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
        assert_eq!(doubles(&named(files)).collect::<Vec<_>>(), expected);
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
