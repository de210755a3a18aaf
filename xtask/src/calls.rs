//! Calls of the file system: some crates make them in a few files only, which refuse each of them under a lock.
//!
//! In: the sources of those crates, and the [`FILES`] that may make such calls. Out: every line elsewhere that makes one, and every
//! listed file that makes none or refuses none.
//! Deliberately absent: tests, and a parser for Rust. Functions and methods are told by their names; types of the same modules
//! may be used anywhere.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::sources;

/// The files of each crate that may call the file system, below its sources.
const FILES: [(&str, &[&str]); 3] = [
    ("larder-disk", &["engine/sys.rs"]),
    ("larder-files", &["calls.rs", "resolver.rs", "sys.rs"]),
    ("larder-store", &["memory/sendable.rs"]),
];

/// What such a call looks like beside a function of a module `fs`.
const NAMES: [&str; 17] = [
    "FileExt",
    "OpenOptions",
    "DirBuilder",
    "File::open",
    "File::create",
    ".sync_data(",
    ".sync_all(",
    ".set_len(",
    ".write_all(",
    ".metadata(",
    ".symlink_metadata(",
    ".canonicalize(",
    ".exists()",
    ".is_dir()",
    "rustix::io::pread",
    "rustix::io::read",
    "rustix::io::write",
];

/// In a listed file: refuses a call.
const REFUSES: &str = "forbid_under_lock();";

/// Fails with the calls outside of the listed files.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut breaches = Vec::new();
    for (name, listed) in FILES {
        let texts = sources::read(&root.join("crates").join(name).join("src"))?;
        breaches.extend(judge(texts, listed).into_iter().map(|breach| format!("{name}: {breach}")));
    }
    ensure!(breaches.is_empty(), "calls of the file system:\n  {}", breaches.join("\n  "));
    let files = FILES.iter().map(|(_, listed)| listed.len()).sum::<usize>();
    println!("calls: {} crates call the file system in {files} files and nowhere else", FILES.len());
    Ok(())
}

/// What is wrong in one crate.
fn judge(texts: Vec<(String, String)>, listed: &[&str]) -> Vec<String> {
    let (mut breaches, mut makers) = (Vec::new(), Vec::new());
    for (_, path, text) in sources::of_product(texts) {
        let calls = calls(&text);
        if !listed.contains(&&*path) {
            breaches.extend(calls.into_iter().map(|call| format!("{path}: {call}")));
        } else if !calls.is_empty() && text.contains(REFUSES) {
            makers.push(path);
        }
    }
    let idle = listed.iter().filter(|path| !makers.iter().any(|maker| maker == *path));
    breaches.extend(idle.map(|path| format!("{path}: listed, and makes no call or refuses none")));
    breaches
}

/// The lines that make a call, or import one.
fn calls(text: &str) -> Vec<&str> {
    let functions = text.match_indices("fs::").filter(|(at, found)| {
        let rest = text.get(at + found.len()..).unwrap_or_default();
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest,
        };
        let is_function = |name: &str| name.trim_start().starts_with(|c: char| c.is_ascii_lowercase());
        match rest.starts_with('{') {
            true => names.split(',').any(is_function),
            false => is_function(names),
        }
    });
    let named = NAMES.iter().flat_map(|name| text.match_indices(name));
    let mut found: Vec<usize> = functions.chain(named).map(|(at, _)| line_start(text, at)).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter_map(|start| Some(text.get(start..)?.lines().next()?.trim())).collect()
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(judge(files, &["sys.rs"]), expected);
    }

    const SYS: (&str, &str) = ("sys.rs", "fn a() {\n    forbid_under_lock();\n    std::fs::read(b);\n}");

    #[test]
    fn a_call_outside_of_the_listed_files_is_found() {
        check(&[SYS, ("a.rs", "fn a() {\n    std::fs::rename(b, c);\n}")], &["a.rs: std::fs::rename(b, c);"]);
        check(
            &[SYS, ("a.rs", "use rustix::fs::{\n    Mode,\n    openat,\n};")],
            &["a.rs: use rustix::fs::{"],
        );
        check(&[SYS, ("a.rs", "let b = file.sync_data();")], &["a.rs: let b = file.sync_data();"]);
        check(
            &[SYS, ("a.rs", "use std::os::unix::fs::FileExt;")],
            &["a.rs: use std::os::unix::fs::FileExt;"],
        );
    }

    #[test]
    fn types_comments_and_tests_are_no_calls() {
        check(
            &[
                SYS,
                ("a.rs", "use std::fs::File;\nuse rustix::fs::{Mode, OFlags};\n// std::fs::read"),
                ("a/tests.rs", "std::fs::read(a);"),
            ],
            &[],
        );
    }

    #[test]
    fn a_listed_file_makes_calls_and_refuses_them() {
        let breach = "sys.rs: listed, and makes no call or refuses none";
        check(&[("sys.rs", "fn a() {}")], &[breach]);
        check(&[("sys.rs", "fn a() { std::fs::read(b) }")], &[breach]);
    }
}
