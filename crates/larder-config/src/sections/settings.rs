//! What a rule, a site and `[defaults]` can all say, and how one answer comes of the three.

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, TextSetting};
use crate::sections::edits::FieldEdits;
use crate::sections::key::KeySettings;
use crate::sections::store::DEFAULT_STORE;
use crate::value::lifetimes::Lifetimes;
use crate::value::name::Name;
use crate::value::words::{CacheMode, Cookies};
use http::HeaderName;

section! {
    /// These keys stand in a rule, in a site and in `[defaults]`. Each is looked for by itself: in the first rule that
    /// matches, then in the site, then in `[defaults]`. Tables are taken whole, never merged.
    pub struct Settings in "`[defaults]`, `[[site]]` and `[[site.rule]]`: settings" {
        /// `"auto"` follows the origin's fields and these settings; `"off"` neither looks up nor stores.
        cache: Option<CacheMode> = ("`\"auto\"`"), why "What an origin says in its fields is what happens (RFC 9111).";
        /// How long a response lives where the origin gives it neither a lifetime nor a restriction: a duration, for
        /// 200, 203, 301 and 308, or one by status. It beats heuristics, and never lifts `private`, `no-store`,
        /// `Vary: *`, the rules for Authorization, or the guard for Set-Cookie.
        ttl: Option<Lifetimes> = ("none"), why "Without it, a response without a lifetime gets a heuristic one (RFC 9111 4.2.2).";
        /// The same in place of the lifetime that the origin gave, and of `no-cache` and the revalidate directives.
        override_ttl: Option<Lifetimes> = ("none"), why "The origin knows best, unless it cannot be taught.";
        /// The name of the store.
        store: Option<Name> = ("`\"default\"`"), why "One store is enough for most.";
        /// What belongs to the cache key besides scheme, host and path.
        key: Option<KeySettings> = ("the whole query, no cookies, no fields"), why "Nothing that may change the answer is left out.";
        /// What cookies mean where `ttl` or `override_ttl` decides. With `"respect"`, a request with Authorization, or
        /// with a session cookie that is not in the key, neither fills nor uses such a response; with `"ignore"`,
        /// cookies mean nothing. Names that contain sess, auth, token, login or csrf, and a few well-known ones, mean
        /// a session.
        cookies: Option<Cookies> = ("`\"respect\"`"), why "A page made for one visitor must not reach another.";
        /// Changes to the request, before the cache looks at it: what is set counts for the key, for `Vary` and for
        /// cookies, and what is removed does not.
        request: Option<FieldEdits> = ("none"), why "Requests go on as they came. The cache sees what the origin will see.";
        /// Changes to the response on its way to the client. What is stored stays as it came.
        response: Option<FieldEdits> = ("none"), why "Responses go on as they came.";
    }
}

impl Default for Settings {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}

/// What holds for a request: every setting with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// See [`Settings::cache`].
    pub cache: CacheMode,
    /// See [`Settings::ttl`]; empty where none is set.
    pub ttl: Lifetimes,
    /// See [`Settings::override_ttl`]; empty where none is set.
    pub override_ttl: Lifetimes,
    /// See [`Settings::store`]. It is declared in a checked config.
    pub store: Name,
    /// See [`Settings::key`].
    pub key: KeySettings,
    /// See [`Settings::cookies`].
    pub cookies: Cookies,
    /// See [`Settings::request`].
    pub request: FieldEdits,
    /// See [`Settings::response`].
    pub response: FieldEdits,
}

impl Settings {
    /// What holds where `rule` matched (`None`: no rule did), on a site with these settings: each key from the first
    /// of the three that has it, tables whole.
    pub fn resolve(rule: Option<&Self>, site: &Self, defaults: &Self) -> Resolved {
        let layers = [rule.unwrap_or(site), site, defaults];
        fn first<T: Clone>(layers: [&Settings; 3], key: impl Fn(&Settings) -> &Option<T>) -> Option<T> {
            layers.into_iter().find_map(|layer| key(layer).clone())
        }
        Resolved {
            cache: first(layers, |layer| &layer.cache).unwrap_or_default(),
            ttl: first(layers, |layer| &layer.ttl).unwrap_or_default(),
            override_ttl: first(layers, |layer| &layer.override_ttl).unwrap_or_default(),
            store: first(layers, |layer| &layer.store).unwrap_or_else(|| Name::declared(DEFAULT_STORE)),
            key: first(layers, |layer| &layer.key).unwrap_or_default(),
            cookies: first(layers, |layer| &layer.cookies).unwrap_or_default(),
            request: first(layers, |layer| &layer.request).unwrap_or_default(),
            response: first(layers, |layer| &layer.response).unwrap_or_default(),
        }
    }
}

impl Consistent for Settings {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        check_edits(table, at, reading, "request", |name| {
            matches!(
                name,
                "range"
                    | "if-range"
                    | "if-match"
                    | "if-none-match"
                    | "if-modified-since"
                    | "if-unmodified-since"
            )
            .then_some(
                "ranges and conditions are the cache's own: it would store what only one client asked for",
            )
        });
        check_edits(table, at, reading, "response", |name| {
            matches!(name, "age" | "date" | "content-range")
                .then_some("other caches and clients count on it: it goes on as it is")
        });
        if self.cache == Some(CacheMode::Off) {
            for name in ["ttl", "override_ttl", "key", "cookies"] {
                if let Some(node) = table.get(name) {
                    let problem = reading.problem(&node.place, &At::Key(at, name), "it is not used");
                    reading.warn(problem.hint("`cache` is \"off\" here"));
                }
            }
        }
    }
}

/// Refuses edits of fields for which `reason` has a reason.
fn check_edits(
    table: &Table,
    at: &At<'_>,
    reading: &mut Reading<'_>,
    name: &str,
    reason: impl Fn(&str) -> Option<&'static str>,
) {
    let Some(Value::Table(edits)) = table.get(name).map(|node| &node.value) else {
        return;
    };
    let here = At::Key(at, name);
    let mut named = Vec::new();
    if let Some(Value::Table(set)) = edits.get("set").map(|node| &node.value) {
        let keys = set
            .entries
            .iter()
            .filter_map(|entry| Some((HeaderName::from_text(&entry.name).ok()?, &entry.place)));
        named.extend(keys.map(|(field, place)| (field, place.clone(), "set")));
    }
    let removed = reading.located::<HeaderName>(edits, "remove");
    named.extend(removed.into_iter().map(|(field, place, _)| (field, place, "remove")));
    for (field, place, list) in named {
        if let Some(reason) = reason(field.as_str()) {
            let said = format!("the field \"{field}\" cannot be changed here");
            let problem = reading.problem(&place, &At::Key(&here, list), said).hint(reason);
            reading.refuse(problem);
        }
    }
}
