//! The templates of tests/pages, and which peers speak their language.
//!
//! In: the folder. Out: a [`Case`] for each template. The folder of a template says who is asked for it; fragments lie in `parts`, and
//! beside templates as files of text.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::origin::MODIFIED_S;

/// A server that puts pages together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Nginx,
    Apache,
    Varnish,
}

impl Peer {
    /// For people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Apache => "apache",
            Self::Varnish => "varnish",
        }
    }
}

/// All of them.
pub(crate) const PEERS: &[Peer] = &[Peer::Nginx, Peer::Apache, Peer::Varnish];

/// Folders of templates, and who is asked for them.
const FOLDERS: &[(&str, &[Peer])] = &[
    ("ssi", &[Peer::Nginx, Peer::Apache]),
    ("nginx", &[Peer::Nginx]),
    ("apache", &[Peer::Apache]),
    ("esi", &[Peer::Varnish]),
];

/// The query of every request: a number, an escaped blank and `&`, and a parameter without a value.
const QUERY: &str = "item=42&text=a%20b%26c&none=";

/// A template.
#[derive(Debug)]
pub(crate) struct Case {
    /// Folder and name of the file, without its ending.
    pub(crate) name: String,
    /// What is asked for.
    pub(crate) target: String,
    peers: &'static [Peer],
}

impl Case {
    /// Whether `peer` is asked for it.
    pub(crate) fn speaks(&self, peer: Peer) -> bool {
        self.peers.contains(&peer)
    }
}

/// All templates below `folder`, in the order of their names.
///
/// # Errors
/// A folder cannot be read, or has none.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (language, peers) in FOLDERS {
        let entries = fs::read_dir(folder.join(language)).with_context(|| (*language).to_owned())?;
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "html") {
                names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
        ensure!(!names.is_empty(), "{language}: no templates");
        names.sort_unstable();
        cases.extend(names.into_iter().map(|name| Case {
            target: format!("/{language}/{name}.html?{QUERY}"),
            name: format!("{language}/{name}"),
            peers,
        }));
    }
    Ok(cases)
}

/// A copy of all files that any user may read, as old as the origin says: Apache serves files, and not as root.
pub(crate) fn for_all_to_read(folder: &Path) -> Result<TempDir> {
    let copy = tempfile::tempdir()?;
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755))?;
    copy_into(folder, copy.path(), 3)?;
    Ok(copy)
}

fn copy_into(from: &Path, to: &Path, depth: usize) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), &place)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o644))?;
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
            fs::File::options().append(true).open(&place)?.set_modified(modified)?;
        } else if depth > 0 {
            fs::create_dir(&place)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
            copy_into(&entry.path(), &place, depth - 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../pages")
    }

    #[test]
    fn every_folder_of_templates_has_a_peer() {
        let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
        let folders: BTreeSet<String> = entries
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let known = FOLDERS.iter().map(|(folder, _)| *folder).chain(["parts", "peers"]);
        assert_eq!(folders, known.map(str::to_owned).collect());
    }

    #[test]
    fn a_template_is_asked_for_at_the_peers_of_its_folder() {
        let cases = read(&folder()).unwrap();
        let asked = |name: &str| {
            let case = cases.iter().find(|case| case.name == name).unwrap();
            PEERS.iter().filter(|peer| case.speaks(**peer)).map(|peer| peer.name()).collect::<Vec<_>>()
        };
        assert_eq!(asked("ssi/include-virtual"), ["nginx", "apache"]);
        assert_eq!(asked("esi/include"), ["varnish"]);
        assert!(cases.iter().all(|case| !case.name.contains("part")));
    }

    #[test]
    fn a_copy_has_every_file_and_its_age() {
        let copy = for_all_to_read(&folder()).unwrap();
        let nested = copy.path().join("parts/esi/nested.html");
        assert_eq!(fs::read(&nested).unwrap(), fs::read(folder().join("parts/esi/nested.html")).unwrap());
        let modified = fs::metadata(&nested).unwrap().modified().unwrap();
        assert_eq!(modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), MODIFIED_S);
    }
}
