//! The commands that a reader is told to type: in README.md, docs/guide/*.md and docs/guide/jobs/*.md.
//!
//! In: the fenced blocks marked `sh`. Out: `check` proves that each is well-formed (shell syntax, known marks, make
//! targets and files that exist); `run` runs them, page by page and in order.
//! Marks after `sh`: `no-ci` is not run (benches, clones, servers on other machines); `background` starts a server,
//! waits until it listens and keeps it until the page ends. A block that calls make or cargo runs in the checkout;
//! every other runs in a scratch folder that one page shares, with `larder` on the search path and `examples` at hand.
//! `make check` and `make test` are left to who runs this, which is one of them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use harness::built;
use harness::children::{Server, run_within};

const BLOCK_MAX: Duration = Duration::from_secs(900);
const READY_MAX: Duration = Duration::from_secs(30);
const MARKS: &[&str] = &["no-ci", "background"];
/// What CI calls itself; running them from here would never end.
const CALLERS: &[&str] = &["make", "make check", "make test"];

struct Block {
    page: String,
    line: usize,
    marks: Vec<String>,
    text: String,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    fn is(&self, mark: &str) -> bool {
        self.marks.iter().any(|m| m == mark)
    }

    /// The block without the commands that CI calls itself.
    fn script(&self) -> String {
        let kept = self.text.lines().filter(|line| !CALLERS.contains(&command(line)));
        kept.fold(String::new(), |mut script, line| {
            let _ = writeln!(script, "{line}");
            script
        })
    }

    /// Whether it needs the checkout around it.
    fn in_checkout(&self) -> bool {
        self.text.lines().any(|line| matches!(line.split_whitespace().next(), Some("make" | "cargo")))
    }
}

/// The command of a line, without the comment behind it.
fn command(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim()
}

/// Fails with every block that is not well-formed.
pub(crate) fn check(root: &Path) -> Result<()> {
    let targets = make_targets(&fs::read_to_string(root.join("Makefile")).context("Makefile")?);
    let (mut blocks, mut faults) = (0, Vec::new());
    for page in pages(root)? {
        for block in read(root, &page)? {
            blocks += 1;
            faults.extend(
                faults_of(root, &block, &targets).into_iter().map(|f| format!("{}: {f}", block.place())),
            );
        }
    }
    ensure!(faults.is_empty(), "commands in the pages:\n  {}", faults.join("\n  "));
    println!("readme: {blocks} blocks of commands are well-formed");
    Ok(())
}

fn faults_of(root: &Path, block: &Block, targets: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for mark in block.marks.iter().filter(|m| !MARKS.contains(&m.as_str())) {
        faults.push(format!("unknown mark `{mark}`; known are {}", MARKS.join(", ")));
    }
    for line in block.text.lines() {
        if line.starts_with("$ ")
            || line.starts_with("# ") && line.contains("larder ") && block.text.lines().count() == 1
        {
            faults.push(format!("a prompt cannot be typed: `{line}`"));
        }
        let mut words = command(line).split_whitespace();
        if words.next() == Some("make") {
            for target in words.filter(|w| !w.contains('=') && !w.starts_with('-')) {
                if !targets.iter().any(|t| t == target) {
                    faults.push(format!("there is no `make {target}`"));
                }
            }
        }
        for word in command(line).split_whitespace() {
            let word = word.trim_matches(['"', '\'']);
            if word.starts_with("examples/") && !root.join(word).exists() {
                faults.push(format!("there is no {word}"));
            }
        }
    }
    match Command::new("bash").args(["-n", "-c", &block.text]).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => faults.push(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => faults.push(format!("bash: {error}")),
    }
    faults
}

