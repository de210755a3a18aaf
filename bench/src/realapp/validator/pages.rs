//! The pages of the package that have directives of SSI, and where a client finds them.
//!
//! In: the folder that Debian's package installs. Out: targets, in order. A page that a folder's address shows is asked for by both
//! of its addresses.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const FOLDER: &str = "/usr/share/w3c-markup-validator/html";
const BELOW: &str = "/w3c-validator/";
const INDEX: &str = "index.html";
const DIRECTIVE: &[u8] = b"<!--#";

/// Targets of all pages that have SSI.
pub(super) fn with_directives() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    let mut folders = vec![PathBuf::from(FOLDER)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if is_template(&path)? {
                targets.extend(targets_of(&path)?);
            }
        }
    }
    targets.sort();
    Ok(targets)
}

fn is_template(file: &Path) -> Result<bool> {
    if file.extension().is_none_or(|extension| extension != "html") {
        return Ok(false);
    }
    let content = fs::read(file).with_context(|| file.display().to_string())?;
    Ok(content.windows(DIRECTIVE.len()).any(|window| window == DIRECTIVE))
}

fn targets_of(file: &Path) -> Result<Vec<String>> {
    let below = file.strip_prefix(FOLDER).context("outside of the folder")?;
    let target = format!("{BELOW}{}", below.to_str().context("no UTF-8")?);
    let folder = target.strip_suffix(INDEX).filter(|folder| folder.ends_with('/')).map(str::to_owned);
    Ok([target].into_iter().chain(folder).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_index_has_two_addresses() {
        let targets = |file: &str| targets_of(&Path::new(FOLDER).join(file)).unwrap();
        assert_eq!(targets("about.html"), ["/w3c-validator/about.html"]);
        assert_eq!(targets("docs/index.html"), ["/w3c-validator/docs/index.html", "/w3c-validator/docs/"]);
        assert_eq!(targets("myindex.html"), ["/w3c-validator/myindex.html"]);
    }
}
