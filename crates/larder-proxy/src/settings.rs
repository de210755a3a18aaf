//! What the proxy is told: sites, rules and what they decide, already checked and resolved.
//!
//! In: structs that the binary fills from the config, with names resolved to the things named. Nothing here can be
//! wrong in a way that a user could cause: `larder-config` has refused that before.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use larder_cache::CachePolicy;
use larder_http::fields::cache_status::Forward;
use larder_http::message::ClientPolicyId;
use larder_observe::{CacheId, LoggedRule, OriginId, RouteId, RuleId};
use larder_origin::OriginSettings;
use larder_store::Store;
use larder_tls::server::CertificateStore;

pub use crate::place::{PlaceMatch, StoreRule, TypePattern};
pub use crate::purges::access::{Access, AccessRules, Addresses, Secret};
pub use crate::versions::{VersionRule, VersionTemplate};

/// Everything that one version of the config decides.
pub struct ProxySettings {
    /// In the order of the file.
    pub sites: Vec<SiteSettings>,
    /// Origins by the index that sites name.
    pub origins: Vec<OriginChoice>,
    /// Every store, so that an invalidation reaches all of them.
    pub stores: Vec<Arc<Store>>,
    /// Whose X-Forwarded fields are believed.
    pub trusted: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// How long a fetch may go on with no client left.
    pub orphan_time: Duration,
    /// How long a mark keeps requests from queueing for what cannot be shared.
    pub hit_for_miss: Duration,
    /// Purges that may be under way at once.
    pub purges: usize,
}

/// Answers to an authority that looks for proofs over HTTP.
pub trait HttpProofs: Send + Sync {
    /// The proof of a token, while an authority may look for it. Most requests find none pending, so that has to be cheap.
    fn proof(&self, token: &str) -> Option<Arc<str>>;
}

impl ProxySettings {
    /// Sets what each site has to do with TLS, in the order of the sites.
    pub fn secure(&mut self, sites: Vec<Option<SiteTlsSettings>>) {
        for (site, tls) in self.sites.iter_mut().zip(sites) {
            site.tls = tls.map(Box::new);
        }
    }

    /// 30 s.
    pub const ORPHAN_TIME: Duration = Duration::from_secs(30);
    /// 10 s.
    pub const HIT_FOR_MISS: Duration = Duration::from_secs(10);
    /// 10 000.
    pub const WAITERS_PER_KEY: usize = 10_000;
    /// The longest content of a QUERY that can be part of a key, in bytes: 64 KiB.
    pub const QUERY_CONTENT_MAX: usize = 64 * 1024;
}

