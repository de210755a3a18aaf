//! What a config says and what each crate is told then, word by word.
//!
//! In: small configs. Out: the policies, rules and origins that come of them. Nothing is served here; that a setting
//! does what it says is for tests/scenarios.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use http::HeaderName;
use larder_cache::{
    Assemble, CachePolicy, Controls, HarmlessNames, Ignored, Lifetimes, SessionNames, SetCookiePolicy,
    TemplatePolicy, Wishes,
};
use larder_http::fields::cookie_names::HARMLESS;
use larder_http::template::Language;
use larder_proxy::settings::{FragmentSettings, TypePattern};

use super::*;

/// A config with a site that says `lines`.
fn config_of(lines: &str) -> Config {
    let text = format!("[origins.a]\nservers = \"http://127.0.0.1:1\"\n[[site]]\norigin = \"a\"\n{lines}\n");
    larder_config::parse(&text, "larder.toml", Path::new(".")).unwrap().config
}

fn wiring(metrics: Metrics) -> Wiring {
    Wiring::new(Arc::new(metrics), Clock::default(), Diagnostics::silent(), Arc::default())
}

/// The policy of a site that says `lines`.
fn policy_of(lines: &str) -> CachePolicy {
    let config = config_of(lines);
    policy(
        &Settings::resolve(None, &config.sites[0].settings, &config.defaults.settings),
        &SiteFields::by(&config, &config.sites[0]),
    )
}

#[test]
fn every_word_about_refreshing_reaches_the_proxy() {
    let rule_of = |lines: &str| {
        let started = Clock::default().now().wall;
        let metrics = Metrics::new(1, larder_proxy::vocabulary(), started, "test");
        let (settings, _) = wiring(metrics).draft(&config_of(lines), &Shares::unlimited()).unwrap();
        let rule = &settings.sites[0].otherwise;
        (rule.refresh_ahead, rule.collapse_wait, rule.min_uses, rule.fetches_heads)
    };
    assert_eq!(rule_of(""), (false, None, 1, true));
    let said = rule_of("refresh_ahead = true\ncollapse_wait = \"2s\"\nmin_uses = 3\nhead = \"pass\"");
    assert_eq!(said, (true, Some(Duration::from_secs(2)), 3, false));
}

#[test]
fn every_word_about_fragments_reaches_the_proxy() {
    let metrics = Metrics::new(1, larder_proxy::vocabulary(), Clock::default().now().wall, "test");
    let config = config_of(
        r#"[site.fragments]
timeout = "1s"
page_timeout = "2s"
depth = 3
count = 4
at_once = 5
page_size = "6KiB"
on_error = "omit"
silent = true
error_bodies = true
hosts = ["A.example", "*.b.example"]"#,
    );
    let (settings, _) = wiring(metrics).draft(&config, &Shares::unlimited()).unwrap();
    let expected = FragmentSettings {
        timeout: Duration::from_secs(1),
        page_timeout: Duration::from_secs(2),
        depth: 3,
        count: 4,
        at_once: 5,
        page_size: 6 << 10,
        omits_failed: true,
        is_silent: true,
        error_bodies: true,
        hosts: vec!["a.example".to_owned(), "*.b.example".to_owned()],
    };
    assert_eq!(*settings.sites[0].otherwise.fragments, expected);
}

#[test]
fn an_origin_is_kept_as_long_as_its_config_and_the_files_it_names_are_the_same() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ca.pem");
    std::fs::write(&file, "one").unwrap();
    let text = format!(
        "[origins.a]\nservers = \"https://app.example\"\nca_file = {file:?}\n[[site]]\norigin = \"a\"\n"
    );
    let config = larder_config::parse(&text, "larder.toml", Path::new(".")).unwrap().config;
    let started = Clock::default().now().wall;
    let metrics = Metrics::new(1, larder_proxy::vocabulary(), started, "test");
    let mut wiring = wiring(metrics);
    let mut reload = || {
        let (settings, draft) = wiring.draft(&config, &Shares::unlimited()).unwrap();
        wiring.commit(draft, &Shares::unlimited());
        Arc::clone(&settings.origins[0].settings)
    };
    let first = reload();
    assert!(Arc::ptr_eq(&first, &reload()));
    // A certificate that was renewed in place.
    std::fs::write(&file, "two").unwrap();
    let renewed = reload();
    assert!(!Arc::ptr_eq(&first, &renewed));
    assert!(Arc::ptr_eq(&renewed, &reload()));
}

/// Reloads one after the other, with one disk.
struct Reloads {
    wiring: Wiring,
    folder: tempfile::TempDir,
}

impl Reloads {
    fn new() -> Self {
        let metrics = Metrics::new(1, larder_proxy::vocabulary(), Clock::default().now().wall, "test");
        Self { wiring: wiring(metrics), folder: tempfile::tempdir().unwrap() }
    }

