//! A disk of a store: a directory, and how much of its file system may be taken.

use std::path::PathBuf;

use crate::document::{Node, Table};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape};
use crate::value::disk_size::{DiskSize, SizeOrPart};
use crate::value::path::StoreDirectory;
use crate::value::size::ByteSize;

section! {
    /// A disk: a directory of its own on one, and how much may be taken there, by `size` or by `leave`. The cap holds for all
    /// that lies in the directory, before it is written.
    pub(crate) struct DiskTable in "`[[stores.NAME.disks]]`" {
        /// The directory. Nothing else should be in it, and no other larder may use it.
        path: Option<StoreDirectory> = required, why "There is nothing to guess from.";
        /// How much may be taken: a size, or a part of the file system.
        size: Option<SizeOrPart> = ("none: say this or `leave`"), in "16MiB" ..= "1024TiB", why "A cap that holds needs a number. Below the least, hardly anything fits beside larder's own files.";
        /// How much of the file system stays free, whoever takes it.
        leave: Option<ByteSize> = ("none: say this or `size`"), in "1MiB" ..= "1024TiB", why "For a disk that others fill too: larder gives way.";
    }
}

impl Consistent for DiskTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        match (table.get("size"), table.get("leave")) {
            (Some(_), Some(leave)) => {
                let said = "it has no meaning beside `size`";
                let problem = reading.problem(&leave.place, &At::Key(at, "leave"), said);
                reading.refuse(problem.hint("one of the two says how much may be taken: leave one out"));
            }
            (None, None) => {
                let problem = reading.problem(&table.place, &At::Key(at, "size"), "missing key \"size\"");
                let hint = "\"40GiB\", \"80%\" of the file system, or leave = \"10GiB\" for all but that";
                reading.refuse(problem.hint(hint));
            }
            _ => {}
        }
    }
}

/// A disk of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// A directory, which may not exist yet; the one above it does.
    pub path: PathBuf,
    /// How much may be taken there.
    pub size: DiskSize,
}

impl Disk {
    /// What may be taken, in bytes, where that does not depend on the file system.
    pub fn known_bytes(&self) -> Option<u64> {
        match self.size {
            DiskSize::Bytes(size) => Some(size.0),
            DiskSize::Part(_) | DiskSize::Leave(_) => None,
        }
    }
}

impl Setting for Disk {
    const IS_SECTION: bool = true;

    fn shape() -> Shape {
        Shape::Section(DiskTable::doc)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let DiskTable { path, size, leave } = DiskTable::read(node, at, reading)?;
        let size = match (size, leave) {
            (Some(SizeOrPart::Bytes(size)), _) => DiskSize::Bytes(size),
            (Some(SizeOrPart::Part(part)), _) => DiskSize::Part(part),
            (None, leave) => DiskSize::Leave(leave?),
        };
        Some(Self { path: path?.0, size })
    }
}
