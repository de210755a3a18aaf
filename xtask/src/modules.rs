//! The step modules of larder-proxy never import each other.
//!
//! In: the sources below crates/larder-proxy/src. Out: every path by which one step module names another. A step module
//! is a folder, or a top file with the name of a step of a request. Modules that name step modules are branching modules,
//! `serve` and `forward` above all. No step module may name a branching module, because it would reach all others through
//! it. Every module may name the remaining top files, and the folders in [`SHARED`].
//! Deliberately absent: a parser for Rust. Comments are cut, and paths are read as text: `crate::a::b`,
//! `crate::{a, b::c}` and chains of `super::`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::sources::{self, module_of, without_comments};

const SOURCES: &str = "crates/larder-proxy/src";

/// Branching modules, whatever these files name. Others join them by naming a step module.
const BRANCHING: &[&str] = &["lib", "serve", "forward", "explain", "objects"];

/// Folders that every module may name, and that name no step themselves.
const SHARED: &[&str] = &["invalidation", "purges"];

/// Step modules by name even where they are a single file.
const STEPS: &[&str] = &["route", "key", "lookup", "collapse", "fetch", "fill", "assemble", "respond"];

/// Fails with the list of paths between step modules.
pub(crate) fn run(root: &Path) -> Result<()> {
    let sources = root.join(SOURCES);
    let files: Vec<Source> = sources::read(&sources)?.into_iter().map(Source::of).collect();
    let breaches = breaches(&files);
    ensure!(breaches.is_empty(), "modules that import each other:\n  {}", breaches.join("\n  "));
    println!("modules: {} files of larder-proxy, no step names another", files.len());
    Ok(())
}

/// A source file: its module path below the crate (`["fetch", "window"]`), and its text.
struct Source {
    path: PathBuf,
    module: Vec<String>,
    text: String,
}

impl Source {
    fn of((path, text): (String, String)) -> Self {
        Self { module: module_of(&path), path: path.into(), text }
    }
}

fn breaches(files: &[Source]) -> Vec<String> {
    let mut steps: BTreeSet<&str> = STEPS.iter().copied().collect();
    steps.extend(
        files.iter().filter(|f| f.module.len() > 1).filter_map(|f| f.module.first()).map(String::as_str),
    );
    // A branching module may be a folder too; that makes it no step module.
    steps.retain(|name| !BRANCHING.contains(name) && !SHARED.contains(name));
    let named: Vec<(&Source, &str, BTreeSet<String>)> = files
        .iter()
        .filter_map(|file| {
            let own = file.module.first()?;
            Some((file, own.as_str(), top_modules(&without_comments(&file.text), file.module.len())))
        })
        .collect();

    // Branching modules are added until no other file names a step module or a branching module.
    let mut branching: BTreeSet<&str> = BRANCHING.iter().copied().collect();
    loop {
        let is_guarded = |name: &String| steps.contains(name.as_str()) || branching.contains(name.as_str());
        let joins = |(_, own, names): &&(&Source, &str, BTreeSet<String>)| {
            !steps.contains(own) && !branching.contains(own) && names.iter().any(is_guarded)
        };
        let joining: Vec<&str> = named.iter().filter(joins).map(|(_, own, _)| *own).collect();
        if joining.is_empty() {
            break;
        }
        branching.extend(joining);
    }

    let mut found = Vec::new();
    for (file, own, names) in named.iter().filter(|(_, own, _)| steps.contains(own)) {
        for other in names.iter().map(String::as_str).filter(|other| other != own) {
            if steps.contains(other) {
                found.push(format!("{}: names the step `{other}`", file.path.display()));
            } else if branching.contains(other) {
                found.push(format!("{}: names `{other}`, which names steps", file.path.display()));
            }
        }
    }
    found
}

/// The modules directly below the crate that `text` names, from a module `depth` levels down.
fn top_modules(text: &str, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let before = text[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            names(&text[at + "crate::".len()..], &mut found);
        }
    }
    let up = "super::".repeat(depth);
    for (at, _) in text.match_indices(&up) {
        let rest = &text[at + up.len()..];
        let longer = text[..at].ends_with("super::") || rest.starts_with("super::");
        if !longer {
            names(rest, &mut found);
        }
    }
    found
}

/// The first segment of a path, or of each path of a group.
fn names(path: &str, found: &mut BTreeSet<String>) {
    let Some(group) = path.strip_prefix('{') else {
        let name = identifier(path);
        if !name.is_empty() {
            found.insert(name.to_owned());
        }
        return;
    };
    let (mut depth, mut start) = (0_usize, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                start = false;
                found.insert(identifier(&group[at..]).to_owned());
            }
            _ => {}
        }
    }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(module: &[&str], text: &str) -> Source {
        let module: Vec<String> = module.iter().map(|m| (*m).to_owned()).collect();
        Source { path: module.join("/").into(), module, text: text.to_owned() }
    }

    fn check(module: &[&str], text: &str, breaks: usize) {
        let files = [source(module, text), source(&["fetch", "pace"], ""), source(&["settings"], "")];
        let found = breaches(&files);
        assert_eq!(found.len(), breaks, "{module:?}: {text}: {found:?}");
    }

    #[test]
    fn a_step_uses_itself_and_shared_files() {
        check(&["key"], "use crate::key::Parts; use crate::settings::Site;", 0);
        check(&["fill", "tee"], "use super::Fill; use crate::fill::Reader;", 0);
        check(&["fill", "tee"], "// as in crate::fetch::Pace", 0);
        check(&["fill"], "use larder_store::crate_name;", 0);
    }

    #[test]
    fn a_step_that_names_another_is_found() {
        check(&["key"], "use crate::fetch::Pace;", 1);
        check(&["key", "sort"], "fn f(x: crate::lookup::Found) {}", 1);
        check(&["fill"], "use crate::{settings::Site, fetch::{Pace, Turn}, collapse};", 2);
        check(&["fill"], "use super::fetch::Pace;", 1);
        check(&["fill", "tee"], "use super::super::fetch::Pace;", 1);
        check(&["fill"], "use crate::serve::Exchange;", 1);
    }

    #[test]
    fn a_branching_module_names_steps_and_is_named_by_none() {
        check(&["serve"], "use crate::{fetch, fill};", 0);
        check(&["plan"], "use crate::fetch::Pace;", 0);
        let files = [
            source(&["plan"], "use crate::fetch::Pace;"),
            source(&["table"], "use crate::plan::Plan;"),
            source(&["fetch", "pace"], ""),
            source(&["key"], "use crate::table::Table;"),
        ];
        assert_eq!(breaches(&files), ["key: names `table`, which names steps"]);
    }
}