/// An origin and its number in the metrics.
#[derive(Clone, Debug)]
pub struct OriginChoice {
    /// Its name, for the log.
    pub name: Arc<str>,
    /// A worker keeps its connections over a reload where this is the same allocation as before.
    pub settings: Arc<OriginSettings>,
    /// Its counters and servers, shared by all workers.
    pub state: Arc<larder_origin::OriginState>,
    /// Its number.
    pub id: OriginId,
    /// By which part of a request a server is chosen; `None` where the origin does not balance by hash.
    pub hash_by: Option<HashBy>,
    /// The cookie that keeps a client at its server.
    pub sticky: Option<Arc<str>>,
    /// Whether it is sent Via.
    pub via: bool,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashBy {
    /// Host, path and query.
    Url,
    /// The path.
    Path,
    /// The host.
    Host,
    /// The address of the client, as far as trusted peers tell.
    Client,
    /// A request field.
    Field(HeaderName),
    /// A cookie.
    Cookie(String),
    /// A query parameter, by its raw name.
    Query(String),
}

/// A site.
pub struct SiteSettings {
    /// Names it in metrics and logs: its first host, or `*`.
    pub name: Arc<str>,
    /// Its number in the metrics.
    pub route: RouteId,
    /// Exact hosts and `*.` wildcards, lower case; none for the site that takes every host.
    pub hosts: Vec<String>,
    /// Index into [`ProxySettings::origins`]; absent for a site of files alone.
    pub origin: Option<usize>,
    /// Static files, tried first.
    pub root: Option<PathBuf>,
    /// Whether `Upgrade: websocket` is passed on.
    pub websocket: bool,
    /// What it has to do with TLS; `None` for nothing.
    pub tls: Option<Box<SiteTlsSettings>>,
    /// Who may purge.
    pub purge: Access,
    /// The first rule that matches decides; each is already resolved against site and defaults.
    pub rules: Vec<(RuleMatch, Arc<RuleSettings>)>,
    /// What holds where no rule matches.
    pub otherwise: Arc<RuleSettings>,
}

/// What a site has to do with TLS.
#[derive(Clone, Debug, Default)]
pub struct SiteTlsSettings {
    /// Where requests in clear text are sent: to the same URL at this port of https.
    pub redirect: Option<u16>,
    /// What every answer over TLS says in Strict-Transport-Security (RFC 6797), unless the application says it.
    pub hsts: Option<HeaderValue>,
    /// Under which policy for client certificates a connection has to be accepted.
    pub client_policy: ClientPolicyId,
    /// Whether the origin is told which certificate the client has shown (RFC 9440).
    pub forward_client_cert: bool,
    /// Its certificates, where they are ordered from an authority: until a host has one, it is not served.
    pub ordered: Option<Arc<CertificateStore>>,
}

/// What a rule matches; an empty list matches everything.
#[derive(Clone, Debug, Default)]
pub struct RuleMatch {
    /// Regular expressions for the canonical path, of which one has to match; globs come translated.
    pub paths: Vec<String>,
    /// Methods.
    pub methods: Vec<Method>,
    /// Request fields.
    pub fields: Vec<(HeaderName, ValueMatch)>,
    /// Cookies.
    pub cookies: Vec<(String, ValueMatch)>,
    /// Query parameters, by their raw names.
    pub query: Vec<(String, ValueMatch)>,
}

/// What a named value has to be.
#[derive(Clone, Debug)]
pub enum ValueMatch {
    /// There, or not there.
    Present(bool),
    /// One of its values matches this regular expression.
    Pattern(String),
}

/// What an unsafe request does to what it invalidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Invalidate {
    /// It is not used again before a validation.
    #[default]
    Validate,
    /// It is removed.
    Remove,
}

/// Who named the store of a rule; only to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreFrom {
    /// The rule itself.
    Rule,
    /// Its site.
    Site,
    /// `[defaults]`.
    Defaults,
    /// Nobody.
    #[default]
    BuiltIn,
}

/// Tells a rule from all others that the process has had. A reload gives new numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleNumber(u64);

