//! What a rule, a site and `[defaults]` can all say, and how one answer comes of the three.

use std::time::Duration;

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::section::section;
use crate::schema::{Consistent, TextSetting};
use crate::sections::assemble::AssembleSetting;
use crate::sections::edits::FieldEdits;
use crate::sections::fragments::Fragments;
use crate::sections::key::KeySettings;
use crate::sections::origin::item;
use crate::sections::place::{StoreRule, check_order};
use crate::sections::store::DEFAULT_STORE;
use crate::sections::versions::{Versions, VersionsSetting};
use crate::value::harmless::HarmlessCookie;
use crate::value::lifetimes::Lifetimes;
use crate::value::name::Name;
use crate::value::percent::Percent;
use crate::value::session::SessionCookie;
use crate::value::target::TargetField;
use crate::value::words::{
    AssembleMode, CacheMode, Cookies, HeadMode, Ignored, Invalidate, RequestDirectives, SetCookie,
};
use http::HeaderName;

section! {
    /// These keys stand in a rule, in a site and in `[defaults]`. Each is looked for by itself: in the first rule that
    /// matches, then in the site, then in `[defaults]`. Tables and lists are taken whole, never merged.
    pub struct Settings in "`[defaults]`, `[[site]]` and `[[site.rule]]`: settings" {
        /// `"auto"` follows the origin's fields and these settings; `"off"` neither looks up nor stores.
        cache: Option<CacheMode> = ("`\"auto\"`"), why "What an origin says in its fields is what happens (RFC 9111).";
        /// How long a response lives where the origin gives it neither a lifetime nor a restriction: a duration, for
        /// 200, 203, 301 and 308, or one by status. It beats heuristics, and never lifts `private`, `no-store`,
        /// `Vary: *`, the rules for Authorization, or the guard for Set-Cookie; only `ignore` does.
        ttl: Option<Lifetimes> = ("none"), why "Without it, a response without a lifetime gets a heuristic one (RFC 9111 4.2.2).";
        /// The same in place of the lifetime that the origin gave, and of `no-cache` and the revalidate directives.
        override_ttl: Option<Lifetimes> = ("none"), why "The origin knows best, unless it cannot be taught.";
        /// For how long past its lifetime a response may stand in for an origin that gives no answer at all, where the
        /// response has no `stale-if-error` of its own and nothing in it forbids stale use.
        stale_if_dead: Option<Duration> = ("`\"24h\"`"), why "Yesterday's page is better than none, and a dead origin is noticed within a day. `\"0s\"` is never.";
        /// For how long past its lifetime a response is still used at once, while one request fetches it anew behind, where
        /// the response has no `stale-while-revalidate` of its own. `must-revalidate`, `proxy-revalidate` and `no-cache`
        /// forbid it, unless `override_ttl` decides. `"0s"` is not at all.
        stale_while_revalidate: Option<Duration> = ("none"), why "Only the operator knows how old a page may be. With it no visitor waits for a page that others asked for before.";
        /// For how long past its lifetime a response may stand in for a 500, 502, 503 or 504 of the origin, where the
        /// response has no `stale-if-error` of its own and nothing in it forbids stale use. `"0s"` is not at all.
        stale_if_error: Option<Duration> = ("none"), why "An error may be the news: an application that answers is believed.";
        /// Fetch a response that is in use anew shortly before its lifetime ends, so that nobody waits and nobody gets a
        /// stale one. How long before follows from how long it took the last time.
        refresh_ahead: Option<bool> = ("`false`"), why "It asks the origin for what perhaps nobody will ask for again.";
        /// How much may be taken off each lifetime that `ttl` or `override_ttl` gives, by chance.
        jitter: Option<Percent> = ("`\"0%\"`"), in "0%" ..= "90%", why "A lifetime is what it says. With it, what was stored together does not expire together.";
        /// How long a request waits for another one's fetch of the same before it asks the origin itself; of those that
        /// have waited, one per second and URL may. `"0s"` is as long as the fetch's own limits allow.
        collapse_wait: Option<Duration> = ("none"), in "0s" ..= "10m", why "A second request seldom is faster than the first. It helps where single answers hang.";
        /// How often a URL has to be asked for lately before its response is stored.
        min_uses: Option<u8> = ("`1`"), in 1 ..= 200, why "Everything may be asked for again. More keeps what is asked for once out of a store that is too small.";
        /// How a HEAD goes to the origin where nothing is stored for its URL. `"get"` fetches with GET and stores the answer;
        /// the fetch ends at 16 MiB if nobody has asked for the content by then, and at once where Content-Length says more.
        /// `"pass"` sends the HEAD, and stores nothing. Where something stale is stored the HEAD is sent as it is.
        head: Option<HeadMode> = ("`\"get\"`"), why "Link checkers and players ask with HEAD for what is fetched next; other caches do the same.";
        /// Targeted fields (RFC 9213), the most specific first. The first one that can be read replaces Cache-Control
        /// and Expires wholly, even their `no-store`; it is passed on. `[]` is none.
        targets: Option<Vec<TargetField>> = ("`[\"CDN-Cache-Control\"]`"), why "An origin that sends it means caches like this one. A name of larder's own, such as `Larder-Cache-Control`, goes before it.";
        /// Understand `max-age` and `no-store` in Surrogate-Control, which replace Cache-Control and Expires where no
        /// targeted field does, and take the field out. `false` passes it on unread, as for the two below.
        surrogate_control: Option<bool> = ("`true`"), why "It is meant for the cache in front of the origin, and for nobody behind that.";
        /// Understand X-Accel-Expires (seconds, or `@` and a time), a lifetime in place of Cache-Control's and Expires',
        /// and take the field out.
        x_accel_expires: Option<bool> = ("`true`"), why "Applications that were written for nginx send it.";
        /// Understand X-Reverse-Proxy-TTL (seconds), likewise, where there is no X-Accel-Expires.
        x_reverse_proxy_ttl: Option<bool> = ("`true`"), why "Symfony applications with FOSHttpCache send it.";
        /// What a successful unsafe request (POST, PUT, DELETE, a method that larder does not know) that this rule takes does
        /// to what is stored for the URLs and cache groups that it invalidates. `"validate"`: a stored response is not used
        /// again before a validation, but it remains as validator and stands in for an origin that is dead or fails.
        /// `"remove"`: it is removed. `"off"`: nothing happens to it.
        invalidate: Option<Invalidate> = ("`\"validate\"`"), why "A page is never older than the last change, and a stranger who sends many POSTs does not empty the cache.";
        /// Which directives in a request's Cache-Control are heard. `"guarded"`: `no-cache`, `max-age` and `min-fresh`
        /// cause one validation, and none where the response came or was validated less than a second ago or lives by
        /// `ttl` or `override_ttl`; `no-store` and `only-if-cached` hold. `"honour"`: each time, without that second, and
        /// `max-stale` too. `"ignore"`: none of them.
        request_directives: Option<RequestDirectives> = ("`\"guarded\"`"), why "A reload shows what is new, and nobody can make the origin work for every request.";
        /// Rules that do not hold: `private` and `no-store` in responses, the `*` of Vary, that a response to a request
        /// with Authorization is its client's own, the guard for Set-Cookie. Each word lifts one rule and nothing else.
        /// It is warned about.
        ignore: Option<Vec<Ignored>> = ("`[]`"), why "Each of them keeps one visitor's page from another. Better teach the origin.";
        /// What becomes of a response that sets cookies. `"guard"` never stores a cookie that may be one person's: one with
        /// HttpOnly, with a name of a session or a person, or with a value that could tell people apart (12 characters, 3
        /// digits, or letters and digits). A response with `public`, `s-maxage`, a targeted field or Surrogate-Control is
        /// stored without such cookies, and the client whose request fetched it gets them; any other is not stored. Other
        /// cookies are stored where the origin gave the lifetime. `"store"` stores the response like any other, and every
        /// client is sent its cookies, about which `larder check` warns; `"strip"` stores it without them, and no client is
        /// sent them; `"bypass"` never stores it.
        set_cookie: Option<SetCookie> = ("`\"guard\"`"), why "Applications set session cookies on responses that they call public. Sharing such a cookie gives one visitor's login to all.";
        /// What cookies of a request mean where the application did not give the lifetime: under `ttl`, `override_ttl` and a
        /// lifetime guessed from Last-Modified. With `"respect"`, a request with any cookie that is neither in
        /// `harmless_cookies` nor in the key neither fills nor uses such a response; with `"ignore"`, cookies mean nothing.
        /// Authorization, X-Api-Key, X-Auth-Token and X-Access-Token keep a request from it in both.
        cookies: Option<Cookies> = ("`\"respect\"`"), why "A page made for one visitor must not reach another.";
        /// Cookies of requests that mean nothing under `cookies = "respect"`. `"default"` stands for the names below.
        harmless_cookies: Option<Vec<HarmlessCookie>> = ("`[\"default\"]`: the names below"), why "Cookies of analytics, advertising and consent, by which no application makes its pages. Any other cookie may be a login.";
        /// The only cookies that mean a session under `cookies = "respect"`; all others mean nothing then. `[]` is none.
        /// `"default"` stands for the names below. What it names is never stored by `set_cookie = "guard"` either, and it
        /// never lifts that.
        session_cookies: Option<Vec<SessionCookie>> = ("none: every cookie that is not harmless"), why "Names of logins are too many to know. Where all cookies of an application are known, its logins can be named.";
        /// Let a response that varies by Accept-Language also answer requests that like its Content-Language best of all,
        /// whatever else they would take.
        language_selection: Option<bool> = ("`false`"), why "RFC 9111 wants the same preferences: the origin might have something better for the others.";
        /// The name of the store.
        store: Option<Name> = ("`\"default\"`"), why "One store is enough for most.";
        /// Other stores, for responses of some types, sizes or statuses. `[]` takes back what the site says.
        place: Option<Vec<StoreRule>> = ("none: all go to `store`"), why "The path tells most requests apart; some can only be told by what comes.";
        /// What belongs to the cache key besides scheme, host and path.
        key: Option<KeySettings> = ("the whole query, no cookies, no fields"), why "Nothing that may change the answer is left out.";
        /// Versions that an application keeps in Redis. What was stored under one version is not used under another. `"off"` takes back
        /// what the site says.
        versions: Option<VersionsSetting> = ("none"), why "It takes an application that counts them up.";
        /// Changes to the request, before the cache looks at it: what is set counts for the key, for `Vary` and for
        /// cookies, and what is removed does not.
        request: Option<FieldEdits> = ("none"), why "Requests go on as they came. The cache sees what the origin will see.";
        /// Changes to the response on its way to the client. What is stored stays as it came.
        response: Option<FieldEdits> = ("none"), why "Responses go on as they came.";
        /// Which responses are templates, in which larder puts other responses: `"auto"`, those that say so in Surrogate-Control;
        /// `"ssi"` or `"esi"`, also those of a media type; `"off"`, none. Or a table.
        assemble: Option<AssembleSetting> = ("`\"auto\"`"), why "Text that looks like a directive means nothing, unless the application or the operator says that it is one.";
        /// How pages are put together from templates, and what one page may cost.
        fragments: Option<Fragments> = ("the defaults of its keys"), why "Each key has its own reason.";
        /// Say the cache key in the answer's Cache-Status.
        debug: Option<bool> = ("`false`"), why "It repeats keyed cookies and fields, in the access log too.";
    }
}

