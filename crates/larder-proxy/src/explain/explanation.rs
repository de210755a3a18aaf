//! What `larder explain` tells, as values: the one shape that the admin address sends, `--json` prints, and the command
//! line renders as text. docs/reference/explain.md describes it key by key.
//!
//! In order of the decision. Durations are seconds, sizes bytes; what does not apply is null or an empty list. Tokens
//! are those of Cache-Status, log and metrics.

use serde::{Deserialize, Serialize};

pub use super::course::{Course, Field};

pub use super::assembled::{
    ExplainedFragment, ExplainedInclude, ExplainedLevel, ExplainedPage, ExplainedProblem,
};
pub use super::purged::{ExplainedPurge, PurgeOutlook};
pub use super::reason::Reason;
pub use super::recorded::{ExplainedRecord, FleetPlace, RecordFetch, RecordServer, RecordTold};

/// The whole decision about one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// What was asked.
    pub request: AskedRequest,
    /// Site and rule.
    pub route: Route,
    /// The cache key; null where nothing is looked up.
    pub key: Option<Key>,
    /// What lies under the key.
    pub stored: Stored,
    /// What happens to the request.
    pub decision: Decision,
    /// What the origin answers, and whether that may be stored; null where it is not needed to know.
    pub origin: Option<OriginAnswer>,
    /// The page that is put together from what is stored; null where that is no template.
    #[serde(default)]
    pub parts: Option<ExplainedPage>,
    /// What would take out, replace or renew what is stored, or would be.
    pub removal: Vec<Reason>,
    /// What a purge of the URL would take; null where nothing is looked up, and for a config alone.
    #[serde(default)]
    pub purge: Option<PurgeOutlook>,
    /// The field that such a request gets; what only the origin could tell is left out.
    pub cache_status: String,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRequest {
    /// The method.
    pub method: String,
    /// Scheme, canonical host, raw path and query.
    pub url: String,
    /// Its fields, after those that nobody may supply were dropped and the rule's edits made.
    pub fields: Vec<Field>,
    /// Names of fields that were dropped, because only a trusted peer may send them, or nobody.
    pub dropped_fields: Vec<String>,
    /// Whether a running larder was asked; else the config alone, with empty stores.
    pub running: bool,
}

/// Site and rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The site's name.
    pub site: String,
    /// Which of its host patterns took the request; null where it takes every host.
    pub host_pattern: Option<String>,
    /// The path as rules see it.
    pub canonical_path: String,
    /// The number of the first rule that matches, from 1; null where none does.
    pub rule: Option<usize>,
    /// What it is called: its name, or its first pattern and how many more it has; `(site)` where none matches.
    #[serde(default)]
    pub label: String,
    /// The line of the config on which it begins; null where none matches, or where there is no file.
    #[serde(default)]
    pub line: Option<usize>,
    /// What that rule asks for; empty where it takes every request.
    pub conditions: Vec<String>,
    /// The rules before it, which do not match; all of them where none does.
    pub passed_over: Vec<PassedOver>,
    /// How many rules the site has.
    pub rules: usize,
    /// Whether the rule lets responses be stored (`cache = "auto"`).
    pub cache: bool,
    /// The origin's name; null for a site of files alone.
    pub origin: Option<String>,
    /// Which Host the origin is asked with: `client`, `upstream`, or a name; null for a site of files alone.
    pub host: Option<String>,
    /// Where the origin is reached, and how each of its servers is doing; empty where nothing is known yet.
    pub servers: Vec<OriginServer>,
    /// Whether what is in use will be refreshed before its lifetime ends.
    pub refresh_ahead: bool,
    /// How long a request waits for another's fetch before it may go alone; null for as long as the fetch may take.
    pub collapse_wait_seconds: Option<f64>,
    /// How often a URL has to be asked for before its response is stored.
    pub min_uses: u32,
    /// What becomes of a WebSocket handshake, where the request is one.
    pub websocket: Option<Reason>,
}

/// A server of the origin, at one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginServer {
    /// As the config names it.
    pub server: String,
    /// Where it is reached.
    pub address: String,
    /// Its share beside the others'.
    pub weight: u32,
    /// Whether it is asked only while others cannot be.
    pub backup: bool,
    /// `up`, `slow-start`, `ejected`, `unhealthy` or `draining`.
    pub state: String,
    /// Requests whose response has not ended.
    pub in_flight: u64,
    /// Requests that it failed.
    pub failures: u64,
}

/// A rule that does not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// From 1.
    pub rule: usize,
    /// What it is called.
    #[serde(default)]
    pub label: String,
    /// The line of the config on which it begins.
    #[serde(default)]
    pub line: Option<usize>,
    /// What it asks for.
    pub conditions: Vec<String>,
}

