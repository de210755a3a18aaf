//! The files of the checkout, and the source files of a crate, as text.
//!
//! In: the folder of the sources. Out: each file with its path below that folder, and what other checks ask of a text:
//! its module, the text without comments and without tests, and the paths of a `use` tree.
//! Deliberately absent: a parser for Rust.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A module: `["fetch", "window"]`; the root of a crate has no segments.
pub(crate) type Module = Vec<String>;

/// The names of all files that git tracks or would track.
pub(crate) fn in_git(root: &Path) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    if !listed.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect())
}

/// The files below `folder`, each with its path there and its text.
pub(crate) fn read(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    collect(folder, folder, &mut texts)?;
    texts.sort();
    Ok(texts)
}

fn collect(base: &Path, folder: &Path, texts: &mut Vec<(String, String)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(base, &path, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            texts.push((path.strip_prefix(base).unwrap_or(&path).display().to_string(), text));
        }
    }
    Ok(())
}

/// Whether a file is for tests by its name.
fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

/// The files that are not for tests, with their modules, and without comments and tests in their texts.
pub(crate) fn of_product(texts: Vec<(String, String)>) -> Vec<(Module, String, String)> {
    let (mut files, mut of_tests) = (Vec::new(), Vec::new());
    for (path, text) in texts.into_iter().filter(|(path, _)| !is_test(path)) {
        let module = module_of(&path);
        let (text, tests) = without_tests(&without_comments(&text));
        of_tests.extend(tests.into_iter().map(|test| [&module[..], &[test]].concat()));
        files.push((module, path, text));
    }
    files.retain(|(module, ..)| !of_tests.iter().any(|test| module.starts_with(test)));
    files
}

/// The module that a file is.
pub(crate) fn module_of(path: &str) -> Module {
    let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod")
        || matches!(&module[..], [root] if root == "lib" || root == "main")
    {
        module.pop();
    }
    module
}

/// Comments are cut, and what stands in string literals.
pub(crate) fn without_comments(text: &str) -> String {
    let cut = |line: &str| {
        let (mut kept, mut is_text, mut before) = (String::new(), false, ' ');
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '/' if !is_text && chars.peek() == Some(&'/') => break,
                '"' if before != '\\' && before != '\'' => is_text = !is_text,
                _ if is_text => {}
                _ => kept.push(c),
            }
            before = c;
        }
        kept
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// The paths of a tree, `a::{b, c::d as e}`, with the names that they have. Gives back how much of the text it is.
pub(crate) fn expand(text: &str, before: &mut Module, found: &mut Vec<(Module, String)>) -> usize {
    let start = text.len() - text.trim_start().len();
    let rest = &text[start..];
    if rest.starts_with('{') {
        let mut at = start + 1;
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            match text[at..].chars().next() {
                Some('}') => return at + 1,
                Some(',') => at += 1,
                Some(_) => {
                    let length = before.len();
                    let read = expand(&text[at..], before, found);
                    before.truncate(length);
                    if read == 0 {
                        return at;
                    }
                    at += read;
                }
                None => return at,
            }
        }
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(rest.len());
    if end == 0 {
        return 0;
    }
    let (segment, behind) = rest.split_at(end);
    before.push(segment.to_owned());
    if let Some(more) = behind.strip_prefix("::")
        && more.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '{' | '*'))
    {
        let read = expand(more, before, found);
        return start + end + 2 + read;
    }
    let mut path = before.clone();
    let mut alias = segment.to_owned();
    if segment == "self" {
        path.pop();
        alias = path.last().cloned().unwrap_or_default();
    }
    let mut read = start + end;
    if let Some(renamed) = behind.strip_prefix(" as ") {
        let length = renamed.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(renamed.len());
        alias = renamed[..length].to_owned();
        read += " as ".len() + length;
    }
    if segment == "*" {
        path.pop();
    }
    found.push((path, alias));
    read
}

/// The text without test modules, and the names of those that are files.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut files) = (Vec::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_test = line.trim() == "#[cfg(test)]" || line.trim().starts_with("#[cfg(all(test");
        // Further attributes may stand between this one and the module.
        let mut attributes = vec![line];
        while is_test && let Some(next) = lines.next_if(|next| next.trim().starts_with("#[")) {
            attributes.push(next);
        }
        let module = lines.peek().and_then(|next| {
            let name = next
                .trim()
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .strip_prefix("mod ")?;
            Some((
                name.trim_end_matches([';', '{', ' ']).to_owned(),
                next.trim().ends_with('{'),
                indent(next),
            ))
        });
        match module.filter(|_| is_test) {
            Some((_, true, depth)) => {
                // To the brace that stands where the module began.
                lines.next();
                for next in lines.by_ref() {
                    if next.trim() == "}" && indent(next) == depth {
                        break;
                    }
                }
            }
            Some((name, false, _)) => {
                lines.next();
                files.push(name);
            }
            None => kept.append(&mut attributes),
        }
    }
    (kept.join("\n"), files)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
