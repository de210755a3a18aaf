//! A store's plain files: their directory alone, or a table that says more about them.

use std::path::PathBuf;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape};
use crate::value::media::MediaType;
use crate::value::mode::FileMode;
use crate::value::path::{STORE_DIRECTORY, StoreDirectory};
use crate::value::size::ByteSize;

section! {
    /// Plain files, in place of their directory alone: `files = { path = "/run/larder/html", mode = "0640" }`.
    pub(crate) struct FilesTable in "`[stores.NAME.files]`" {
        /// The directory. Bodies lie in it by host and path.
        path: Option<StoreDirectory> = required, why "There is nothing to guess from.";
        /// How much all files in it may take, those that others wrote included.
        size: ByteSize = "1GiB", in "1MiB" ..= "1024TiB", why "Many pages, and no disk is full by it.";
        /// How many files there may be in it, likewise.
        max_files: u64 = 100000, in 1 ..= 1000000000, why "File systems have room for so many, and a small one of memory for not many more.";
        /// Who may read and write the files. Directories likewise, open to those who may read.
        mode: FileMode = "0644", why "To be looked at, and to be served by another web server: what is stored is for everybody.";
        /// The type of a file that others wrote and whose name does not tell it.
        default_type: Option<MediaType> = ("`\"application/octet-stream\"`"), why "What no browser shows as a page by mistake. What larder stored keeps its type.";
    }
}

impl Consistent for FilesTable {}

/// Plain files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// A directory, which may not exist yet; the one above it does.
    pub path: PathBuf,
    /// How much all files in it may take.
    pub size: ByteSize,
    /// How many files there may be in it.
    pub max_files: u64,
    /// Who may read and write them.
    pub mode: FileMode,
    /// The type of a file that others wrote and whose name does not tell it.
    pub default_type: Option<MediaType>,
}

impl Setting for Files {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(STORE_DIRECTORY), Shape::Section(FilesTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let table = match &node.value {
            Value::Table(_) => FilesTable::read(node, at, reading)?,
            _ => {
                let path = StoreDirectory::read(node, at, reading)?;
                FilesTable { path: Some(path), ..FilesTable::absent()? }
            }
        };
        let FilesTable { path, size, max_files, mode, default_type } = table;
        Some(Self { path: path?.0, size, max_files, mode, default_type })
    }
}
