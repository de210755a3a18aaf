//! The top of the file: where to listen, whom to trust, and everything else by name.

use std::time::Duration;

use crate::schema::section::section;
use crate::sections::acme::Acme;
use crate::sections::admin::AdminSettings;
use crate::sections::defaults::Defaults;
use crate::sections::fleet::Fleet;
use crate::sections::limits::Limits;
use crate::sections::listen::ListenEntry;
use crate::sections::live::Live;
use crate::sections::log::Log;
use crate::sections::origin::Origin;
use crate::sections::purge::PurgeSetting;
use crate::sections::redis_server::RedisServer;
use crate::sections::settings::{Resolved, Settings};
use crate::sections::site::Site;
use crate::sections::store::Store;
use crate::sections::tags::TagFields;
use crate::sections::tls::Tls;
use crate::sections::versions::Versions;
use crate::value::cidr::Cidr;
use crate::value::name::Name;

section! {
    /// The whole config. Keys at the top of the file stand before the first table.
    pub struct Config in "the top of the file" {
        /// Where clients connect: HTTP/1 and, by prior knowledge, HTTP/2; with TLS in a table, `{ address = "*:443", tls = true }`.
        /// `*:80` is every address of the machine, IPv4 and IPv6, or IPv4 alone where there is no IPv6. `[::]:80` takes IPv4 as
        /// well; beside an IPv4 address with the same port, such as `0.0.0.0:80`, it takes IPv6 alone.
        listen: Vec<ListenEntry> = ["127.0.0.1:8080"],
            why "An accelerator that is tried out is not meant to be open to the network.";
        /// The admin address, in a table with tokens and names, or alone; `false` turns it off.
        admin: AdminSettings = "127.0.0.1:8081",
            why "Figures are for the operator. Off loopback it needs a table with `token`.";
        /// Threads that serve, each with its own listener.
        workers: Option<usize> = ("the CPUs that the process may use"), in 1 ..= 1024,
            why "One per CPU is the design; affinity and the cgroup's quota are respected.";
        /// Peers whose `X-Forwarded-For`, `-Proto` and `-Host` are believed.
        trusted: Vec<Cidr> = [],
            why "Whoever is believed can choose the site and the scheme of the cache key: nobody, unless it is said.";
        /// How long running exchanges may take to finish when larder stops.
        drain: Duration = "30s", in "0s" ..= "1h",
            why "Long enough for pages and most downloads, short enough for service managers, which kill after 90 s.";
        /// TLS towards clients.
        tls: Tls,
            why "Each key has its own reason.";
        /// Certificates by ACME, for sites with `tls = "acme"`.
        acme: Acme,
            why "Each key has its own reason.";
        /// The access log.
        log: Log,
            why "Off unless asked for.";
        /// What the admin address remembers and shows.
        live: Live,
            why "Each key has its own reason.";
        /// What one client may cost.
        limits: Limits,
            why "Each key has its own reason.";
        /// Where responses come from, by name.
        origins: Vec<(Name, Origin)>,
            why "Sites name them.";
        /// Where responses are kept, by name.
        stores: Vec<(Name, Store)>,
            why "A store named `default` exists, with the defaults below, unless it is declared.";
        /// The larders that this one purges together with.
        fleet: Option<Fleet> = ("none"),
            why "A larder alone has nobody to tell.";
        /// The sites. An exact host beats the longest wildcard, which beats the site without `hosts`.
        sites as "site": Vec<Site> = required,
            why "Without a site there is nothing to serve.";
        /// What holds for every site and rule that does not say otherwise.
        defaults: Defaults,
            why "Without it, plain caching by the origin's fields.";
        moved "admin_token" to "write token in [admin]";
    }
}

impl Config {
    /// Whether a site has a rule that looks in a store, or stores there.
    pub fn site_uses(&self, site: &Site, store: &Name) -> bool {
        let rules = site.rules.iter().map(|rule| Some(&rule.settings)).chain([None]);
        let mut resolved = rules.map(|rule| Settings::resolve(rule, &site.settings, &self.defaults.settings));
        resolved.any(|resolved| resolved.uses(store))
    }

    /// The origin of this name.
    pub fn origin(&self, name: &Name) -> Option<&Origin> {
        self.origins.iter().find(|(other, _)| other == name).map(|(_, origin)| origin)
    }

    /// What becomes of purge requests at a site of this config.
    pub fn purge<'c>(&'c self, site: &'c Site) -> &'c PurgeSetting {
        let said = site.purging.purge.as_ref().or(self.defaults.purging.purge.as_ref());
        said.unwrap_or(&PurgeSetting::Closed)
    }

    /// The fields that carry tags in the responses of a site of this config.
    pub fn tags(&self, site: &Site) -> TagFields {
        let said = site.purging.tags.as_ref().or(self.defaults.purging.tags.as_ref());
        said.cloned().unwrap_or_default()
    }

    /// The server where the versions of a rule lie: their own, that of the rule's store, or that of the fleet.
    pub fn server_of_versions<'c>(
        &'c self,
        rule: &Resolved,
        versions: &'c Versions,
    ) -> Option<&'c RedisServer> {
        let of_store = || self.store(&rule.store)?.redis.as_ref().map(|redis| &redis.server);
        versions.redis.as_ref().or_else(of_store).or_else(|| self.server_of_fleet())
    }

    /// The server where the fleet's purges lie: its own, or that of the first store whose responses larders share.
    pub fn server_of_fleet(&self) -> Option<&RedisServer> {
        let own = self.fleet.as_ref().and_then(|fleet| fleet.redis.as_ref());
        own.or_else(|| {
            self.stores.iter().find_map(|(_, store)| store.records()).map(|records| &records.server)
        })
    }

    /// The fleet that this larder is a member of, with its server.
    pub fn membership(&self) -> Option<(Fleet, &RedisServer)> {
        Some((self.fleet.clone().unwrap_or_default(), self.server_of_fleet()?))
    }

    /// Whether a store shares its responses with other larders.
    pub fn shares_responses(&self) -> bool {
        self.stores.iter().any(|(_, store)| store.records().is_some())
    }

    /// The store of this name.
    pub fn store(&self, name: &Name) -> Option<&Store> {
        self.stores.iter().find(|(other, _)| other == name).map(|(_, store)| store)
    }
}
