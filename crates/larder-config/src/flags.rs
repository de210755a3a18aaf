//! What the command line says over the file, or without one.
//!
//! In: texts as they were typed. Out: nodes in the document, set before anything is checked: a flag is held to what
//! the key is held to, and an error about it names the flag.

use crate::document::{Node, Place, Table, Value};

/// The flags of `larder run` that stand for keys. Empty by default: the file decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--listen`, for `listen`; none keeps the file's.
    pub listen: Vec<String>,
    /// `--admin`, for `admin`; `off` turns it off.
    pub admin: Option<String>,
    /// `--memory`, for `memory` of the store `default`.
    pub memory: Option<String>,
    /// `--workers`, for `workers`.
    pub workers: Option<String>,
}

impl Flags {
    pub(crate) fn apply(&self, document: &mut Table) {
        if !self.listen.is_empty() {
            let items = self
                .listen
                .iter()
                .map(|address| Node { place: Place::Flag("--listen"), value: Value::Text(address.clone()) });
            document.set(&["listen"], "--listen", Value::List(items.collect()));
        }
        if let Some(admin) = &self.admin {
            let value = match admin.as_str() {
                "off" => Value::Boolean(false),
                address => Value::Text(address.to_owned()),
            };
            document.set(&["admin"], "--admin", value);
        }
        if let Some(memory) = &self.memory {
            let value = memory.parse().map_or_else(|_| Value::Text(memory.clone()), Value::Integer);
            document.set(&["stores", "default", "memory"], "--memory", value);
        }
        if let Some(workers) = &self.workers {
            let value = workers.parse().map_or_else(|_| Value::Text(workers.clone()), Value::Integer);
            document.set(&["workers"], "--workers", value);
        }
    }
}

/// The document of `larder run --origin URL`: one origin, one site for every host.
pub(crate) fn document_for(origin: &str) -> Table {
    let mut document = Table::empty(Place::Flag("--origin"));
    document.set(&["origins", "app", "servers"], "--origin", Value::Text(origin.to_owned()));
    let mut site = Table::empty(Place::Flag("--origin"));
    site.set(&["origin"], "--origin", Value::Text("app".to_owned()));
    let site = Node { place: Place::Flag("--origin"), value: Value::Table(site) };
    document.set(&["site"], "--origin", Value::List(vec![site]));
    document
}
