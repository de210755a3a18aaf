//! Conditions of purges: at least one, and none that strangers meet.
//!
//! An address is a weak condition. A proxy in front that adds no field of its own gives its address to every client, and most
//! proxies are on loopback or in a private network. So such an address without a secret is warned about.

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::sections::origin::item;
use crate::sections::purge::PurgeRules;
use crate::value::cidr::Cidr;

impl Consistent for PurgeRules {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let has_secret = ["token", "header"].iter().any(|key| table.get(key).is_some());
        let from_at = At::Key(at, "from");
        match table.get("from") {
            None if !has_secret => {
                let problem = reading.problem(&table.place, at, "it does not say who may purge");
                reading.refuse(problem.hint("add `token`, `header` or `from`, or write \"closed\""));
            }
            Some(node) if matches!(&node.value, Value::List(items) if items.is_empty()) => {
                let hint = Some("no request would meet it: name a network, or write \"closed\"".to_owned());
                reading.refuse_value(node, &from_at, "at least one network", hint);
            }
            _ => {}
        }
        for (network, place, index) in reading.located::<Cidr>(table, "from") {
            let (said, hint) = if network.is_everything() {
                let hint = match has_secret {
                    true => "it is no condition: leave `from` out, or name the networks that may purge",
                    false => {
                        "every client could purge: name the networks that may, or add `token` or `header`"
                    }
                };
                (format!("{network} is every address"), hint)
            } else if network.has_private() && !has_secret {
                let hint = "behind a proxy that adds no Via, Forwarded or X-Forwarded-For, every client has such an address: \
                            add `token` or `header`";
                (format!("{network} may purge without a secret"), hint)
            } else {
                continue;
            };
            let problem = reading.problem(&place, &item(&from_at, index), said);
            reading.warn(problem.hint(hint));
        }
    }
}
