//! A site's TLS: where its certificates come from, where clear text is sent to, and HSTS (RFC 6797).
//!
//! In: the values of `tls`, `redirect_https` and `hsts` of a site. Out: one form of each. Whether they fit together, and to the listeners,
//! is checked in `checks/site_tls.rs` and `checks/edge.rs`. Deliberately absent: what is in the files. The binary opens them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::section::section;
use crate::schema::{Consistent, Section as _, Setting, Shape};
use crate::value::path::ExistingFile;

/// The word for certificates by ACME.
pub(crate) const ACME: &str = "acme";
/// The port that `https` URLs mean without one.
const HTTPS_PORT: u16 = 443;
/// What the list of browsers with HSTS built in asks for at least.
const PRELOAD_AGE_MIN: Duration = Duration::from_secs(365 * 86_400);

section! {
    /// A certificate with its key: `{ cert = "site.pem", key = "site.key" }`.
    pub(crate) struct CertificateTable in "`[[site.tls]]`" {
        /// The certificate and its chain (PEM), the site's own first. The file is looked at each minute, and read again where it changed.
        cert: Option<ExistingFile> = required, why "There is nothing to guess from.";
        /// Its private key (PEM).
        key: Option<ExistingFile> = required, why "As for `cert`.";
    }
}

impl Consistent for CertificateTable {}

/// Files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and its chain (PEM).
    pub cert: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

impl Setting for CertificateFiles {
    fn shape() -> Shape {
        Shape::Section(CertificateTable::doc)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let CertificateTable { cert, key } = CertificateTable::read(node, at, reading)?;
        Some(Self { cert: cert?.0, key: key?.0 })
    }
}

/// Where a site's certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteTls {
    /// One for each host, by ACME.
    Acme,
    /// Files, at least one pair: the first whose key a client can verify is used.
    Files(Vec<CertificateFiles>),
}

impl SiteTls {
    fn expected() -> String {
        r#""acme", { cert = "FILE", key = "FILE" } or a list of such tables"#.to_owned()
    }
}

impl Setting for SiteTls {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Words(&[ACME]), Shape::List(Box::new(CertificateFiles::shape()))])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Text(word) if word == ACME => Some(Self::Acme),
            Value::Text(word) => {
                let hint = match nearest(word, [ACME]) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => {
                        "a certificate has its key beside it: { cert = \"FILE\", key = \"FILE\" }".to_owned()
                    }
                };
                reading.refuse_value(node, at, Self::expected(), Some(hint));
                None
            }
            Value::Table(_) => {
                CertificateFiles::read(node, at, reading).map(|files| Self::Files(vec![files]))
            }
            Value::List(items) if !items.is_empty() => list(items, at, reading),
            _ => {
                reading.refuse_value(node, at, Self::expected(), None);
                None
            }
        }
    }
}

/// Pairs of files; `None` where one of them is not good.
fn list(items: &[Node], at: &At<'_>, reading: &mut Reading<'_>) -> Option<SiteTls> {
    let mut all = Vec::with_capacity(items.len());
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let here = At::Item(at, index);
        if matches!(&item.value, Value::Text(word) if word == ACME) {
            let hint = Some("a site has certificates by ACME or from files: tls = \"acme\"".to_owned());
            reading.refuse_value(item, &here, "{ cert = \"FILE\", key = \"FILE\" }", hint);
            continue;
        }
        let Some(files) = CertificateFiles::read(item, &here, reading) else { continue };
        if seen.insert(files.cert.clone()) {
            all.push(files);
        } else {
            let problem =
                reading.problem(&item.place, &At::Key(&here, "cert"), "this certificate is there twice");
            reading.refuse(problem);
        }
    }
    (all.len() == items.len()).then_some(SiteTls::Files(all))
}

section! {
    /// Where clear text is sent to: `{ port = 8443 }`.
    pub(crate) struct RedirectTable in "`[site.redirect_https]`" {
        /// The port in the URL that clients are sent to.
        port: Option<u16> = required, in 1 ..= 65535, why "There is nothing to guess from.";
    }
}

impl Consistent for RedirectTable {}

/// What a site with TLS does with requests in clear text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectHttps {
    /// Serves them as well.
    Off,
    /// Sends them to this port, with `https`.
    Port(u16),
}

impl Setting for RedirectHttps {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Boolean, Shape::Section(RedirectTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Boolean(true) => Some(Self::Port(HTTPS_PORT)),
            Value::Boolean(false) => Some(Self::Off),
            Value::Table(_) => RedirectTable::read(node, at, reading)?.port.map(Self::Port),
            other => {
                let hint =
                    matches!(other, Value::Integer(_)).then(|| "{ port = N } for another port".to_owned());
                reading.refuse_value(node, at, "true, false or { port = N }", hint);
                None
            }
        }
    }
}

impl RedirectHttps {
    /// What holds for a site with TLS that says nothing.
    pub(crate) const DEFAULT: Self = Self::Port(HTTPS_PORT);
}

section! {
    /// The field Strict-Transport-Security (RFC 6797): `{ max_age = "1y", subdomains = true, preload = true }`.
    pub(crate) struct HstsTable in "`[site.hsts]`" {
        /// How long browsers use `https` alone, counted from each answer. `"0s"` makes them forget it.
        max_age: Option<Duration> = required, why "Nobody but you knows for how long TLS is sure to stay.";
        /// For every host below this one, too.
        subdomains: bool = false, why "Those may be served elsewhere, in clear text.";
        /// You agree that browsers come with this host in their list. It needs `subdomains`, and `max_age` of a year at least.
        preload: bool = false, why "It takes months to get out of that list.";
    }
}

impl Consistent for HstsTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let Some(node) = table.get("preload").filter(|_| self.preload) else { return };
        let mut refuse = |found: &str, hint: &str| {
            let problem = reading.problem(&node.place, &At::Key(at, "preload"), found);
            reading.refuse(problem.hint(hint));
        };
        if self.max_age.is_some_and(|age| age < PRELOAD_AGE_MIN) {
            refuse(
                "max_age is less than a year",
                "the list of browsers takes no host with less: max_age = \"1y\"",
            );
        }
        if !self.subdomains {
            refuse(
                "subdomains is not true",
                "the list of browsers holds for every host below: subdomains = true",
            );
        }
    }
}

/// What a site says of HSTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hsts {
    /// How long browsers remember it; whole seconds count.
    pub max_age: Duration,
    /// Whether it holds for the hosts below.
    pub subdomains: bool,
    /// Whether browsers may come with the host in their list.
    pub preload: bool,
}

impl Setting for Hsts {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Duration::shape(), Shape::Section(HstsTable::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(_) => {
                let HstsTable { max_age, subdomains, preload } = HstsTable::read(node, at, reading)?;
                Some(Self { max_age: max_age?, subdomains, preload })
            }
            _ => {
                let max_age = Duration::read(node, at, reading)?;
                Some(Self { max_age, subdomains: false, preload: false })
            }
        }
    }
}
