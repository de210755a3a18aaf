//! The admin address: where it is, and who may ask there. A table, or in short an address or `false`.
//!
//! In: the value of `admin`. Out: an [`AdminSettings`]. Whether the address may be open to the network is checked in
//! `checks/addresses.rs`; who is let in with which token is decided by larder-admin.

use std::net::SocketAddr;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section as _, Setting, Shape};
use crate::value::address::AdminAddress;
use crate::value::host::HostName;
use crate::value::secret::Secret;

section! {
    /// The admin address, at which larder shows its figures, explains its decisions and takes purges.
    /// `admin = "127.0.0.1:8081"` and `admin = false` are short forms of this table.
    pub(crate) struct AdminTable in "`[admin]`" {
        /// Where it is; `false` turns it off.
        address: AdminAddress = "127.0.0.1:8081", why "Figures are for the operator. Off loopback it needs `token`.";
        /// The secret with which a client may look, explain and purge. Requests carry it in `Authorization: Bearer ...`; for the
        /// purge APIs of Fastly and Cloudflare, `Fastly-Key` and `X-Auth-Key` count as well.
        token: Option<Secret>, why "Loopback needs none. Elsewhere every client on the network could read what is served and purge it, so there it is required.";
        /// A second secret, with which a client may look and explain, but not purge. It needs `token` beside it.
        view_token: Option<Secret>, why "A dashboard or Prometheus needs to change nothing.";
        /// Host names that are answered, besides addresses and loopback names.
        hosts: Vec<HostName> = [], why "A web page could make a browser ask here by a name of its own. The names that are yours are listed.";
    }
}

impl Consistent for AdminTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let Some(node) = table.get("view_token") else { return };
        let (found, hint) = match (&self.token, &self.view_token) {
            (None, _) if table.get("token").is_none() => {
                ("it stands alone", "set token as well: it is what a client needs to purge")
            }
            (Some(token), Some(view)) if token == view => {
                ("it is the same as token", "take another secret, with which a client may only look")
            }
            _ => return,
        };
        let problem = reading.problem(&node.place, &At::Key(at, "view_token"), found);
        reading.refuse(problem.hint(hint));
    }
}

/// The admin address, and who may ask there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSettings {
    /// Where it listens; `None` where it is off.
    pub address: Option<SocketAddr>,
    /// With which a client may do everything.
    pub token: Option<Secret>,
    /// With which a client may look and explain.
    pub view_token: Option<Secret>,
    /// Names that are answered besides addresses and loopback names.
    pub hosts: Vec<HostName>,
}

impl Setting for AdminSettings {
    fn shape() -> Shape {
        let Shape::AnyOf(mut shapes) = AdminAddress::shape() else { return AdminAddress::shape() };
        shapes.push(Shape::Section(AdminTable::doc));
        Shape::AnyOf(shapes)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        if matches!(node.value, Value::Table(_)) {
            let AdminTable { address, token, view_token, hosts } = AdminTable::read(node, at, reading)?;
            return Some(Self { address: address.0, token, view_token, hosts });
        }
        let AdminAddress(address) = AdminAddress::read(node, at, reading)?;
        Some(Self { address, token: None, view_token: None, hosts: Vec::new() })
    }
}
