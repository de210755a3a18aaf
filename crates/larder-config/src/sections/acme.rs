//! Certificates by ACME (RFC 8555): from whom, as whom, and how a host is proven to be larder's.
//!
//! In: `[acme]`. Out: an [`Acme`]. Which hosts need a certificate is said by sites, with `tls = "acme"`; whether listeners fit the
//! challenges is checked in `checks/edge.rs`.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, Section as _, Setting, Shape};
use crate::sections::origin::item;
use crate::value::acme::{AccountId, AcmeContact, AcmeDirectory, AcmeProfile};
use crate::value::path::{ExistingFile, StateDirectory};
use crate::value::words::AcmeChallenge;

section! {
    /// Certificates by ACME (RFC 8555), for sites with `tls = "acme"`: each of their hosts has one of its own, which larder renews.
    pub struct Acme in "`[acme]`" {
        /// You agree to the terms of the CA that `directory` names.
        terms_agreed: bool = false, why "A CA gives no certificate without, and only you can agree.";
        /// Where the CA may write to about your certificates.
        contact: Vec<AcmeContact> = [], why "A CA needs none, and Let's Encrypt sends no more reminders.";
        /// The CA: `"letsencrypt"`, `"letsencrypt-staging"`, whose certificates no browser trusts, or the URL of another one's directory.
        directory: AcmeDirectory = "letsencrypt", why "It is free and needs no account beforehand. Try things out with its staging.";
        /// Trust the certificates in this file (PEM) when larder talks to the CA, in place of the system's authorities. It needs a URL as
        /// `directory`.
        ca_file: Option<ExistingFile>, why "A private CA may be known to no system.";
        /// Where accounts, keys and certificates are kept. It is made where it does not exist. A second larder with the same directory
        /// orders nothing, and takes what it finds there.
        dir: Option<StateDirectory> = ("`$STATE_DIRECTORY/acme` where systemd gives one, else `/var/lib/larder/acme`"),
            why "Certificates outlive a restart, and CAs limit how many they give.";
        /// How a host is proven to be yours, in the order in which it is tried. `"tls-alpn-01"` needs a listener with TLS on port 443,
        /// `"http-01"` one without on port 80.
        challenges: Vec<AcmeChallenge> = ["tls-alpn-01", "http-01"], why "The first needs no other port; where a proxy in front ends TLS, the second works.";
        /// The CA's name for the kind of certificate, as its directory lists them.
        profile: Option<AcmeProfile> = ("the CA's own choice"), why "The choice of the CA suits most.";
        /// The account with the CA that the ACME account belongs to (external account binding).
        external_account: Option<ExternalAccount>, why "CAs with customers want one; Let's Encrypt does not.";
    }
}

impl Consistent for Acme {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let key = At::Key(at, "challenges");
        if let Some(node) = table.get("challenges")
            && matches!(&node.value, Value::List(items) if items.is_empty())
        {
            let hint = Some("leave `challenges` out for both".to_owned());
            reading.refuse_value(node, &key, "at least one challenge", hint);
        }
        let mut seen = HashSet::new();
        for (challenge, place, index) in reading.located::<AcmeChallenge>(table, "challenges") {
            if !seen.insert(challenge.word()) {
                let said = format!("\"{}\" is there twice", challenge.word());
                let problem = reading.problem(&place, &item(&key, index), said);
                reading.refuse(problem);
            }
        }
        let is_refused = table.get("directory").is_some()
            && reading.located::<AcmeDirectory>(table, "directory").is_empty();
        if let Some(node) = table.get("ca_file")
            && !is_refused
            && !self.directory.is_own()
        {
            let problem = reading.problem(&node.place, &At::Key(at, "ca_file"), "it is not used");
            reading.refuse(
                problem.hint(
                    "Let's Encrypt is known to every system: give `directory` a URL, or leave this out",
                ),
            );
        }
    }
}

impl Default for Acme {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}

section! {
    /// An account with a CA, by which it knows who asks for certificates (RFC 8555 7.3.4). Both keys come from the CA.
    pub(crate) struct ExternalAccountTable in "`[acme.external_account]`" {
        /// What the CA calls the account: its key identifier.
        id: Option<AccountId> = required, why "There is nothing to guess from.";
        /// The file that has the account's key in base64url, and nothing else.
        key_file: Option<ExistingFile> = required, why "Configs are shown around, and keys are not.";
    }
}

impl Consistent for ExternalAccountTable {}

/// An account with a CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// What the CA calls it.
    pub id: AccountId,
    /// The file that has its key in base64url.
    pub key_file: PathBuf,
}

impl Setting for ExternalAccount {
    fn shape() -> Shape {
        Shape::Section(ExternalAccountTable::doc)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let ExternalAccountTable { id, key_file } = ExternalAccountTable::read(node, at, reading)?;
        Some(Self { id: id?, key_file: key_file?.0 })
    }
}
