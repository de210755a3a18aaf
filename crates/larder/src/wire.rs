//! From the config's words to each crate's settings: the one place that knows both.
//!
//! What lives on over a reload is found again by name: stores keep their content, origins that did not change, in the
//! config and in the files it names, keep their connections, counters keep counting. A [`Draft`] holds what a new config
//! needs; nothing that runs is touched before it is committed.

use std::collections::HashMap;
use std::sync::Arc;

use larder_config::{CacheMode, Config, Resolved, Settings};
use larder_http::time::Clock;
use larder_observe::{CacheId, Diagnostics, LoggedRule, Metrics};
use larder_proxy::objects::Stores;
use larder_proxy::settings::{
    Invalidate, KeySettings, OriginChoice, ProxySettings, QueryParts, RuleNumber, RuleSettings, SiteSettings,
    StoreFrom, StoreRule,
};
use larder_proxy::{Heard, PlanError, Reach};
use larder_remote::RemoteError;
use larder_remote::versions::Versions;
use larder_store::{MemoryStoreSettings, Store};

pub(crate) mod acme;
mod assembly;
pub(crate) mod fleet;
mod listener;
pub(crate) mod live;
mod matching;
pub(crate) mod member;
mod origin;
mod policy;
mod records;
mod redis;
mod removed;
mod site_fields;
mod store;
pub(crate) mod tls;
mod trusted;
mod values;
mod versions;

use crate::server::descriptors::Shares;
pub(crate) use listener::listener;
use matching::{place_match, rule_match};
use policy::{access, policy};
use records::FleetStanding;
pub(crate) use redis::settings as redis_settings;
use removed::{RemovedStores, has_directories, is_same_place};
use site_fields::{SiteFields, edits};
use store::{DraftStore, KnownStore, StoreError, StoreSurroundings};
pub(crate) use store::{RemoteTier, unusable_directories};
pub(crate) use values::memcached;

/// What takes the place of a rule's label: what holds where no rule of a site matches.
const OF_THE_SITE: &str = "(site)";