/// Runs every block that is not marked `no-ci`; the first failure ends it.
pub(crate) fn run(root: &Path) -> Result<()> {
    check(root)?;
    crate::tools::need(root, "readme")?;
    let larder = built::larder(root)?;
    let programs = larder.parent().context("the binary has no folder")?;
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut ran = 0;
    for page in pages(root)? {
        let scratch = tempfile::tempdir().context("no scratch folder")?;
        symlink(root.join("examples"), scratch.path().join("examples")).context("examples")?;
        // Ended in order when the page ends.
        let mut servers: Vec<Server> = Vec::new();
        for block in read(root, &page)?.iter().filter(|b| !b.is("no-ci")) {
            let script = block.script();
            if script.lines().all(|line| command(line).is_empty() || line.starts_with('#')) {
                continue;
            }
            println!("readme: {}", block.place());
            let folder = if block.in_checkout() { root } else { scratch.path() };
            let mut shell = Command::new("bash");
            shell.args(["-euo", "pipefail", "-c", &script]).current_dir(folder).env("PATH", &path);
            // The scratch folder is a stranger's machine: nothing of the caller's build may show.
            shell.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("CARGO_MANIFEST_DIR");
            if block.is("background") {
                let mut server = Server::start(&block.place(), &mut shell)?;
                server.wait_listening(READY_MAX)?;
                servers.push(server);
            } else {
                let status = run_within(&mut shell, BLOCK_MAX).with_context(|| block.place())?;
                if !status.success() {
                    bail!("{}: {status}\n{script}", block.place());
                }
            }
            for server in &mut servers {
                server.still_runs()?;
            }
            ran += 1;
        }
    }
    println!("readme: {ran} blocks of commands ran");
    Ok(())
}

fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let readme = root.join("README.md");
    ensure!(readme.is_file(), "README.md is missing");
    let mut pages = vec![readme];
    for folder in ["docs/guide", "docs/guide/jobs"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        let mut guide: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        guide.retain(|page| page.extension().is_some_and(|e| e == "md"));
        guide.sort();
        pages.append(&mut guide);
    }
    Ok(pages)
}

fn read(root: &Path, page: &Path) -> Result<Vec<Block>> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let name = page.strip_prefix(root).unwrap_or(page).display().to_string();
    blocks(&name, &text)
}

fn blocks(page: &str, text: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    // The open fence: its marks where it is a shell block, `None` for any other kind.
    let mut open: Option<Option<Block>> = None;
    for (line, content) in (1..).zip(text.lines()) {
        let Some(info) = content.trim_start().strip_prefix("```") else {
            if let Some(Some(block)) = &mut open {
                block.text.push_str(content);
                block.text.push('\n');
            }
            continue;
        };
        open = match open {
            Some(block) => {
                found.extend(block);
                None
            }
            None => {
                let mut words = info.split([' ', ',']).filter(|w| !w.is_empty()).map(str::to_owned);
                let shell = matches!(words.next().as_deref(), Some("sh" | "shell" | "bash" | "console"));
                let block =
                    Block { page: page.to_owned(), line, marks: words.collect(), text: String::new() };
                Some(shell.then_some(block))
            }
        };
    }
    ensure!(open.is_none(), "{page}: a fenced block does not end");
    Ok(found)
}

fn make_targets(makefile: &str) -> Vec<String> {
    makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', '#', '.', ' ']))
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, rest)| !rest.starts_with('=') && !name.contains('='))
        .flat_map(|(names, _)| names.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PAGE: &str = "# Title\n```sh\nmake test   # every test\nmake demo\n```\n```toml\nlisten = 1\n```\n\
                        ```sh no-ci\nmake bench NAME=hit\n```\n```sh background\nlarder run\n```\n";

    #[test]
    fn shell_blocks_and_their_marks_are_found() {
        let found = blocks("README.md", PAGE).unwrap();
        assert_eq!(
            found.iter().map(Block::place).collect::<Vec<_>>(),
            ["README.md:2", "README.md:9", "README.md:12"]
        );
        assert!(found[1].is("no-ci") && found[2].is("background"));
        assert!(found[0].in_checkout() && !found[2].in_checkout());
        assert_eq!(found[0].script(), "make demo\n");
        assert!(blocks("README.md", "```sh\nls\n").is_err());
    }

    fn check(block: &str, faults: usize) {
        let targets = make_targets("NAME ?= hit\n.PHONY: demo\ndemo: build\n\tcargo run\ntest check:\n");
        let block = blocks("README.md", &format!("{block}\n```\n")).unwrap().remove(0);
        let found = faults_of(Path::new("/nonexistent"), &block, &targets);
        assert_eq!(found.len(), faults, "{found:?}");
    }

    #[test]
    fn blocks_that_cannot_be_typed_are_found() {
        check("```sh\nmake demo NAME=x\nmake check\n", 0);
        check("```sh\nmake dmeo\n", 1);
        check("```sh\n$ larder run\n", 1);
        check("```sh\nif true; then\n", 1);
        check("```sh noci\nls\n", 1);
        check("```sh\nlarder check -c examples/none.toml\n", 1);
    }
}