impl Default for Settings {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}

/// How long a response may stand in for a dead origin unless the config says otherwise.
const STALE_IF_DEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// Where a setting is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// In the rule that matched.
    Rule,
    /// In the site.
    Site,
    /// In `[defaults]`.
    Defaults,
    /// Nowhere.
    BuiltIn,
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
    /// See [`Settings::stale_if_dead`].
    pub stale_if_dead: Duration,
    /// See [`Settings::stale_while_revalidate`]; `None` also where it is zero.
    pub stale_while_revalidate: Option<Duration>,
    /// See [`Settings::stale_if_error`]; `None` also where it is zero.
    pub stale_if_error: Option<Duration>,
    /// See [`Settings::refresh_ahead`].
    pub refresh_ahead: bool,
    /// See [`Settings::jitter`].
    pub jitter: Percent,
    /// See [`Settings::collapse_wait`]; `None` also where it is zero.
    pub collapse_wait: Option<Duration>,
    /// See [`Settings::min_uses`]; at least 1.
    pub min_uses: u8,
    /// See [`Settings::head`].
    pub head: HeadMode,
    /// See [`Settings::targets`].
    pub targets: Vec<TargetField>,
    /// See [`Settings::surrogate_control`].
    pub surrogate_control: bool,
    /// See [`Settings::x_accel_expires`].
    pub x_accel_expires: bool,
    /// See [`Settings::x_reverse_proxy_ttl`].
    pub x_reverse_proxy_ttl: bool,
    /// See [`Settings::invalidate`].
    pub invalidate: Invalidate,
    /// See [`Settings::request_directives`].
    pub request_directives: RequestDirectives,
    /// See [`Settings::ignore`].
    pub ignore: Vec<Ignored>,
    /// See [`Settings::set_cookie`].
    pub set_cookie: SetCookie,
    /// See [`Settings::cookies`].
    pub cookies: Cookies,
    /// See [`Settings::harmless_cookies`].
    pub harmless_cookies: Vec<HarmlessCookie>,
    /// See [`Settings::session_cookies`].
    pub session_cookies: Option<Vec<SessionCookie>>,
    /// See [`Settings::language_selection`].
    pub language_selection: bool,
    /// See [`Settings::store`]. It is declared in a checked config.
    pub store: Name,
    /// Where that is said.
    pub store_from: Layer,
    /// See [`Settings::place`].
    pub place: Vec<StoreRule>,
    /// See [`Settings::key`].
    pub key: KeySettings,
    /// See [`Settings::versions`].
    pub versions: Option<Versions>,
    /// See [`Settings::request`].
    pub request: FieldEdits,
    /// See [`Settings::response`].
    pub response: FieldEdits,
    /// See [`Settings::assemble`].
    pub assemble: AssembleSetting,
    /// See [`Settings::fragments`].
    pub fragments: Fragments,
    /// See [`Settings::debug`].
    pub debug: bool,
}

