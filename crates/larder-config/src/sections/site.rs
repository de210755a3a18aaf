//! A site: its hosts, where its responses come from, and its rules.

use std::collections::HashMap;

use crate::checks;
use crate::document::{Table, Value};
use crate::reading::{At, Reading, tables};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::sections::purging::Purging;
use crate::sections::rule::Rule;
use crate::sections::settings::Settings;
use crate::sections::site_tls::{Hsts, RedirectHttps, SiteTls};
use crate::value::host::HostPattern;
use crate::value::name::Name;
use crate::value::path::{Directory, ExistingFile};
use crate::value::words::ClientAuth;

section! {
    /// A site. Besides its own keys it takes every setting, for all its rules that do not say otherwise.
    pub struct Site in "`[[site]]`" {
        /// The hosts that it answers to, on every listener.
        hosts: Vec<HostPattern> = ("every host that no other site has"),
            why "A single site needs no names. At most one site leaves them out.";
        /// The name of its origin.
        origin: Option<Name>, why "Required, unless `root` is all there is.";
        /// A directory whose files are served first, as they lie there; hidden files never. A directory that takes its place is
        /// used within a second.
        root: Option<Directory>, why "Most sites come from an application alone.";
        /// The site's certificates, for listeners with `tls = true`: `"acme"`, or `{ cert, key }`, or a list of such tables for keys of
        /// several kinds, such as ECDSA and RSA. Of those the first is used whose key the client can verify.
        tls: Option<SiteTls> = ("none: the site is served in clear text"), why "A certificate is made for the hosts of a site.";
        /// Ask clients for a certificate that one of the authorities in this file (PEM) has signed.
        client_ca: Option<ExistingFile> = ("none: clients are not asked"), why "Visitors have no certificates; machines and staff may.";
        /// Whether a client without such a certificate is refused.
        client_auth: Option<ClientAuth> = ("`\"require\"` with `client_ca`"), why "Asking is mostly meant to keep others out.";
        /// Certificates that count no more (CRL, PEM), for `client_ca`.
        client_crl: Vec<ExistingFile> = [], why "Few authorities publish one; short lifetimes do the same.";
        /// Send the origin the client's certificate in Client-Cert (RFC 9440). A request with one is cached as if it had Authorization.
        forward_client_cert: bool = false, why "An application that does not expect the field has no use for it.";
        /// Tell browsers to use `https` alone from now on (Strict-Transport-Security, RFC 6797): how long, or a table. It is sent over
        /// TLS alone, and where the application does not send its own.
        hsts: Option<Hsts> = ("none"), why "Browsers remember it, and nobody can take it back from them.";
        /// Send requests in clear text to `https` (308). `false` serves them; `{ port = 8443 }` names another port.
        redirect_https: Option<RedirectHttps> = ("`true` with `tls`"), why "What can be had in clear text can be read and changed on its way.";
        /// Pass WebSocket handshakes to the origin.
        websocket: bool = false, why "A tunnel is beyond what a cache can check, so it is asked for.";
        /// Understand the response fields of LiteSpeed's cache plugins, and take them out of answers: X-LiteSpeed-Tag,
        /// X-LiteSpeed-Purge and X-LiteSpeed-Cache-Control. larder sends `X-LSCACHE: 1` to the origin, and stores no response
        /// that has X-LiteSpeed-Vary or is private by these fields.
        litespeed: bool = false, why "Response fields then decide what is stored and purged, which suits only an application with such a plugin.";
        /// The rules, in order: the first that matches a request decides, alone.
        rules as "rule": Vec<Rule>, why "Without rules the site's settings hold for everything.";
        flatten settings: Settings, "Settings of every request that no rule of this site matches, or whose rule leaves them out.";
        flatten purging: Purging, "Settings of purges.";
    }
}

impl Site {
    /// What it is called where sites are told apart: its first host, or `*`.
    pub fn label(&self) -> &str {
        self.hosts.first().map_or("*", HostPattern::as_str)
    }

    /// Whether a client has to show a certificate; `None` where it is not asked for one.
    pub fn client_auth(&self) -> Option<ClientAuth> {
        self.client_ca.as_ref().map(|_| self.client_auth.unwrap_or_default())
    }

    /// The port that requests in clear text are sent to, with `https`; `None` where they are served. 443 belongs in no URL.
    pub fn https_port(&self) -> Option<u16> {
        self.tls.as_ref()?;
        match self.redirect_https.unwrap_or(RedirectHttps::DEFAULT) {
            RedirectHttps::Off => None,
            RedirectHttps::Port(port) => Some(port),
        }
    }

    /// What its rules are called, in their order: no two alike.
    pub fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = Vec::with_capacity(self.rules.len());
        let mut seen: HashMap<String, usize> = HashMap::new();
        for label in self.rules.iter().map(Rule::label) {
            let times = seen.entry(label.clone()).or_default();
            *times += 1;
            labels.push(if *times == 1 { label } else { format!("{label} ({times})") });
        }
        labels
    }
}

impl Consistent for Site {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        if let Some(node) = table.get("hosts")
            && matches!(&node.value, Value::List(items) if items.is_empty())
        {
            let hint = Some("leave `hosts` out for every host".to_owned());
            reading.refuse_value(node, &At::Key(at, "hosts"), "at least one host", hint);
        }
        if table.get("origin").is_none() && table.get("root").is_none() {
            let problem = reading.problem(&table.place, &At::Key(at, "origin"), "missing key \"origin\"");
            reading.refuse(problem.hint("name one of [origins.*], or give the site a `root`"));
        }
        for (name, is_on, hint) in [
            ("websocket", self.websocket, "the site has no origin to pass handshakes to"),
            ("litespeed", self.litespeed, "the site has no origin that could send these fields"),
        ] {
            if let Some(node) = table.get(name)
                && is_on
                && table.get("origin").is_none()
            {
                let problem = reading.problem(&node.place, &At::Key(at, name), "it is not used");
                reading.warn(problem.hint(hint));
            }
        }
        checks::site_tls::check(self.forward_client_cert, table, at, reading);
        let rules = tables(table, "rule");
        checks::names::check_rules(&rules, &At::Key(at, "rule"), reading);
        if self.rules.len() == rules.len() {
            checks::patterns::check(&self.rules, table, at, reading);
        }
        if self.rules.len() == rules.len()
            && let Some(all) = self.rules.iter().position(Rule::matches_all)
        {
            let list = At::Key(at, "rule");
            for (index, rule) in rules.iter().enumerate().skip(all + 1) {
                let said = format!("this rule is never reached: rule[{all}] matches every request");
                let problem = reading.problem(&rule.place, &At::Item(&list, index), said);
                reading.warn(problem.hint("the first rule that matches decides: put the general ones last"));
            }
        }
    }
}
