//! Circles between the source files of a crate: two files that need each other can only be read together.
//!
//! In: the sources below crates/*/src. Out: every group of files that reach each other by their paths and is not in
//! [`LIST`]; and every row of that list which is no such group any more. The message tells a group that has lost files
//! from one that has gained some: a row is written anew for the first alone, so that the list only shrinks.
//! A path leads to the file that defines its item: re-exports are followed, and a file that only re-exports a name does
//! not need the file that defines it. Test modules are left out.
//! Deliberately absent: a parser for Rust. Paths are read as text, after comments and string literals are cut. An item
//! that is only used through a method of another type is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sources::{self, Module};

/// The committed list: a row is a crate, a colon, and the files of a circle in order.
const LIST: &str = "xtask/circles.list";

/// How many re-exports are followed for one name.
const HOPS_MAX: usize = 12;

/// Fails with the circles that are not listed, and the rows that are none.
pub(crate) fn run(root: &Path) -> Result<()> {
    let list = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let listed: BTreeSet<Row> = list.lines().filter_map(Row::parse).collect();
    let mut crates: Vec<_> = fs::read_dir(root.join("crates"))?.collect::<std::io::Result<_>>()?;
    crates.sort_by_key(fs::DirEntry::file_name);
    let (mut found, mut files) = (BTreeMap::new(), 0);
    for folder in crates.iter().map(|entry| entry.path().join("src")).filter(|folder| folder.is_dir()) {
        let name =
            folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let sources = Sources::read(&folder)?;
        files += sources.files.len();
        found.extend(
            sources
                .circles()
                .into_iter()
                .map(|(circle, reasons)| (Row { of: name.clone(), files: circle }, reasons)),
        );
    }
    let breaches = judge(&found, &listed);
    ensure!(breaches.is_empty(), "circles between files:\n  {}", breaches.join("\n  "));
    println!("circles: {files} files, {} listed circles and no other", listed.len());
    Ok(())
}

/// A circle: the crate and its files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    of: String,
    files: BTreeSet<String>,
}

impl Row {
    /// A row of the list; `None` for a comment.
    fn parse(line: &str) -> Option<Self> {
        let (of, files) = line.split_once(": ").filter(|_| !line.starts_with('#'))?;
        Some(Self { of: of.to_owned(), files: files.split(' ').map(str::to_owned).collect() })
    }

    fn is_within(&self, other: &Self) -> bool {
        self.of == other.of && self.files.is_subset(&other.files)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.of, joined(&self.files))
    }
}

fn joined<'a>(files: impl IntoIterator<Item = &'a String>) -> String {
    files.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Circles with the names by which each file needs another.
type Circles = BTreeMap<Row, Vec<String>>;

/// What is wrong: circles that are in no row, and rows that are more than their circle.
fn judge(found: &Circles, listed: &BTreeSet<Row>) -> Vec<String> {
    let in_no_row = found.iter().filter(|(circle, _)| !listed.iter().any(|row| circle.is_within(row)));
    let in_no_row = in_no_row.map(|(circle, reasons)| {
        let shares = |row: &&Row| row.of == circle.of && !row.files.is_disjoint(&circle.files);
        let what = match listed.iter().find(shares) {
            Some(row) => format!("has gained {}", joined(circle.files.difference(&row.files))),
            None => "need each other".to_owned(),
        };
        format!("{circle}: {what}\n    {}", reasons.join("\n    "))
    });
    let too_long = listed.iter().filter(|row| !found.contains_key(row)).filter_map(|row| {
        let left: Vec<String> =
            found.keys().filter(|circle| circle.is_within(row)).map(Row::to_string).collect();
        let is_gone = !found.keys().any(|circle| row.is_within(circle));
        match left.is_empty() {
            true => is_gone.then(|| format!("{row}: no circle any more; take it out of {LIST}")),
            false => Some(format!("{row}: has lost files; {LIST} needs\n    {}", left.join("\n    "))),
        }
    });
    in_no_row.chain(too_long).collect()
}

/// A `use` declaration or a path within code.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// From the root of the crate.
    path: Module,
    /// The name that it has here; `*` for all names of a module.
    alias: String,
    is_use: bool,
    /// It is there for others as well.
    is_public: bool,
}

