//! What a reader may rely on in every file: a head, no debt left in words, no nameless names, reasons for `unsafe`.
//!
//! In: the files that git tracks or would track. Out: one line per breach, with file and line.
//! Deliberately absent: anything clippy or rustfmt already finds.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::sources;

/// Longest source file; above about 400 lines a file has two purposes.
const LINES_MAX: usize = 700;

/// Names that say nothing of a file's one job.
const NAMELESS: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager", "misc", "shared"];

/// Debt in words, and paths that exist on one machine only. Written apart so that this file passes its own check.
const FORBIDDEN: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("/", "root/"),
    concat!("/", "home/"),
];

/// Prose and source; other kinds hold data.
const KINDS: &[&str] = &["rs", "toml", "md", "sh", "yml", "yaml"];

/// Fails with every breach found.
pub(crate) fn run(root: &Path) -> Result<()> {
    let (mut breaches, mut files) = (Vec::new(), 0);
    for name in &sources::in_git(root)? {
        let kind = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default();
        // A tracked file may be gone from the working tree.
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            continue;
        };
        if KINDS.contains(&kind) || name == "Makefile" || name.starts_with(".ci/") {
            files += 1;
            breaches.extend(judge(name, &text));
        }
    }
    ensure!(breaches.is_empty(), "{} breaches:\n  {}", breaches.len(), breaches.join("\n  "));
    println!("words: {files} files, each with its head, none with debt");
    Ok(())
}

/// Every breach in one file.
fn judge(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
            found.push(format!("{name}:{number}: `{word}`"));
        }
    }
    if !name.ends_with(".rs") {
        return found;
    }
    let stem = Path::new(name).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    if NAMELESS.contains(&stem) {
        found.push(format!("{name}: `{stem}` says nothing of what the file does"));
    }
    if !text.starts_with("//!") && !text.starts_with("#![") {
        found.push(format!("{name}: opens without `//!`"));
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LINES_MAX {
        found.push(format!("{name}: {} lines, more than {LINES_MAX}", lines.len()));
    }
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or(line).trim();
        if opens_unsafe(code) && !reasoned(&lines[..index]) {
            found.push(format!("{name}:{}: `unsafe` without a `SAFETY:` reason above it", index + 1));
        }
        if code.contains("fn get_") && !code.contains('"') {
            found.push(format!("{name}:{}: `get_` in a function's name", index + 1));
        }
    }
    found
}

fn opens_unsafe(code: &str) -> bool {
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|opening| code.contains(opening))
        && !code.contains(['"', '\''])
}

/// Whether the comment directly above, attributes aside, gives the reason.
fn reasoned(above: &[&str]) -> bool {
    above
        .iter()
        .rev()
        .map(|line| line.trim())
        .take_while(|line| line.starts_with("//") || line.starts_with("#["))
        .any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, breaches: usize) {
        let found = judge(name, text);
        assert_eq!(found.len(), breaches, "{found:?}");
    }

    #[test]
    fn a_file_with_head_and_reasons_passes() {
        check("a/pool.rs", "//! Idle connections.\n// SAFETY: the fd is ours.\nunsafe { close(fd) }\n", 0);
        check("a/pool.rs", "//! Says unsafe in prose.\n// unsafe {\n", 0);
    }

    #[test]
    fn breaches_are_found() {
        check("a/pool.rs", "use std::fs;\n", 1);
        check("a/pool.rs", "//! Idle.\nunsafe { close(fd) }\n", 1);
        check("a/utils.rs", "//! Idle.\n", 1);
        check("a/pool.rs", "//! Idle.\npub fn get_one() {}\n", 1);
        check("a/pool.rs", concat!("//! Idle. TO", "DO: write it\n"), 1);
        check("docs/a.md", concat!("built in /ho", "me/somebody\n"), 1);
        check("a/pool.rs", &format!("//! Idle.\n{}", "\n".repeat(LINES_MAX)), 1);
    }
}