    /// The store of this name with its disk in this folder, and what needs a restart.
    fn to(&mut self, name: &str, disk: &str, more: &str) -> (Arc<Store>, Vec<String>) {
        let path = self.folder.path().join(disk);
        let disk = format!("disks = [{{ path = {path:?}, size = \"64MiB\" }}]");
        let config =
            config_of(&format!("store = {name:?}\n[stores.{name}]\nmemory = \"8MiB\"\n{disk}\n{more}"));
        let (_, draft) = self.wiring.draft(&config, &Shares::unlimited()).unwrap();
        let postponed = self.wiring.postponed(&draft);
        self.wiring.commit(draft, &Shares::unlimited());
        (Arc::clone(self.wiring.store_named(name).unwrap()), postponed)
    }
}

#[test]
fn a_store_lies_where_it_was_opened_whatever_later_configs_say() {
    let mut reloads = Reloads::new();
    let (first, postponed) = reloads.to("kept", "one", "");
    assert!(postponed.is_empty());
    for _ in 0..2 {
        let (store, postponed) = reloads.to("kept", "two", "");
        assert!(Arc::ptr_eq(&store, &first) && postponed.len() == 1);
        assert!(postponed[0].starts_with("stores.kept: disks"), "{postponed:?}");
    }
    let (store, postponed) = reloads.to("kept", "one", "");
    assert!(Arc::ptr_eq(&store, &first) && postponed.is_empty(), "it lies there: {postponed:?}");
    reloads.to("kept", "two", "");
    // By another name it is opened where the config says.
    let (renamed, postponed) = reloads.to("renamed", "two", "");
    assert!(!Arc::ptr_eq(&renamed, &first) && postponed.is_empty(), "{postponed:?}");
    // The one that was taken out is found where it lies, as long as it is used.
    let (back, postponed) = reloads.to("back", "one", "");
    assert!(Arc::ptr_eq(&back, &first) && postponed.is_empty(), "{postponed:?}");
}

#[test]
fn the_largest_body_on_disks_changes_with_a_reload_unless_they_are_others() {
    let mut reloads = Reloads::new();
    let mut to = |disk: &str, size: &str| {
        let (store, postponed) = reloads.to("kept", disk, &format!("max_object = {size:?}"));
        (store.max_object(), postponed.len())
    };
    assert_eq!(to("one", "16MiB"), (16 << 20, 0));
    assert_eq!(to("one", "32MiB"), (32 << 20, 0));
    assert_eq!(to("one", "4MiB"), (4 << 20, 0));
    assert_eq!(to("two", "32MiB"), (4 << 20, 1));
}

#[test]
fn a_site_that_says_nothing_has_the_cache_s_own_defaults() {
    assert_eq!(policy_of(""), CachePolicy::default());
}

#[test]
fn every_word_about_caching_reaches_the_cache() {
    let said = policy_of(
        r#"
ttl = "1s"
override_ttl = { 404 = "2s" }
stale_if_dead = "3s"
stale_while_revalidate = "4s"
stale_if_error = "5s"
jitter = "6%"
targets = ["A-Cache-Control"]
surrogate_control = false
x_accel_expires = false
x_reverse_proxy_ttl = false
request_directives = "honour"
ignore = ["private", "vary", "set-cookie"]
set_cookie = "bypass"
cookies = "ignore"
session_cookies = ["id", "*x*", "default"]
harmless_cookies = ["theme", "default"]
language_selection = true
assemble = { language = "ssi", types = ["a/b", "text/HTML"], escape = "none", strict = true }
key = { cookies = "theme", fields = "X-Theme" }"#,
    );
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = CachePolicy {
        client_certificates: false,
        ttl: Lifetimes { any: Some(Duration::from_secs(1)), by_status: Vec::new() },
        override_ttl: Lifetimes { any: None, by_status: vec![(404, Duration::from_secs(2))] },
        session_cookies: Some(SessionNames {
            built_in: true,
            exact: names(&["id"]),
            containing: names(&["x"]),
        }),
        harmless_cookies: HarmlessNames::new(["theme"].into_iter().chain(HARMLESS.iter().copied())),
        keyed_cookies: names(&["theme"]),
        keyed_fields: vec![HeaderName::from_static("x-theme")],
        ignore_cookies: true,
        stale_if_dead: Duration::from_secs(3),
        stale_while_revalidate: Some(Duration::from_secs(4)),
        stale_if_error: Some(Duration::from_secs(5)),
        jitter_percent: 6,
        set_cookie: SetCookiePolicy::Bypass,
        controls: Controls {
            targets: vec![HeaderName::from_static("a-cache-control")],
            surrogate_control: false,
            x_accel_expires: false,
            x_reverse_proxy_ttl: false,
            tags: Default::default(),
            ending: Vec::new(),
        },
        request_directives: Wishes::Honour,
        ignore: Ignored {
            private: true,
            no_store: false,
            vary: true,
            authorization: false,
            set_cookie: true,
        },
        language_selection: true,
        templates: TemplatePolicy {
            assemble: Assemble::Language(Language::Ssi),
            types: names(&["a/b", "text/html"]),
            escapes_html: false,
            strict: true,
        },
    };
    assert_eq!(said, expected);
    let assemble = |word: &str| policy_of(&format!("assemble = \"{word}\"")).templates.assemble;
    assert_eq!(assemble("esi"), Assemble::Language(Language::Esi));
    assert_eq!((assemble("auto"), assemble("off")), (Assemble::Auto, Assemble::Off));
    let others = policy_of("ignore = [\"no-store\", \"authorization\"]\nset_cookie = \"store\"");
    assert!(others.ignore.no_store && others.ignore.authorization && !others.ignore.private);
    assert_eq!(others.set_cookie, SetCookiePolicy::Store);
    assert_eq!(policy_of("set_cookie = \"strip\"").set_cookie, SetCookiePolicy::Strip);
    assert_eq!(policy_of("request_directives = \"ignore\"").request_directives, Wishes::Ignore);
}