impl Resolved {
    /// Whether they lead to a store.
    pub fn uses(&self, store: &Name) -> bool {
        let is_it = self.store == *store || self.place.iter().any(|place| place.store == *store);
        self.cache == CacheMode::Auto && is_it
    }
}

impl Settings {
    /// What holds where `rule` matched (`None`: no rule did), on a site with these settings: each key from the first
    /// of the three that has it, tables whole.
    pub fn resolve(rule: Option<&Self>, site: &Self, defaults: &Self) -> Resolved {
        let layers = [rule.unwrap_or(site), site, defaults];
        fn first<T: Clone>(layers: [&Settings; 3], key: impl Fn(&Settings) -> &Option<T>) -> Option<T> {
            layers.into_iter().find_map(|layer| key(layer).clone())
        }
        let store_from = match (rule.and_then(|rule| rule.store.as_ref()), &site.store, &defaults.store) {
            (Some(_), _, _) => Layer::Rule,
            (None, Some(_), _) => Layer::Site,
            (None, None, Some(_)) => Layer::Defaults,
            (None, None, None) => Layer::BuiltIn,
        };
        Resolved {
            cache: first(layers, |layer| &layer.cache).unwrap_or_default(),
            ttl: first(layers, |layer| &layer.ttl).unwrap_or_default(),
            override_ttl: first(layers, |layer| &layer.override_ttl).unwrap_or_default(),
            stale_if_dead: first(layers, |layer| &layer.stale_if_dead).unwrap_or(STALE_IF_DEAD),
            stale_while_revalidate: some_time(first(layers, |layer| &layer.stale_while_revalidate)),
            stale_if_error: some_time(first(layers, |layer| &layer.stale_if_error)),
            refresh_ahead: first(layers, |layer| &layer.refresh_ahead).unwrap_or_default(),
            jitter: first(layers, |layer| &layer.jitter).unwrap_or_default(),
            collapse_wait: some_time(first(layers, |layer| &layer.collapse_wait)),
            min_uses: first(layers, |layer| &layer.min_uses).unwrap_or(1),
            head: first(layers, |layer| &layer.head).unwrap_or_default(),
            targets: first(layers, |layer| &layer.targets).unwrap_or_else(TargetField::defaults),
            surrogate_control: first(layers, |layer| &layer.surrogate_control).unwrap_or(true),
            x_accel_expires: first(layers, |layer| &layer.x_accel_expires).unwrap_or(true),
            x_reverse_proxy_ttl: first(layers, |layer| &layer.x_reverse_proxy_ttl).unwrap_or(true),
            invalidate: first(layers, |layer| &layer.invalidate).unwrap_or_default(),
            request_directives: first(layers, |layer| &layer.request_directives).unwrap_or_default(),
            ignore: first(layers, |layer| &layer.ignore).unwrap_or_default(),
            set_cookie: first(layers, |layer| &layer.set_cookie).unwrap_or_default(),
            cookies: first(layers, |layer| &layer.cookies).unwrap_or_default(),
            harmless_cookies: first(layers, |layer| &layer.harmless_cookies)
                .unwrap_or_else(|| vec![HarmlessCookie::Known]),
            session_cookies: first(layers, |layer| &layer.session_cookies),
            language_selection: first(layers, |layer| &layer.language_selection).unwrap_or_default(),
            store: first(layers, |layer| &layer.store).unwrap_or_else(|| Name::declared(DEFAULT_STORE)),
            store_from,
            place: first(layers, |layer| &layer.place).unwrap_or_default(),
            key: first(layers, |layer| &layer.key).unwrap_or_default(),
            versions: first(layers, |layer| &layer.versions).and_then(VersionsSetting::versions),
            request: first(layers, |layer| &layer.request).unwrap_or_default(),
            response: first(layers, |layer| &layer.response).unwrap_or_default(),
            assemble: first(layers, |layer| &layer.assemble).unwrap_or_default(),
            fragments: first(layers, |layer| &layer.fragments).unwrap_or_default(),
            debug: first(layers, |layer| &layer.debug).unwrap_or_default(),
        }
    }
}