/// The cache key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// In one line, as `key` in Cache-Status.
    pub text: String,
    /// Its parts, in order.
    pub parts: Vec<KeyPart>,
    /// Parameters that the rule leaves out: of the key, and of what the origin is sent.
    pub dropped_parameters: Vec<String>,
    /// Whether the rule put the parameters into another order.
    pub reordered: bool,
}

/// A part of the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPart {
    /// `scheme`, `host`, `path`, `query`, `cookie NAME`, `field NAME`, `content`.
    pub name: String,
    /// Null where the request has none, which is another key than an empty one.
    pub value: Option<String>,
}

/// What lies under the key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The stores that are looked through, in this order.
    pub stores: Vec<LookedThrough>,
    /// Whole responses, newest first, then parts (206).
    pub responses: Vec<ExplainedResponse>,
    /// Lately nothing that could be shared came for this key: for some seconds nobody waits for anybody.
    pub hit_for_miss: bool,
    /// Where nothing is stored, what became of the URL.
    #[serde(default)]
    pub before: Option<ExplainedBefore>,
    /// The last purge that named the URL or what lies under it, whatever it found; null where none did.
    #[serde(default)]
    pub last_purge: Option<ExplainedPurge>,
    /// What larders share under the key, for each store that has a Redis for that and would ask it.
    #[serde(default)]
    pub records: Vec<ExplainedRecord>,
}

/// What became of a URL under which nothing is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedBefore {
    /// The word of the log and of the metrics.
    pub word: String,
    /// In plain words.
    pub sentence: String,
    /// How long ago, to the minute; null where nothing is known.
    pub minutes_ago: Option<u64>,
}

/// A stored response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedResponse {
    /// Whether the request's fields select it.
    pub selected: bool,
    /// Whether an unsafe request has invalidated it, or one of its cache groups: it is not used again before a validation.
    pub invalidated: bool,
    /// Whether that is because a soft purge has ended its lifetime: it is used as any stale response.
    #[serde(default)]
    pub soft: bool,
    /// Whether it is not even used for that.
    #[serde(default)]
    pub gone: bool,
    /// Its status.
    pub status: u16,
    /// The length of its content.
    pub body_bytes: u64,
    /// The store that has it.
    pub store: String,
    /// Where in that it lies: `memory`, directories of disks, or its file.
    pub places: Vec<String>,
    /// Why it is on no disk and in no file; null where it is, and where there is memory only.
    pub held_back: Option<Reason>,
    /// Which bytes it holds, where it is a part.
    pub part: Option<PartBounds>,
    /// Which request fields it varies by.
    pub vary: Vec<VaryField>,
    /// The codings of its content; null where it has none. Only requests that take them select it.
    pub content_encoding: Option<String>,
    /// That it has no coding although the request, which selects it, takes one and its content would shrink; else null.
    pub uncompressed: Option<Reason>,
    /// Its entity tag.
    pub etag: Option<String>,
    /// Its Last-Modified.
    pub last_modified: Option<String>,
    /// How long it is fresh, and how old it is.
    pub freshness: ExplainedFreshness,
    /// The cache groups it is in.
    pub groups: Vec<String>,
    /// Its tags, at most 1000.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it came with more tags than are kept, so that a purge of any tag concerns it.
    #[serde(default)]
    pub every_tag: bool,
    /// How long ago a soft purge or an unsafe request ended its lifetime; null where none has, or that is not known.
    #[serde(default)]
    pub invalidated_seconds: Option<f64>,
    /// The last purge that ended it, softly or not; null where none has, or it is not among the last 1000.
    #[serde(default)]
    pub purge: Option<ExplainedPurge>,
    /// The cookies that it sets, by name.
    #[serde(default)]
    pub cookies: Vec<String>,
    /// Cookies that it came with and that were not stored, by name.
    #[serde(default)]
    pub cookies_withheld: Vec<String>,
}

/// A part of a representation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartBounds {
    /// The position of its first byte.
    pub first: u64,
    /// The position of its last byte.
    pub last: u64,
    /// The length of the whole, where it is known.
    pub complete: Option<u64>,
}

/// A field that a response varies by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaryField {
    /// The request field.
    pub name: String,
    /// The value of the request that made the response, as it is compared; null where it had none.
    pub stored: Option<String>,
    /// The value of the request that was asked about; null where it has none.
    pub asked: Option<String>,
}