#[test]
fn each_rule_has_the_stores_that_it_names() {
    let config = config_of(
        r#"store = "pages"
place = [{ type = ["video/*", "audio/*"], min_size = "1KiB", status = [200, "203-206"], store = "media" }]
[[site.rule]]
path = "/b"
store = "default"
[[site.rule]]
path = "/c"
place = []
[stores.pages]
[stores.media]"#,
    );
    let metrics = Metrics::new(1, larder_proxy::vocabulary(), Clock::default().now().wall, "test");
    let mut wiring = wiring(metrics);
    let (settings, draft) = wiring.draft(&config, &Shares::unlimited()).unwrap();
    wiring.commit(draft, &Shares::unlimited());
    let store = |name: &str| wiring.stores().into_iter().find(|(other, _)| other == name).unwrap().1;
    let is_in = |rule: &RuleSettings, names: &[&str]| {
        let found: Vec<_> = rule.stores().map(|(store, _)| Arc::as_ptr(store)).collect();
        let expected: Vec<_> = names.iter().map(|name| Arc::as_ptr(&store(name))).collect();
        assert_eq!(found, expected, "{names:?}");
    };
    let site = &settings.sites[0];
    is_in(&site.otherwise, &["pages", "media"]);
    is_in(&site.rules[0].1, &["default", "media"]);
    is_in(&site.rules[1].1, &["pages"]);
    assert_eq!(settings.stores.len(), 3);
    let what = &site.otherwise.places[0].what;
    assert_eq!(what.types, [TypePattern::new("video/*"), TypePattern::new("audio/*")]);
    assert_eq!((what.size_bytes_min, what.statuses.as_slice()), (1024, [200..=200, 203..=206].as_slice()));
}

#[test]
fn each_rule_is_called_what_its_config_calls_it() {
    let config = config_of(
        "[[site.rule]]\nname = \"blog\"\npath = \"/blog/*\"\n[[site.rule]]\npath = [\"/a\", \"/b\"]",
    );
    let metrics = Metrics::new(1, larder_proxy::vocabulary(), Clock::default().now().wall, "test");
    let (settings, _draft) = wiring(metrics).draft(&config, &Shares::unlimited()).unwrap();
    let site = &settings.sites[0];
    let called = |rule: &Arc<RuleSettings>| (rule.label.to_string(), rule.line);
    let rules: Vec<_> = site.rules.iter().map(|(_, rule)| called(rule)).collect();
    assert_eq!(rules, [("blog".to_owned(), Some(5)), ("/a +1".to_owned(), Some(8))]);
    assert_eq!(called(&site.otherwise), ("(site)".to_owned(), None));
}

#[test]
fn values_are_for_the_hosts_of_the_sites_that_use_their_store() {
    let text = "[stores.values]\nmemcached = [\"127.0.0.1:1\"]\n[origins.a]\nservers = \"http://127.0.0.1:1\"\n\
                [[site]]\nhosts = [\"one.example\"]\norigin = \"a\"\n[[site.rule]]\npath = \"/f/*\"\nstore = \"values\"\n\
                [[site]]\nhosts = [\"*.example\"]\norigin = \"a\"\n\
                [[site]]\norigin = \"a\"\nplace = [{ type = \"text/html\", store = \"values\" }]\n";
    let config = larder_config::parse(text, "larder.toml", Path::new(".")).unwrap().config;
    let served = |store: &str| {
        let (name, _) = config.stores.iter().find(|(name, _)| name.as_str() == store).unwrap();
        let hosts = values::served(&config, name);
        ["one.example", "two.example", "other.test"].map(|host| hosts(host))
    };
    assert_eq!(served("values"), [true, false, true]);
    assert_eq!(served("default"), [true, true, true]);
    let started = Clock::default().now().wall;
    let metrics = Metrics::new(1, larder_proxy::vocabulary(), started, "test");
    let mut wiring = wiring(metrics);
    let (settings, draft) = wiring.draft(&config, &Shares::unlimited()).unwrap();
    assert_eq!(settings.stores.iter().filter(|store| store.asks_anew()).count(), 1);
    assert!(wiring.remote_tiers().is_empty());
    wiring.commit(draft, &Shares::unlimited());
    assert_eq!(wiring.remote_tiers()[0].0, "values");
    let reports = wiring.remote_tiers()[0].1.reports();
    assert_eq!((reports[0].server.as_str(), reports[0].is_up), ("127.0.0.1:1", true));
}