/// The sources of a crate by module.
#[derive(Default)]
struct Sources {
    files: BTreeMap<Module, Source>,
}

struct Source {
    /// Below the folder of the sources.
    path: String,
    text: String,
    named: Vec<Named>,
}

impl Sources {
    fn read(folder: &Path) -> Result<Self> {
        Ok(Self::of(sources::read(folder)?))
    }

    fn of(texts: Vec<(String, String)>) -> Self {
        let mut sources = Self::default();
        for (module, path, text) in sources::of_product(texts) {
            sources.files.insert(module, Source { path, text, named: Vec::new() });
        }
        let modules: BTreeSet<Module> = sources.files.keys().cloned().collect();
        for (module, source) in &mut sources.files {
            source.named = named(module, &source.text, &modules);
        }
        sources
    }

    /// The file that defines what a path names.
    fn resolve(&self, path: &[String], hops: usize) -> Option<&Module> {
        let mut at = self.files.get_key_value(&[][..])?.0;
        for (index, segment) in path.iter().enumerate() {
            if let Some((child, _)) = self.files.get_key_value(&path[..=index]) {
                at = child;
                continue;
            }
            let source = self.files.get(at)?;
            if defines(&source.text, segment) || hops == 0 {
                return Some(at);
            }
            let by_name = source.named.iter().filter(|named| named.is_use && named.alias == *segment);
            let by_glob = source.named.iter().filter(|named| named.is_use && named.alias == "*");
            let rest = &path[index + 1..];
            for named in by_name {
                // A name may be that of the module itself.
                if named.path[..] != path[..=index] {
                    return self.resolve(&[&named.path[..], rest].concat(), hops - 1);
                }
            }
            for named in by_glob {
                let further = [&named.path[..], &path[index..]].concat();
                if let Some(found) = self.resolve(&further, hops - 1)
                    && self.files.get(found).is_some_and(|source| defines(&source.text, segment))
                {
                    return Some(found);
                }
            }
            return Some(at);
        }
        Some(at)
    }

    /// The files that a module's file needs, each with the names that it needs them for.
    fn needs(&self, module: &Module) -> BTreeMap<&Module, BTreeSet<&str>> {
        let mut needs: BTreeMap<&Module, BTreeSet<&str>> = BTreeMap::new();
        let Some(source) = self.files.get(module) else { return needs };
        let is_used = |named: &Named| !named.is_use || !named.is_public || uses(&source.text, &named.alias);
        let needed = source.named.iter().filter(|named| is_used(named));
        for named in needed {
            // A module that is named alone is there for the items behind it, which are paths of their own.
            let is_module = self.files.contains_key(&named.path);
            if is_module && named.is_use && named.alias != "*" {
                continue;
            }
            if let Some(target) = self.resolve(&named.path, HOPS_MAX).filter(|target| *target != module) {
                needs.entry(target).or_default().insert(&named.alias);
            }
        }
        needs
    }

    /// Groups of more than one file that reach each other, with the names they do it by.
    fn circles(&self) -> BTreeMap<BTreeSet<String>, Vec<String>> {
        let needs: BTreeMap<&Module, BTreeMap<&Module, BTreeSet<&str>>> =
            self.files.keys().map(|module| (module, self.needs(module))).collect();
        let reached = |from: &Module| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(module) = open.pop() {
                for next in needs.get(module).into_iter().flat_map(BTreeMap::keys) {
                    if reached.insert(*next) {
                        open.push(next);
                    }
                }
            }
            reached
        };
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            self.files.keys().map(|module| (module, reached(module))).collect();
        let is_reached =
            |from: &Module, to: &Module| reach.get(from).is_some_and(|reached| reached.contains(to));
        let mut circles = BTreeMap::new();
        for module in self.files.keys().filter(|module| is_reached(module, module)) {
            let is_beside = |other: &Module| is_reached(module, other) && is_reached(other, module);
            let group: Vec<_> = self.files.iter().filter(|(other, _)| is_beside(other)).collect();
            let paths: BTreeSet<String> = group.iter().map(|(_, source)| source.path.clone()).collect();
            let mut reasons = Vec::new();
            for (from, source) in group {
                for (to, names) in needs.get(from).into_iter().flatten().filter(|(to, _)| is_beside(to)) {
                    let names: Vec<&str> = names.iter().copied().collect();
                    let to = self.files.get(*to).map_or("", |to| &to.path);
                    reasons.push(format!("{} -> {to}: {}", source.path, names.join(", ")));
                }
            }
            circles.insert(paths, reasons);
        }
        circles
    }
}