/// How long a response is fresh, and how old it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedFreshness {
    /// The lifetime.
    pub lifetime_seconds: f64,
    /// Where it comes from.
    pub source: Reason,
    /// From how much jitter shortened it; null where it did not.
    pub shortened_from_seconds: Option<f64>,
    /// Everything that gives a lifetime, in order of precedence; the first decides.
    pub candidates: Vec<Candidate>,
    /// The current age.
    pub age_seconds: f64,
    /// What is left of the lifetime; negative for how long it has been stale.
    pub left_seconds: f64,
    /// The same in whole seconds, as in Cache-Status.
    pub ttl_seconds: i64,
    /// Whether it has to be validated before every use.
    pub no_cache: bool,
    /// What it says about its use when stale.
    pub stale: Vec<String>,
}

/// Something that gives a lifetime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Where it comes from.
    pub source: Reason,
    /// As it was said, such as `cache-control: max-age=60`.
    pub field: String,
    /// The lifetime.
    pub lifetime_seconds: f64,
    /// Whether it decides.
    pub decides: bool,
}

/// What happens to the request, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What happens.
    pub verdict: Course,
    /// Why.
    pub reason: Reason,
    /// Whether the request goes to the origin alone, without waiting for another's fetch.
    pub alone: bool,
    /// Fields that are added to the request to the origin.
    pub conditions: Vec<Field>,
    /// May what is stored be used in these cases: now, or for a hit as soon as it is stale?
    pub stale_use: Vec<StaleUse>,
    /// In how many seconds a use begins to refresh it ahead of its end, 0 for at once; null where none does.
    pub refresh_ahead_seconds: Option<f64>,
    /// Why the last response for this was not stored, where it might have been; null where nothing is known of that.
    pub last_time: Option<Reason>,
    /// How often the URL has been asked for lately, this request included; null where the rule does not ask for that, or
    /// something is stored.
    pub uses: Option<u32>,
}

/// May a stale response be used?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StaleUse {
    /// `origin-dead`, `origin-error` or `while-revalidate`.
    pub cause: String,
    /// Whether.
    pub allowed: bool,
    /// On what ground, or what forbids it.
    pub reason: Reason,
    /// For how long past the lifetime; null where something forbids it for any time.
    pub window: Option<Window>,
}

/// For how long something may be used past its lifetime, and who says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// From the end of the lifetime.
    pub seconds: f64,
    /// `response` or `rule`.
    pub source: String,
    /// As it was said, such as `stale-if-error=60` or `stale_if_dead = 86400s`.
    pub field: String,
}

/// What the origin answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OriginAnswer {
    /// Its name.
    pub origin: String,
    /// Why it was not asked; null where it was.
    pub not_asked: Option<String>,
    /// Why there is no answer; null where there is one.
    pub failed: Option<Reason>,
    /// The status.
    pub status: Option<u16>,
    /// How long it took to the end of the head.
    pub seconds: Option<f64>,
    /// The fields that matter to caching.
    pub fields: Vec<Field>,
    /// That its content has no coding although the request takes one and it would shrink; else null.
    pub uncompressed: Option<Reason>,
    /// Whether it would be stored.
    pub judgement: Option<Judgement>,
}

/// Whether an answer would be stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Whether.
    pub stored: bool,
    /// Whether those who wait for the same get it too.
    pub shared: bool,
    /// Why (not).
    pub reason: Reason,
    /// What would let it be stored.
    pub help: Option<String>,
    /// Where it would go; null where it would not be stored.
    pub place: Option<Destination>,
    /// How long it would be fresh, also where it is not stored.
    pub freshness: ExplainedFreshness,
    /// The request fields that it varies by; `*` where nothing selects it again.
    pub vary: Vec<String>,
    /// Cookies that may be one person's, by name: they would not be stored, and go to the client of the fetch alone.
    #[serde(default)]
    pub cookies_withheld: Vec<String>,
}

/// A store that may have something for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedThrough {
    /// Its name.
    pub store: String,
    /// Where it keeps things: `memory`, and directories; empty where a config is explained alone.
    pub places: Vec<String>,
}

/// Where a response would go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The store's name.
    pub store: String,
    /// Where that keeps things: `memory`, and directories; empty where a config is explained alone.
    pub places: Vec<String>,
    /// Who says so: `place`, or who names the rule's store.
    pub reason: Reason,
    /// Which entry of `place`, from 1; null where none matches.
    pub entry: Option<usize>,
    /// What that entry asks for.
    pub conditions: Vec<String>,
    /// Why it would not be on a disk or in a file; null where it would be, where there is memory only, and where a config is
    /// explained alone.
    pub held_back: Option<Reason>,
}
