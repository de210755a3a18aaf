//! What the command line says over the file, or without one.
//!
//! In: texts as they were typed. Out: nodes in the document, set before anything is checked: a flag is held to what
//! the key is held to, and an error about it names the flag.

use std::net::{IpAddr, SocketAddr};

use crate::document::{Node, Position, Table, Value};
use crate::schema::TextSetting as _;
use crate::value::server::Server;

/// The flags of `larder run` that stand for keys. Empty by default: the file decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--listen`, for `listen`; none keeps the file's.
    pub listen: Vec<String>,
    /// `--admin`, for `admin`, in a table for its `address`; `off` turns it off.
    pub admin: Option<String>,
    /// `--memory`, for `memory` of the store `default`.
    pub memory: Option<String>,
    /// `--workers`, for `workers`.
    pub workers: Option<String>,
    /// `--domain`, for `hosts` of the one site, and `tls = "acme"` with it; the default of `listen` is the ports of the web then.
    pub domains: Vec<String>,
    /// `--agree-terms`, for `terms_agreed` in `[acme]`.
    pub agrees: bool,
    /// `--websocket`, for `websocket` of the one site; there is none to mean in a file.
    pub websocket: bool,
}

impl Flags {
    pub(crate) fn apply(&self, document: &mut Table) {
        if !self.listen.is_empty() {
            let items = self.listen.iter().map(|address| Node {
                place: Position::Flag("--listen"),
                value: Value::Text(address.clone()),
            });
            document.set(&["listen"], "--listen", Value::List(items.collect()));
        }
        if let Some(admin) = &self.admin {
            let value = match admin.as_str() {
                "off" => Value::Boolean(false),
                address => Value::Text(address.to_owned()),
            };
            let is_table = document.get("admin").is_some_and(|node| matches!(node.value, Value::Table(_)));
            let path: &[&str] = if is_table { &["admin", "address"] } else { &["admin"] };
            document.set(path, "--admin", value);
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

/// Whether an origin has a name of its own, which is not this machine's.
fn is_elsewhere(origin: &str) -> bool {
    match Server::from_text(origin) {
        Ok(Server::Tcp { host, .. }) => {
            host != "localhost" && !host.ends_with(".localhost") && host.parse::<IpAddr>().is_err()
        }
        Ok(Server::Srv { .. }) => true,
        Ok(Server::Unix(_)) | Err(_) => false,
    }
}

/// Whether nobody elsewhere can ask at this address.
fn is_loopback(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

/// What `--domain` says: whom the site is for, with certificates that larder orders, and where it listens.
fn set_domains(flags: &Flags, (document, site): (&mut Table, &mut Table)) {
    const FLAG: &str = "--domain";
    let node = |value| Node { place: Position::Flag(FLAG), value };
    let text = |text: &str| node(Value::Text(text.to_owned()));
    site.set(&["hosts"], FLAG, Value::List(flags.domains.iter().map(|domain| text(domain)).collect()));
    site.set(&["tls"], FLAG, Value::Text("acme".to_owned()));
    document.set(&["acme", "terms_agreed"], "--agree-terms", Value::Boolean(flags.agrees));
    let mut secured = Table::empty(Position::Flag(FLAG));
    secured.set(&["address"], FLAG, Value::Text("*:443".to_owned()));
    secured.set(&["tls"], FLAG, Value::Boolean(true));
    document.set(&["listen"], FLAG, Value::List(vec![text("*:80"), node(Value::Table(secured))]));
}

/// The document of `larder run --origin URL`: one origin, one site for every host.
pub(crate) fn document_for(origin: &str, flags: &Flags) -> Table {
    let mut document = Table::empty(Position::Flag("--origin"));
    document.set(&["origins", "app", "servers"], "--origin", Value::Text(origin.to_owned()));
    if is_elsewhere(origin)
        && flags.domains.is_empty()
        && flags.listen.iter().all(|address| is_loopback(address))
    {
        // Who asks a larder on this machine names this machine, and no server elsewhere knows that name.
        document.set(&["origins", "app", "host"], "--origin", Value::Text("upstream".to_owned()));
    }
    let mut site = Table::empty(Position::Flag("--origin"));
    site.set(&["origin"], "--origin", Value::Text("app".to_owned()));
    if !flags.domains.is_empty() {
        set_domains(flags, (&mut document, &mut site));
    }
    if flags.websocket {
        site.set(&["websocket"], "--websocket", Value::Boolean(true));
    }
    let site = Node { place: Position::Flag("--origin"), value: Value::Table(site) };
    document.set(&["site"], "--origin", Value::List(vec![site]));
    document
}
