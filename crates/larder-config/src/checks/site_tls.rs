//! A site's keys of TLS: those that say something only beside others.
//!
//! In: the table of a site, and whether certificates of clients are forwarded. Out: errors. Values that were refused are not judged again: what counts is whether a key is there.

use crate::document::Table;
use crate::reading::{At, Reading};

pub(crate) fn check(forwards_certificate: bool, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    let mut refuse = |key: &str, missing: &str, hint: &str| {
        if let Some(node) = table.get(key) {
            let said = format!("there is no `{missing}` beside it");
            let problem = reading.problem(&node.place, &At::Key(at, key), said);
            reading.refuse(problem.hint(hint));
        }
    };
    if table.get("client_ca").is_none() {
        let hint = "say which authorities sign the certificates of clients: client_ca = \"FILE\"";
        refuse("client_auth", "client_ca", hint);
        refuse("client_crl", "client_ca", hint);
        if forwards_certificate {
            refuse("forward_client_cert", "client_ca", hint);
        }
    }
    if table.get("tls").is_none() {
        let hint = "larder ends TLS for sites with certificates: tls = \"acme\" or tls = { cert = \"FILE\", key = \"FILE\" }";
        for key in ["client_ca", "hsts", "redirect_https"] {
            refuse(key, "tls", hint);
        }
    }
}