/// Why a checked config cannot be put to work.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A pattern or a document root.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A store's disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What reads versions.
    #[error("versions")]
    Versions(#[from] RemoteError),
    /// An origin's TLS.
    #[error("origin")]
    Origin(#[from] larder_origin::SetupError),
}

/// What is found again by name.
pub(crate) struct Wiring {
    metrics: Arc<Metrics>,
    stores: Vec<(String, KnownStore)>,
    /// Stores that a reload has taken out: that may still be open, or what they had heard when they were closed.
    removed: RemovedStores,
    clock: Clock,
    diagnostics: Diagnostics,
    origins: HashMap<String, KnownOrigin>,
    /// Of all origins together.
    connections: Arc<larder_origin::Connections>,
    /// One for each server with versions.
    versions: Vec<Arc<Versions>>,
    standing: Arc<FleetStanding>,
}

#[derive(Clone)]
struct KnownOrigin {
    config: larder_config::Origin,
    /// A digest of the files that the config names, which may be renewed in place.
    files: u64,
    choice: OriginChoice,
}

/// What a new config needs, not in force yet.
pub(crate) struct Draft {
    stores: Vec<(String, DraftStore)>,
    origins: HashMap<String, KnownOrigin>,
    versions: Vec<Arc<Versions>>,
}

impl Wiring {
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        clock: Clock,
        diagnostics: Diagnostics,
        reach: Arc<Reach>,
    ) -> Self {
        Self {
            metrics,
            stores: Vec::new(),
            removed: RemovedStores::new(reach),
            clock,
            diagnostics,
            origins: HashMap::new(),
            connections: Arc::default(),
            versions: Vec::new(),
            standing: Arc::default(),
        }
    }

    /// The settings of a checked config, and what has to be remembered once they are in force. Opens the directories of new
    /// stores of files, and waits for them; disks are opened when it is known what they have missed.
    ///
    /// # Errors
    /// A thread is not to be had, or an origin's files cannot be read.
    pub(crate) fn draft(
        &self,
        config: &Config,
        shares: &Shares,
    ) -> Result<(ProxySettings, Draft), WireError> {
        self.draft_reading(config, shares, (config, true))
    }

    /// The same with versions as another config says, whose servers are asked if `connects`.
    ///
    /// # Errors
    /// As for [`Wiring::draft`].
    pub(crate) fn draft_reading(
        &self,
        config: &Config,
        shares: &Shares,
        (of_versions, connects): (&Config, bool),
    ) -> Result<(ProxySettings, Draft), WireError> {
        let draft = Draft {
            stores: self.draft_stores(config, shares)?,
            origins: self.draft_origins(config),
            versions: versions::readers(of_versions, &self.versions, (&self.diagnostics, connects))?,
        };
        let names: Vec<&str> = config.origins.iter().map(|(name, _)| name.as_str()).collect();
        let settings = ProxySettings {
            sites: config
                .sites
                .iter()
                .map(|site| self.site((config, of_versions), site, &names, &draft))
                .collect(),
            origins: names
                .iter()
                .filter_map(|name| draft.origins.get(*name))
                .map(|known| known.choice.clone())
                .collect(),
            stores: draft.stores.iter().map(|(_, store)| Arc::clone(&store.known.store)).collect(),
            trusted: Arc::new(trusted::is_trusted(config)),
            purges: config.limits.purges,
            orphan_time: ProxySettings::ORPHAN_TIME,
            hit_for_miss: ProxySettings::HIT_FOR_MISS,
        };
        Ok((settings, draft))
    }

    /// Remembers what is in force now, and gives stores their new size.
    pub(crate) fn commit(&mut self, draft: Draft, shares: &Shares) {
        self.connections.limit(shares.origins);
        let stores: Vec<_> = draft.stores.into_iter().map(|(name, store)| (name, store.commit())).collect();
        stores.iter().for_each(|(_, known)| self.removed.forget(&known.store, &known.opened));
        let is_gone =
            |known: &KnownStore| !stores.iter().any(|(_, other)| Arc::ptr_eq(&other.store, &known.store));
        for (_, known) in self.stores.drain(..).filter(|(_, known)| is_gone(known)) {
            known.store.limit_files(0);
            self.removed.add(known.opened, known.store);
        }
        self.stores = stores;
        self.origins = draft.origins;
        self.versions = draft.versions;
    }

    /// How far the store of a draft had heard of invalidations when it was closed in this process.
    pub(crate) fn heard(&self, draft: &Draft, store: &Arc<Store>) -> Option<Heard> {
        let (_, drafted) =
            draft.stores.iter().find(|(_, drafted)| Arc::ptr_eq(&drafted.known.store, store))?;
        self.removed.heard(&drafted.known.opened)
    }

    /// Says what was not as it should be on disks that were opened for a draft.
    pub(crate) fn tell_of_findings(&self, draft: &Draft) {
        for (name, drafted) in draft.stores.iter().filter(|(_, drafted)| drafted.is_new) {
            for finding in drafted.known.store.findings() {
                self.diagnostics.warn("disk-finding", name, format_args!("store {name}: {finding}"));
            }
        }
    }

    /// What of the stores' changes needs a restart, a sentence each.
    pub(crate) fn postponed(&self, draft: &Draft) -> Vec<String> {
        let changed = |(name, store): &(String, DraftStore)| store.postponed(name);
        draft.stores.iter().filter_map(changed).collect()
    }

    fn known(&self, name: &str) -> Option<&KnownStore> {
        self.stores.iter().find(|(other, _)| other == name).map(|(_, store)| store)
    }

    /// A store that is open in this process and is what `config` means: of a name that `all` has not, or one that a reload has
    /// taken out.
    fn still_open(&self, config: &larder_config::Store, all: &Config) -> Option<KnownStore> {
        let is_named = |name: &str| all.stores.iter().any(|(other, _)| other.as_str() == name);
        let is_it = |name: &str, known: &KnownStore| {
            !is_named(name) && has_directories(config) && is_same_place(&known.opened, config)
        };
        let renamed = self.stores.iter().find(|(name, known)| is_it(name, known));
        let renamed = renamed.map(|(_, known)| Arc::clone(&known.store));
        let store = renamed.or_else(|| self.removed.find(config))?;
        // What has directories has nothing in other programs' memory.
        Some(KnownStore { store, remote: None, opened: config.clone() })
    }

    /// Stores of earlier configs that may still be open.
    pub(crate) fn removed_stores(&self) -> Vec<Arc<Store>> {
        self.removed.open()
    }

    pub(crate) fn store_named(&self, name: &str) -> Option<&Arc<Store>> {
        self.known(name).map(|known| &known.store)
    }

    pub(crate) fn stores(&self) -> Stores {
        self.stores.iter().map(|(name, known)| (name.clone(), Arc::clone(&known.store))).collect()
    }

    /// What stores have in other programs' memory.
    pub(crate) fn remote_tiers(&self) -> Vec<(String, RemoteTier)> {
        let remote = |(name, known): &(String, KnownStore)| Some((name.clone(), known.remote.clone()?));
        self.stores.iter().filter_map(remote).collect()
    }

    /// How this larder stands in its fleet, once it has joined that.
    pub(crate) fn standing(&self) -> &Arc<FleetStanding> {
        &self.standing
    }

    /// Who reads versions.
    pub(crate) fn versions(&self) -> &[Arc<Versions>] {
        &self.versions
    }

    pub(crate) fn origins(&self) -> Vec<(String, Arc<larder_origin::OriginState>)> {
        let state = |(name, known): (&String, &KnownOrigin)| (name.clone(), Arc::clone(&known.choice.state));
        let mut origins: Vec<_> = self.origins.iter().map(state).collect();
        origins.sort_by(|(a, _), (b, _)| a.cmp(b));
        origins
    }

    fn draft_stores(&self, config: &Config, shares: &Shares) -> Result<Vec<(String, DraftStore)>, WireError> {
        let fleet = config.membership().map(|(fleet, _)| fleet).unwrap_or_default();
        let store = |(number, (declared, store)): (usize, &(larder_config::Name, larder_config::Store))| {
            let (name, open_files) = (declared.as_str(), shares.of_store(number));
            let open = self.known(name).cloned().or_else(|| self.still_open(store, config));
            let hosts = values::served(config, declared);
            let surroundings = StoreSurroundings {
                clock: &self.clock,
                diagnostics: &self.diagnostics,
                open_files,
                standing: &self.standing,
                fleet: &fleet,
            };
            let drafted = DraftStore::of(name, store, open, hosts, &surroundings)?;
            Ok((name.to_owned(), drafted))
        };
        config.stores.iter().enumerate().map(store).collect()
    }

    fn draft_origins(&self, config: &Config) -> HashMap<String, KnownOrigin> {
        let draft = |(name, config): &(larder_config::Name, larder_config::Origin)| {
            let name = name.as_str().to_owned();
            let known = self.origins.get(&name);
            let files = origin::digest_of_files(&origin::tls(config));
            let is_same = |known: &&KnownOrigin| known.config == *config && known.files == files;
            let unchanged = known.filter(is_same).cloned();
            let drafted = unchanged.unwrap_or_else(|| {
                let state = known.map_or_else(
                    || larder_origin::OriginState::among(&self.connections),
                    |known| Arc::clone(&known.choice.state),
                );
                let settings = Arc::new(origin::settings(&name, config));
                let choice = OriginChoice {
                    name: name.as_str().into(),
                    settings,
                    state,
                    id: self.metrics.origin(&name),
                    hash_by: config.chosen_by().map(origin::hash_by),
                    sticky: config.sticky.as_ref().map(|name| name.as_str().into()),
                    via: config.via,
                };
                KnownOrigin { config: config.clone(), files, choice }
            });
            (name, drafted)
        };
        config.origins.iter().map(draft).collect()
    }

    fn site(
        &self,
        (config, of_versions): (&Config, &Config),
        site: &larder_config::Site,
        origins: &[&str],
        draft: &Draft,
    ) -> SiteSettings {
        let name: Arc<str> = site.label().into();
        let site_fields = SiteFields::by(config, site);
        let resolved = |rule: Option<(&larder_config::Rule, String)>| {
            let own = rule.as_ref().map(|(rule, _)| &rule.settings);
            let resolved = Settings::resolve(own, &site.settings, &config.defaults.settings);
            let called = match rule {
                Some((rule, label)) => (label, rule.line),
                None => (OF_THE_SITE.to_owned(), None),
            };
            Arc::new(self.rule((&name, called), of_versions, resolved, &site_fields, draft))
        };
        let labeled = site.rules.iter().zip(site.labels());
        SiteSettings {
            route: self.metrics.route(&name),
            name: Arc::clone(&name),
            hosts: site.hosts.iter().map(|host| host.as_str().to_owned()).collect(),
            origin: site
                .origin
                .as_ref()
                .and_then(|name| origins.iter().position(|other| *other == name.as_str())),
            root: site.root.as_ref().map(|root| root.0.clone()),
            websocket: site.websocket,
            tls: None,
            purge: access(config.purge(site)),
            rules: labeled.map(|(rule, label)| (rule_match(rule), resolved(Some((rule, label))))).collect(),
            otherwise: resolved(None),
        }
    }

    /// The store of this name, and its number in the metrics.
    fn store(&self, name: &larder_config::Name, draft: &Draft) -> (Arc<Store>, CacheId) {
        let declared = draft.stores.iter().find(|(other, _)| other == name.as_str());
        // A checked config names declared stores only; an empty one would store nothing and break nothing.
        let store = declared.map_or_else(
            || Store::in_memory(&MemoryStoreSettings { memory: 0, max_object: 0 }),
            |(_, store)| Arc::clone(&store.known.store),
        );
        (store, self.metrics.cache(name.as_str()))
    }

    fn rule(
        &self,
        (site, (label, line)): (&str, (String, Option<usize>)),
        of_versions: &Config,
        resolved: Resolved,
        site_fields: &SiteFields,
        draft: &Draft,
    ) -> RuleSettings {
        let versions = versions::of_rule(of_versions, &resolved, &draft.versions);
        let policy = policy(&resolved, site_fields);
        let (store, store_id) = self.store(&resolved.store, draft);
        let place = |place: &larder_config::StoreRule| {
            let (store, store_id) = self.store(&place.store, draft);
            let rule_id = self.metrics.rule(site, &label, store_id);
            StoreRule { what: place_match(place), store, store_id, rule_id }
        };
        let rule_id = self.metrics.rule(site, &label, store_id);
        let places = resolved.place.iter().map(place).collect();
        RuleSettings {
            number: RuleNumber::unique(),
            logged: LoggedRule::new(site, &label),
            label: label.into(),
            line,
            cache: resolved.cache == CacheMode::Auto,
            store,
            store_id,
            rule_id,
            store_from: match resolved.store_from {
                larder_config::Layer::Rule => StoreFrom::Rule,
                larder_config::Layer::Site => StoreFrom::Site,
                larder_config::Layer::Defaults => StoreFrom::Defaults,
                larder_config::Layer::BuiltIn => StoreFrom::BuiltIn,
            },
            places,
            key: KeySettings {
                query: match resolved.key.query_parts() {
                    larder_config::QueryParts::All => QueryParts::All,
                    larder_config::QueryParts::None => QueryParts::None,
                    larder_config::QueryParts::Only(names) => QueryParts::Only(names),
                    larder_config::QueryParts::Except(names) => QueryParts::Except(names),
                },
                sort: resolved.key.sort,
                cookies: policy.keyed_cookies.clone(),
                fields: resolved.key.fields,
            },
            policy,
            invalidate: match resolved.invalidate {
                larder_config::Invalidate::Validate => Some(Invalidate::Validate),
                larder_config::Invalidate::Remove => Some(Invalidate::Remove),
                larder_config::Invalidate::Off => None,
            },
            refresh_ahead: resolved.refresh_ahead,
            collapse_wait: resolved.collapse_wait,
            min_uses: resolved.min_uses,
            fetches_heads: resolved.head == larder_config::HeadMode::Get,
            debug: resolved.debug,
            request: site_fields.edits(resolved.request),
            response: edits(resolved.response),
            fragments: assembly::fragments(resolved.fragments),
            versions,
        }
    }
}

#[cfg(test)]
mod tests;
