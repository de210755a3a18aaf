//! A listener among those of the config: its address alone, or a table that says what it takes.
//!
//! In: an item of `listen`. Out: a [`ListenEntry`]. Whether listeners collide is checked in `checks/addresses.rs`, and whether sites
//! and listeners agree on TLS in `checks/edge.rs`.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape, TextSetting};
use crate::value::listen::ListenAddress;

section! {
    /// A listener, in place of its address alone: `{ address = "*:443", tls = true }`.
    pub(crate) struct ListenTable in "`[[listen]]`" {
        /// Where clients connect.
        address: Option<ListenAddress> = required, why "There is nothing to guess from.";
        /// Speak TLS there, with the certificates of the sites: HTTP/1.1 and HTTP/2, as client and larder agree (ALPN).
        tls: bool = false, why "A port says nothing of what is spoken there.";
    }
}

impl Consistent for ListenTable {}

/// A listener. Prints its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenEntry {
    /// Where it is.
    pub address: ListenAddress,
    /// Whether TLS is spoken there.
    pub tls: bool,
}

impl fmt::Display for ListenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Setting for ListenEntry {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(ListenAddress::TEXT), Shape::Section(ListenTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(_) => {
                let ListenTable { address, tls } = ListenTable::read(node, at, reading)?;
                Some(Self { address: address?, tls })
            }
            _ => ListenAddress::read(node, at, reading).map(|address| Self { address, tls: false }),
        }
    }
}
