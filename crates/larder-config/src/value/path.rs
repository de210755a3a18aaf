//! Paths on this machine. What has to exist is looked for while the config is checked, so that a wrong path is an
//! error with a line and a column and not a failure later. Relative paths start at the config file's directory.

use std::path::{Path, PathBuf};

use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::{Setting, Shape, Text};

/// A directory that existed when the config was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory(pub PathBuf);

/// A directory, which may be anything when the config is checked: what is wrong with it ends no start, and whoever opens the
/// store says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreDirectory(pub(crate) PathBuf);

/// A directory for what larder keeps of its own, which is made where it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDirectory(pub PathBuf);

/// A file that existed when the config was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingFile(pub PathBuf);

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to this file.
    File(PathBuf),
}

const DIRECTORY: Text = Text {
    noun: "a directory",
    examples: r#""public", "/srv/www""#,
    about: "It has to exist. A relative path starts at the directory of the config file.",
    pattern: None,
};

pub(crate) const STORE_DIRECTORY: Text = Text {
    noun: "a directory of its own",
    examples: r#""/var/cache/larder", "/mnt/d1/larder""#,
    about: "It is made where it does not exist, if the directory above it exists. larder starts without one that cannot be \
            used, and tries it again; `larder check` says what is wrong with it. A relative path starts at the directory of the \
            config file.",
    pattern: None,
};

const STATE_DIRECTORY: Text = Text {
    noun: "a directory for larder's own",
    examples: r#""/var/lib/larder/acme""#,
    about: "It is made where it does not exist. A relative path starts at the directory of the config file.",
    pattern: None,
};

const FILE: Text = Text {
    noun: "a file",
    examples: r#""ca.pem", "/etc/ssl/app.pem""#,
    about: "It has to exist. A relative path starts at the directory of the config file.",
    pattern: None,
};

const ACCESS: Text = Text {
    noun: "\"off\", \"stdout\" or a path with a \"/\"",
    examples: r#""/var/log/larder/access.log", "./access.log""#,
    about: "The directory has to exist. A relative path starts at the directory of the config file.",
    pattern: Some("^(off|stdout|.*/.*)$"),
};

/// The path that `node` holds; refused where it holds none.
fn path(node: &Node, at: &At<'_>, reading: &mut Reading<'_>, text: Text) -> Option<PathBuf> {
    match &node.value {
        Value::Text(path) if !path.is_empty() && !path.contains('\0') => Some(reading.base_dir.join(path)),
        _ => {
            reading.refuse_value(node, at, text.expected(), None);
            None
        }
    }
}

/// Refuses `path` unless it is what it should be.
fn existing(
    node: &Node,
    at: &At<'_>,
    reading: &mut Reading<'_>,
    path: &Path,
    wanted: &str,
    is: bool,
) -> Option<()> {
    let hint = match std::fs::metadata(path) {
        Ok(_) if is => return Some(()),
        Ok(_) => format!("{} is something else", path.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no {}", path.display())
        }
        Err(error) => format!("{}: {}", path.display(), error.kind()),
    };
    reading.refuse_value(node, at, wanted, Some(hint));
    None
}

impl Setting for Directory {
    fn shape() -> Shape {
        Shape::Text(DIRECTORY)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let path = path(node, at, reading, DIRECTORY)?;
        existing(node, at, reading, &path, "a directory that exists", path.is_dir())?;
        Some(Self(path))
    }
}

impl Setting for StoreDirectory {
    fn shape() -> Shape {
        Shape::Text(STORE_DIRECTORY)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        path(node, at, reading, STORE_DIRECTORY).map(Self)
    }
}

impl Setting for StateDirectory {
    fn shape() -> Shape {
        Shape::Text(STATE_DIRECTORY)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        path(node, at, reading, STATE_DIRECTORY).map(Self)
    }
}

impl Setting for ExistingFile {
    fn shape() -> Shape {
        Shape::Text(FILE)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let path = path(node, at, reading, FILE)?;
        existing(node, at, reading, &path, "a file that exists", path.is_file())?;
        Some(Self(path))
    }
}

impl Setting for AccessLog {
    fn shape() -> Shape {
        Shape::Text(ACCESS)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Text(word) if word == "off" => return Some(Self::Off),
            Value::Text(word) if word == "stdout" => return Some(Self::Stdout),
            // Without this a slip in `stdout` would log into a file of that name.
            Value::Text(word) if !word.contains('/') => {
                let hint = match nearest(word, ["off", "stdout"]) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("write \"./{word}\" for a file beside the config"),
                };
                reading.refuse_value(node, at, ACCESS.expected(), Some(hint));
                return None;
            }
            _ => {}
        }
        let path = path(node, at, reading, ACCESS)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        existing(node, at, reading, directory, "a file in a directory that exists", directory.is_dir())?;
        existing(node, at, reading, directory, "a file, not a directory", !path.is_dir())?;
        Some(Self::File(path))
    }
}