/// Zero turns off what another layer turned on.
fn some_time(time: Option<Duration>) -> Option<Duration> {
    time.filter(|time| !time.is_zero())
}

impl Consistent for Settings {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        check_order(self.place.as_deref().unwrap_or_default(), table, at, reading);
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
        let is_off = self.assemble.as_ref().is_some_and(|set| set.language == AssembleMode::Off);
        if let Some(node) = table.get("fragments").filter(|_| is_off) {
            let problem = reading.problem(&node.place, &At::Key(at, "fragments"), "it is not used");
            reading.warn(problem.hint("`assemble` is \"off\" here"));
        }
        if self.cache == Some(CacheMode::Off) {
            for name in UNUSED_WHERE_OFF {
                if let Some(node) = table.get(name) {
                    let problem = reading.problem(&node.place, &At::Key(at, name), "it is not used");
                    reading.warn(problem.hint("`cache` is \"off\" here"));
                }
            }
        } else {
            let here = At::Key(at, "ignore");
            for (word, place, index) in reading.located::<Ignored>(table, "ignore") {
                let said = format!("the rule for \"{}\" does not hold here", word.word());
                let problem = reading.problem(&place, &item(&here, index), said);
                reading.warn(problem.hint(word.risk()));
            }
            if let Some(node) = table.get("set_cookie").filter(|_| self.set_cookie == Some(SetCookie::Store))
            {
                let said = "cookies that one client is sent are stored here, and given to all others";
                let problem = reading.problem(&node.place, &At::Key(at, "set_cookie"), said);
                reading.warn(problem.hint(Ignored::SetCookie.risk()));
            }
        }
    }
}

/// Keys that say nothing where nothing is looked up or stored.
const UNUSED_WHERE_OFF: [&str; 22] = [
    "ttl",
    "override_ttl",
    "stale_if_dead",
    "stale_while_revalidate",
    "stale_if_error",
    "refresh_ahead",
    "jitter",
    "collapse_wait",
    "min_uses",
    "head",
    "targets",
    "request_directives",
    "ignore",
    "set_cookie",
    "cookies",
    "harmless_cookies",
    "session_cookies",
    "language_selection",
    "place",
    "key",
    "versions",
    "debug",
];

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
