//! A stored response, and a page of what is stored, in words and numbers: what `/objects` and `/object` send, and what `--json` prints.
//!
//! In: an entry of a store. Out: values; ages and lifetimes are whole seconds, sizes bytes; what does not apply is null or left
//! empty. Nothing in them can steer a terminal: what came over the network is escaped.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use larder_cache::Verdict;
use larder_http::fields::date;
use larder_http::time::Now;
use larder_store::listing::ListedResponse;
use serde::{Deserialize, Serialize};

use crate::explain::{Field, PartBounds};
use crate::key;
use crate::proxy::Proxy;

/// A page of what is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Objects {
    /// In no order that means anything.
    pub objects: Vec<StoredObject>,
    /// Records that could not be read: on disks, or of the page of what larders share.
    pub unreadable: u64,
    /// What to ask for as `cursor`; null at the end.
    pub next: Option<String>,
    /// About how many names Redis has looked at for this page; 0 where it was not asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub looked_at: u64,
    /// How many names the Redis has that was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Everything under one URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// As it was asked for.
    pub url: String,
    /// Whole responses first, newest first.
    pub responses: Vec<StoredObject>,
}

/// What a purge came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// As it was asked for.
    pub url: String,
    /// Responses that went.
    pub removed: u64,
}

/// A stored response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Its URL.
    pub url: String,
    /// The store that has it.
    pub store: String,
    /// Where it lies: `memory`, and directories of disks; `files` for a plain file; `remote` where larders share it.
    pub places: Vec<String>,
    /// The plain file that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether somebody put that there, or changed it: it is fresh for as long as it lies there, for both schemes, and its age
    /// is the time since it was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// Its status.
    pub status: u16,
    /// Its media type.
    pub content_type: Option<String>,
    /// The length of what is stored of it.
    pub body_bytes: u64,
    /// Which bytes that is, where it is a part.
    pub part: Option<PartBounds>,
    /// Its age.
    pub age_seconds: u64,
    /// What is left of its lifetime; negative once it is stale.
    pub ttl_seconds: i64,
    /// When it was received, or last validated, as fields write it.
    pub stored_at: String,
    /// What the rule added to its key, in the rule's order; null where the request had no such cookie or field.
    pub variant: Vec<Option<String>>,
    /// The fields that it varies by.
    pub vary: Vec<Varying>,
    /// Whether an unsafe request has invalidated it, or one of its cache groups: it is not used again before a validation.
    pub invalidated: bool,
    /// Whether that is because a soft purge has ended its lifetime: it is used as any stale response.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub soft: bool,
    /// The cookies that it sets, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cookies: Vec<String>,
    /// Cookies that it came with and that were not stored, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cookies_withheld: Vec<String>,
    /// Whether it is not even used for that: it is stored still, and never used again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Its language, where it is a template: `ssi` or `esi`. Of a file by hand its rule says that, and a listing does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Its fields; empty in a listing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

/// A page that is put together from what is stored, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssembledPage {
    /// As it was asked for.
    pub url: String,
    /// `ssi` or `esi`; null where what is stored is no template.
    pub language: Option<String>,
    /// Its status.
    pub status: u16,
    /// What a client would get with it, Age and Content-Length too; empty where there is no page.
    pub fields: Vec<Field>,
    /// Its length; null where there is no page.
    pub body_bytes: Option<u64>,
    /// Why `larder export` leaves it out; null where it does not.
    pub left_out: Option<PageLeftOut>,
}

/// Why a page is not for everybody, or not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLeftOut {
    /// `part-missing`, `fragment-failed`, `template-invalid`, `page-too-large`, `page-timeout`, `personal` or `no-store`.
    pub token: String,
    /// In plain words.
    pub sentence: String,
}

/// A field that a response varies by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Varying {
    /// The request field.
    pub name: String,
    /// Its value in the request that made the response, as it is compared; null where that had none.
    pub value: Option<String>,
}

/// For a listing: without the fields.
pub(super) fn listed(proxy: &Proxy, store: &str, entry: &ListedResponse, now: Now) -> StoredObject {
    let head = &entry.head;
    let memory = entry.is_in_memory.then(|| "memory".to_owned());
    let disks = entry.disks.iter().map(|folder| printable(folder.to_string_lossy().as_bytes()));
    let file = entry.file.as_ref().map(|_| "files".to_owned());
    let remote = entry.is_shared.then(|| "remote".to_owned());
    let varying = |(name, value): (http::HeaderName, _)| Varying { name: name.to_string(), value };
    let target = printable(entry.target());
    let is_by_hand = entry.file.as_ref().is_some_and(|file| file.is_by_hand);
    let verdict = match is_by_hand {
        true => Verdict::Good,
        false if entry.is_void => Verdict::Gone,
        false => proxy.invalidations.verdict_of(&entry.key, head, entry.number),
    };
    StoredObject {
        url: format!("{}://{}{target}", entry.scheme.as_str(), entry.authority.as_str()),
        store: store.to_owned(),
        places: memory.into_iter().chain(disks).chain(file).chain(remote).collect(),
        file: entry.file.as_ref().map(|file| printable(file.path.as_os_str().as_encoded_bytes())),
        by_hand: is_by_hand,
        status: head.status.as_u16(),
        content_type: head.fields.map.get(CONTENT_TYPE).map(|value| printable(value.as_bytes())),
        body_bytes: entry.body_bytes,
        part: head.part.as_ref().map(|part| PartBounds {
            first: part.range.start,
            last: part.range.end.saturating_sub(1),
            complete: part.complete,
        }),
        age_seconds: head.freshness.age(now).as_secs(),
        ttl_seconds: head.freshness.ttl_seconds(now),
        stored_at: printable(date::format(head.freshness.received.wall).as_bytes()),
        variant: key::values(entry.key.variant()).unwrap_or_default(),
        vary: head.vary.told().into_iter().map(varying).collect(),
        invalidated: verdict != Verdict::Good,
        soft: matches!(verdict, Verdict::Soft { .. }),
        gone: !verdict.is_of_use(head.validators.etag.is_some()),
        cookies: larder_cache::cookies_of(&head.fields.map),
        cookies_withheld: head.relieved.names().map(str::to_owned).collect(),
        language: head.language().map(|language| language.as_str().to_owned()),
        fields: Vec::new(),
    }
}

/// With its fields.
pub(super) fn whole(proxy: &Proxy, store: &str, entry: &ListedResponse, now: Now) -> StoredObject {
    StoredObject { fields: fields_of(&entry.head.fields.map), ..listed(proxy, store, entry, now) }
}

/// Field lines, in their order.
pub(super) fn fields_of(fields: &HeaderMap) -> Vec<Field> {
    let field = |(name, value): (&HeaderName, &HeaderValue)| Field {
        name: name.to_string(),
        value: printable(value.as_bytes()),
    };
    fields.iter().map(field).collect()
}

/// Nothing but visible characters: what is not ASCII, or steers a terminal, is escaped.
fn printable(bytes: &[u8]) -> String {
    match bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        true => String::from_utf8_lossy(bytes).into_owned(),
        false => bytes.escape_ascii().to_string(),
    }
}