impl RuleNumber {
    /// A number that no other rule has.
    pub fn unique() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a rule decides.
pub struct RuleSettings {
    /// Its number.
    pub number: RuleNumber,
    /// What it is called wherever rules are told apart; `(site)` for what holds where no rule matches.
    pub label: Arc<str>,
    /// The same with the site, for the log.
    pub logged: LoggedRule,
    /// Where it stands in the config, as a line from 1.
    pub line: Option<usize>,
    /// `cache = "auto"`; with `false` requests are passed on and nothing is stored or looked up.
    pub cache: bool,
    /// Lifetimes and guards.
    pub policy: CachePolicy,
    /// The store's number in the metrics.
    pub store_id: CacheId,
    /// Its own number there, with this store.
    pub rule_id: RuleId,
    /// Where responses are kept.
    pub store: Arc<Store>,
    /// Who said so.
    pub store_from: StoreFrom,
    /// Other stores, for some of them; the first entry that matches decides.
    pub places: Vec<StoreRule>,
    /// What its unsafe requests do to what they invalidate; `None` is nothing.
    pub invalidate: Option<Invalidate>,
    /// Whether what is in use is refreshed before its lifetime ends.
    pub refresh_ahead: bool,
    /// How long a request waits for somebody else's fetch before it may ask the origin itself.
    pub collapse_wait: Option<Duration>,
    /// How often a URL has to be asked for before a response to it is stored; 0 and 1 are the first time.
    pub min_uses: u8,
    /// Whether a HEAD for what is not stored is fetched with GET.
    pub fetches_heads: bool,
    /// What belongs to the key.
    pub key: KeySettings,
    /// Whether Cache-Status tells the key.
    pub debug: bool,
    /// Edits of what the origin receives.
    pub request: FieldEdits,
    /// Edits of what the client receives.
    pub response: FieldEdits,
    /// How pages are put together from its templates; which responses are templates is the policy's.
    pub fragments: Arc<FragmentSettings>,
    /// Versions of an application's that tell responses apart; `None` where there are none.
    pub versions: Option<Arc<VersionRule>>,
}

impl RuleSettings {
    /// Why requests of this method go past the cache, where they do.
    pub(crate) fn passes_by(&self, method: &Method) -> Option<Forward> {
        match method.as_str() {
            "GET" | "HEAD" | "QUERY" => (!self.cache).then_some(Forward::Bypass),
            _ => Some(Forward::Method),
        }
    }
}

/// How pages are put together, and what one of them may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentSettings {
    /// How long a page waits for one fragment, from the moment that it is asked for.
    pub timeout: Duration,
    /// How long a page waits for all of them together.
    pub page_timeout: Duration,
    /// Levels of fragments within fragments.
    pub depth: usize,
    /// Includes that one page runs, on all levels.
    pub count: usize,
    /// Fetches of one page that are under way together.
    pub at_once: usize,
    /// Bytes of a page, beyond which it is cut.
    pub page_size: u64,
    /// Whether a failed fragment of ESI is left out where the template does not say what stands in for it. Otherwise the page
    /// fails.
    pub omits_failed: bool,
    /// Whether SSI writes nothing where it would write its error text.
    pub is_silent: bool,
    /// Whether SSI inserts the content of a 4xx or 5xx.
    pub error_bodies: bool,
    /// Hosts that fragments may come from beside the page's own: exact, or `*.` and a domain; in lower case.
    pub hosts: Vec<String>,
}

impl Default for FragmentSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            page_timeout: Duration::from_secs(60),
            depth: 10,
            count: 1000,
            at_once: 16,
            page_size: 64 << 20,
            omits_failed: false,
            is_silent: false,
            error_bodies: false,
            hosts: Vec::new(),
        }
    }
}

/// What belongs to the key beyond scheme, host and path.
#[derive(Clone, Debug, Default)]
pub struct KeySettings {
    /// Which parameters of the query.
    pub query: QueryParts,
    /// Whether parameters are sorted by name and value.
    pub sort: bool,
    /// Cookies, by name.
    pub cookies: Vec<String>,
    /// Request fields.
    pub fields: Vec<HeaderName>,
}

/// Which parameters of the query belong to the key, and so reach the origin.
#[derive(Clone, Debug, Default)]
pub enum QueryParts {
    /// All, byte for byte.
    #[default]
    All,
    /// None.
    None,
    /// These.
    Only(Vec<String>),
    /// All but these; a name that ends in `*` stands for all that begin so.
    Except(Vec<String>),
}

/// Fields to remove and to set, in this order.
#[derive(Clone, Debug, Default)]
pub struct FieldEdits {
    /// Removed wherever they come from.
    pub remove: Vec<HeaderName>,
    /// Set in place of what was there.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

impl FieldEdits {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty()
    }

    /// Does it.
    pub fn apply(&self, fields: &mut http::HeaderMap) {
        for name in &self.remove {
            fields.remove(name);
        }
        for (name, value) in &self.set {
            fields.insert(name, value.clone());
        }
    }
}