/// Every path in a module's text that begins at the crate, at a module above, at one of its own, or at one that it uses.
fn named(module: &Module, text: &str, modules: &BTreeSet<Module>) -> Vec<Named> {
    let mut found = Vec::new();
    for root in ["crate", "super", "self"] {
        let base = absolute(module, root);
        base.into_iter().for_each(|base| found.extend(from_root(text, root, &base)));
    }
    let own = modules.iter().filter(|child| child.len() == module.len() + 1 && child.starts_with(module));
    let used =
        found.iter().filter(|named| named.is_use && modules.contains(&named.path)).map(|named| &named.path);
    let roots: BTreeSet<&Module> = own.chain(used).filter(|root| !root.is_empty()).collect();
    let behind = roots.into_iter().filter_map(|root| Some(from_root(text, root.last()?, root)));
    let behind: Vec<Named> = behind.flatten().collect();
    found.extend(behind);
    found
}

/// The paths that begin with the word `root`, which stands for the module `base`.
fn from_root(text: &str, root: &str, base: &Module) -> Vec<Named> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&format!("{root}::")) {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$' | '.')) {
            continue;
        }
        let statement = text[..at].rsplit([';', '}', '{', '\n']).next().unwrap_or_default().trim();
        // A visibility names where something is seen, and needs nothing there.
        if statement.ends_with("pub(in") {
            continue;
        }
        let is_use = statement == "use" || statement.ends_with(" use");
        let is_public = is_use && statement.starts_with("pub");
        let mut paths = Vec::new();
        sources::expand(&text[at..], &mut Vec::new(), &mut paths);
        for (segments, alias) in paths {
            let mut path = base.clone();
            let is_inside = segments.iter().skip(1).all(|segment| match segment.as_str() {
                "super" => path.pop().is_some(),
                _ => {
                    path.push(segment.clone());
                    true
                }
            });
            if is_inside {
                found.push(Named { path, alias, is_use, is_public });
            }
        }
    }
    found
}

/// The module that `crate`, `self` or `super` stands for; `None` where there is none.
fn absolute(module: &Module, root: &str) -> Option<Module> {
    match root {
        "crate" => Some(Vec::new()),
        "self" => Some(module.clone()),
        _ => Some(module.split_last()?.1.to_vec()),
    }
}

/// Whether a file defines an item of this name, and not only a method.
fn defines(text: &str, name: &str) -> bool {
    let kinds = ["struct", "enum", "trait", "type", "fn", "const", "static", "union", "macro_rules!", "mod"];
    text.match_indices(name).any(|(at, _)| {
        let behind = text[at + name.len()..].chars().next();
        let is_whole = !behind.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let word = line.strip_suffix(' ').and_then(|before| before.split_whitespace().next_back());
        is_whole && !line.starts_with(' ') && word.is_some_and(|word| kinds.contains(&word))
    })
}

