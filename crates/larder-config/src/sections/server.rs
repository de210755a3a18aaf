//! A server among those of an origin: its address alone, or a table that says how much of the load it takes.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape, TextSetting};
use crate::value::server::Server;

section! {
    /// A server with its part of the load, in place of its address alone: `{ url = "http://127.0.0.1:3000", weight = 2 }`.
    pub(crate) struct ServerTable in "`[[origins.NAME.servers]]`" {
        /// Where it listens.
        url: Option<Server> = required, why "There is nothing to guess from.";
        /// How much it takes, compared with the others: twice the weight, twice the requests.
        weight: u16 = 1, in 1 ..= 1000, why "Servers are alike unless it is said.";
        /// Ask it only where no other server can be asked.
        backup: bool = false, why "A server that is paid for is meant to work.";
    }
}

impl Consistent for ServerTable {}

/// A server with its part of the load. Prints its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// Where it listens.
    pub server: Server,
    /// How much it takes, compared with the others; 1 to 1000.
    pub weight: u16,
    /// Whether it is asked only where no other can be.
    pub backup: bool,
}

impl fmt::Display for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)
    }
}

impl Setting for ServerEntry {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(Server::TEXT), Shape::Section(ServerTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(_) => {
                let ServerTable { url, weight, backup } = ServerTable::read(node, at, reading)?;
                Some(Self { server: url?, weight, backup })
            }
            _ => Server::read(node, at, reading).map(|server| Self { server, weight: 1, backup: false }),
        }
    }
}