/// Whether a name is used outside of `use` declarations.
fn uses(text: &str, name: &str) -> bool {
    let mut is_use = false;
    for line in text.lines() {
        let words = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        is_use |= words.trim_start_matches("pub ").starts_with("use ");
        let is_word = |at: usize| {
            let around = [line[..at].chars().next_back(), line[at + name.len()..].chars().next()];
            !around.into_iter().flatten().any(|c| c.is_alphanumeric() || c == '_')
        };
        if !is_use && line.match_indices(name).any(|(at, _)| is_word(at)) {
            return true;
        }
        is_use &= !line.trim_end().ends_with(';');
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&[&str]]) {
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let circles = Sources::of(texts).circles().into_keys();
        let circles: Vec<Vec<String>> = circles.map(|files| files.into_iter().collect()).collect();
        assert_eq!(circles, expected, "{files:?}");
    }

    #[test]
    fn files_that_need_each_other_are_found() {
        check(
            &[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")],
            &[&["a.rs", "b.rs"]],
        );
        check(
            &[
                ("lib.rs", ""),
                ("a.rs", "use crate::b::{x, y::Z};"),
                ("b.rs", "fn f() { super::c::g() }"),
                ("c.rs", "impl crate::a::A {}"),
            ],
            &[&["a.rs", "b.rs", "c.rs"]],
        );
        check(
            &[
                ("lib.rs", ""),
                ("a/mod.rs", "mod b;\nuse b::B;\nstruct A;"),
                ("a/b.rs", "use super::A;\nstruct B;"),
            ],
            &[&["a/b.rs", "a/mod.rs"]],
        );
        check(&[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;")], &[]);
    }

    #[test]
    fn a_name_leads_to_the_file_that_defines_it() {
        let facade = ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::*;");
        check(&[facade, ("a.rs", "use crate::B;\nstruct A;"), ("b.rs", "struct B;")], &[]);
        check(
            &[facade, ("a.rs", "use crate::B;\nstruct A;"), ("b.rs", "use crate::A;\nstruct B;")],
            &[&["a.rs", "b.rs"]],
        );
        let parent = ("p/mod.rs", "mod a;\nmod b;\nuse crate::x::X;\npub(crate) use a::A;");
        check(
            &[
                ("lib.rs", ""),
                ("x.rs", "struct X;"),
                parent,
                ("p/a.rs", "use super::X;\nstruct A;"),
                ("p/b.rs", "use super::A;"),
            ],
            &[],
        );
        // One that re-exports a name and uses it needs the file.
        let parent = ("p/mod.rs", "mod a;\npub use a::A;\nstruct P(A);");
        check(&[("lib.rs", ""), parent, ("p/a.rs", "use super::P;\nstruct A;")], &[&["p/a.rs", "p/mod.rs"]]);
    }

    #[test]
    fn tests_comments_and_texts_are_left_out() {
        let tests = "struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n#[cfg(test)]\nmod testing;\n#[cfg(test)]\n#[allow(unused)]\nmod more {\n    use crate::b::B;\n}";
        check(
            &[
                ("lib.rs", ""),
                ("a/mod.rs", tests),
                ("a/testing.rs", "use crate::b::B;"),
                ("b.rs", "use crate::a::A;"),
            ],
            &[],
        );
        check(
            &[
                ("lib.rs", ""),
                ("a.rs", "// crate::b::B\nlet x = \"crate::b::B\";\npub(in crate::b) struct A;"),
                ("b.rs", "use crate::a::A;"),
            ],
            &[],
        );
    }

    #[test]
    fn a_row_may_only_lose_files() {
        let row = |text: &str| Row::parse(text).unwrap();
        let judged = |found: &[&str], listed: &[&str]| {
            let found = found.iter().map(|text| (row(text), vec!["x -> y: Z".to_owned()])).collect();
            judge(&found, &listed.iter().map(|text| row(text)).collect())
        };
        assert!(judged(&["a: x y"], &["a: x y"]).is_empty());
        assert_eq!(judged(&["a: x y"], &[]), ["a: x y: need each other\n    x -> y: Z"]);
        assert_eq!(judged(&["a: x y"], &["b: x y"]).len(), 2, "another crate's");
        assert_eq!(
            judged(&[], &["a: x y"]),
            ["a: x y: no circle any more; take it out of xtask/circles.list"]
        );
        assert_eq!(
            judged(&["a: x y"], &["a: v x y"]),
            ["a: v x y: has lost files; xtask/circles.list needs\n    a: x y"]
        );
        assert_eq!(judged(&["a: v x y z"], &["a: x y"]), ["a: v x y z: has gained v z\n    x -> y: Z"]);
        let one_for_another = judged(&["a: x z"], &["a: x y"]);
        assert_eq!(one_for_another[0], "a: x z: has gained z\n    x -> y: Z");
        assert!(Row::parse("# a: x").is_none());
    }
}
