//! What is said about caching: how it resolves, what is refused, what is warned about.

use std::time::Duration;

use super::errors::check_rule;
use super::*;
use crate::{HarmlessCookie, Ignored, RequestDirectives, SessionCookie, SetCookie, Settings};

#[test]
fn what_is_said_about_caching_resolves_key_by_key_and_lists_are_taken_whole() {
    let config = good(
        r#"[defaults]
stale_if_dead = "1h"
targets = ["Larder-Cache-Control", "CDN-Cache-Control"]
surrogate_control = false
debug = true
[origins.app]
servers = "http://127.0.0.1:3000"
[[site]]
origin = "app"
set_cookie = "strip"
session_cookies = ["default", "sid", "*sess*", "wp_*"]
harmless_cookies = ["theme", "default"]
ignore = ["vary", "no-store"]
[[site.rule]]
path = "/a"
targets = []
ignore = []
session_cookies = "id"
request_directives = "honour"
language_selection = true
x_accel_expires = false
x_reverse_proxy_ttl = false
stale_if_dead = "0s"
"#,
    )
    .config;
    let site = &config.sites[0];
    let names = |resolved: &crate::Resolved| {
        resolved.targets.iter().map(|target| target.name().as_str().to_owned()).collect::<Vec<_>>()
    };
    let otherwise = Settings::resolve(None, &site.settings, &config.defaults.settings);
    assert_eq!(names(&otherwise), ["larder-cache-control", "cdn-cache-control"]);
    assert_eq!(otherwise.ignore, [Ignored::Vary, Ignored::NoStore]);
    let sessions = [
        SessionCookie::Known,
        SessionCookie::Whole("sid".to_owned()),
        SessionCookie::Part("sess".to_owned()),
        SessionCookie::Part("wp_".to_owned()),
    ];
    assert_eq!(otherwise.session_cookies.as_deref(), Some(&sessions[..]));
    let harmless = [HarmlessCookie::Pattern("theme".to_owned()), HarmlessCookie::Known];
    assert_eq!(otherwise.harmless_cookies, harmless);
    assert_eq!((otherwise.set_cookie, otherwise.debug), (SetCookie::Strip, true));
    assert_eq!(otherwise.stale_if_dead, Duration::from_secs(3600));
    assert_eq!(
        [otherwise.surrogate_control, otherwise.x_accel_expires, otherwise.x_reverse_proxy_ttl],
        [false, true, true]
    );
    assert_eq!(otherwise.request_directives, RequestDirectives::Guarded);
    let own = Settings::resolve(Some(&site.rules[0].settings), &site.settings, &config.defaults.settings);
    assert!(own.targets.is_empty() && own.ignore.is_empty() && own.language_selection);
    assert_eq!(own.session_cookies.as_deref(), Some(&[SessionCookie::Whole("id".to_owned())][..]));
    assert_eq!((own.set_cookie, own.request_directives), (SetCookie::Strip, RequestDirectives::Honour));
    assert_eq!(own.stale_if_dead, Duration::ZERO);
    assert_eq!([own.surrogate_control, own.x_accel_expires, own.x_reverse_proxy_ttl], [false, false, false]);
}

#[test]
fn what_is_said_about_refreshing_resolves_key_by_key_and_zero_turns_it_off() {
    let config = good(
        r#"[defaults]
stale_while_revalidate = "10s"
stale_if_error = "1h"
jitter = "20%"
[origins.app]
servers = "http://127.0.0.1:3000"
[[site]]
origin = "app"
refresh_ahead = true
collapse_wait = "2s"
min_uses = 3
[[site.rule]]
path = "/a"
stale_while_revalidate = "0s"
stale_if_error = "0s"
refresh_ahead = false
jitter = "0%"
collapse_wait = "0s"
min_uses = 1
[[site.rule]]
path = "/b"
stale_while_revalidate = "1s"
"#,
    )
    .config;
    let site = &config.sites[0];
    let resolved = |rule: Option<usize>| {
        let rule = rule.map(|index| &site.rules[index].settings);
        let all = Settings::resolve(rule, &site.settings, &config.defaults.settings);
        let windows = [all.stale_while_revalidate, all.stale_if_error, all.collapse_wait];
        (
            windows.map(|time| time.map(|time| time.as_secs())),
            all.refresh_ahead,
            all.jitter.hundredths(),
            all.min_uses,
        )
    };
    assert_eq!(resolved(None), ([Some(10), Some(3600), Some(2)], true, 20, 3));
    assert_eq!(resolved(Some(0)), ([None, None, None], false, 0, 1));
    assert_eq!(resolved(Some(1)), ([Some(1), Some(3600), Some(2)], true, 20, 3));
    let plain = Settings::resolve(None, &Settings::default(), &Settings::default());
    assert_eq!((plain.stale_while_revalidate, plain.stale_if_error, plain.collapse_wait), (None, None, None));
    assert_eq!((plain.refresh_ahead, plain.jitter.hundredths(), plain.min_uses), (false, 0, 1));
}

#[test]
fn bounds_of_refreshing_are_said() {
    check_rule(
        "jitter = \"91%\"\nmin_uses = 0\ncollapse_wait = \"11m\"\nrefresh_ahead = \"yes\"\nstale_if_error = 60",
        "larder.toml:6:10: site[0].rule[0].jitter: found \"91%\", expected \"0%\" to \"90%\"\n\
         larder.toml:7:12: site[0].rule[0].min_uses: found 0, expected 1 to 200\n\
         larder.toml:8:17: site[0].rule[0].collapse_wait: found \"11m\", expected \"0s\" to \"10m\"\n\
         larder.toml:9:17: site[0].rule[0].refresh_ahead: found \"yes\", expected true or false\n\
         larder.toml:10:18: site[0].rule[0].stale_if_error: found 60, expected a duration such as \"10s\", \"500ms\", \
         \"5m\", \"24h\"\n  hint: add a unit: \"60s\"",
    );
    check_rule(
        "jitter = 10",
        "larder.toml:6:10: site[0].rule[0].jitter: found 10, expected a percentage such as \"10%\", \"0%\"\n  hint: did \
         you mean \"10%\"?",
    );
}

#[test]
fn nothing_about_refreshing_is_used_where_the_cache_is_off() {
    let keys = [
        "stale_while_revalidate",
        "stale_if_error",
        "refresh_ahead",
        "jitter",
        "collapse_wait",
        "min_uses",
        "head",
    ];
    let values = ["\"1s\"", "\"1s\"", "true", "\"1%\"", "\"1s\"", "2", "\"pass\""];
    for (key, value) in keys.iter().zip(values) {
        let checked =
            good(&format!("{SITE}[[site.rule]]\npath = \"/a\"\ncache = \"off\"\n{key} = {value}\n"));
        let warnings: Vec<_> = checked.warnings.iter().map(|warning| warning.key.clone()).collect();
        assert_eq!(warnings, [format!("site[0].rule[0].{key}")]);
    }
}

#[test]
fn unknown_words_name_the_nearest() {
    check_rule(
        "set_cookie = \"gaurd\"\nrequest_directives = \"honor\"\nignore = [\"no_store\", \"expires\"]",
        "larder.toml:6:14: site[0].rule[0].set_cookie: found \"gaurd\", expected \"guard\" or \"store\" or \"strip\" or \
         \"bypass\"\n  hint: did you mean \"guard\"?\n\
         larder.toml:7:22: site[0].rule[0].request_directives: found \"honor\", expected \"guarded\" or \"honour\" or \
         \"ignore\"\n  hint: did you mean \"honour\"?\n\
         larder.toml:8:11: site[0].rule[0].ignore[0]: found \"no_store\", expected \"private\" or \"no-store\" or \"vary\" \
         or \"authorization\" or \"set-cookie\"\n  hint: did you mean \"no-store\"?\n\
         larder.toml:8:23: site[0].rule[0].ignore[1]: found \"expires\", expected \"private\" or \"no-store\" or \"vary\" or \
         \"authorization\" or \"set-cookie\"",
    );
    check_rule(
        "setcookie = \"guard\"\nx_accel_expire = false\nstale_if_dead = 5\nlanguage_selection = \"true\"",
        "larder.toml:6:1: site[0].rule[0].setcookie: unknown key \"setcookie\"\n  hint: did you mean \"set_cookie\"?\n\
         larder.toml:7:1: site[0].rule[0].x_accel_expire: unknown key \"x_accel_expire\"\n  hint: did you mean \
         \"x_accel_expires\"?\n\
         larder.toml:8:17: site[0].rule[0].stale_if_dead: found 5, expected a duration such as \"10s\", \"500ms\", \
         \"5m\", \"24h\"\n  hint: add a unit: \"5s\"\n\
         larder.toml:9:22: site[0].rule[0].language_selection: found \"true\", expected true or false\n  hint: leave \
         the quotes out",
    );
}

#[test]
fn a_target_and_a_session_cookie_have_names_that_can_be_meant() {
    check_rule(
        "targets = [\"Cache-Control\", \"Set-Cookie\", \"Surrogate-Control\"]\nsession_cookies = [\"a*b\", \"a b\"]",
        "larder.toml:6:12: site[0].rule[0].targets[0]: found \"Cache-Control\", expected a targeted field's name such as \
         \"CDN-Cache-Control\", \"Larder-Cache-Control\"\n  hint: it is what a targeted field replaces, and is read \
         anyway\n\
         larder.toml:6:29: site[0].rule[0].targets[1]: found \"Set-Cookie\", expected a targeted field's name such as \
         \"CDN-Cache-Control\", \"Larder-Cache-Control\"\n  hint: it means something else: a targeted field has the \
         directives of Cache-Control under its own name\n\
         larder.toml:6:43: site[0].rule[0].targets[2]: found \"Surrogate-Control\", expected a targeted field's name such \
         as \"CDN-Cache-Control\", \"Larder-Cache-Control\"\n  hint: it has a key of its own: `surrogate_control`\n\
         larder.toml:7:20: site[0].rule[0].session_cookies[0]: found \"a*b\", expected a session cookie's name such as \
         \"PHPSESSID\", \"*sess*\"\n  hint: a `*` stands at the ends only\n\
         larder.toml:7:27: site[0].rule[0].session_cookies[1]: found \"a b\", expected a session cookie's name such as \
         \"PHPSESSID\", \"*sess*\"",
    );
}

#[test]
fn each_rule_that_is_ignored_is_warned_about_where_it_is() {
    let checked = good(&format!(
        "[defaults]\nignore = \"vary\"\n{SITE}ignore = []\n[[site.rule]]\npath = \"/a\"\nignore = [\"private\", \
         \"no-store\", \"authorization\", \"set-cookie\"]\n[[site.rule]]\ncache = \"off\"\nignore = \"private\"\n"
    ));
    let warnings: Vec<_> = checked.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings.join("\n"),
        "larder.toml:2:10: defaults.ignore: the rule for \"vary\" does not hold here\n  hint: more than the request's \
         fields decided what was sent: others get it all the same\n\
         larder.toml:10:11: site[0].rule[0].ignore[0]: the rule for \"private\" does not hold here\n  hint: what the \
         origin made for one visitor is stored, and given to others\n\
         larder.toml:10:22: site[0].rule[0].ignore[1]: the rule for \"no-store\" does not hold here\n  hint: what the \
         origin wants kept nowhere is stored, and given to others\n\
         larder.toml:10:34: site[0].rule[0].ignore[2]: the rule for \"authorization\" does not hold here\n  hint: what \
         one client may see by its credentials is stored, and given to others\n\
         larder.toml:10:51: site[0].rule[0].ignore[3]: the rule for \"set-cookie\" does not hold here\n  hint: a cookie \
         that starts a session may be given to others, who are then in it together\n\
         larder.toml:13:10: site[0].rule[1].ignore: it is not used\n  hint: `cache` is \"off\" here"
    );
}

#[test]
fn each_place_with_a_ttl_says_which_cookies_keep_a_request_from_it() {
    let checked = good(
        r#"[defaults]
ttl = "1s"
[origins.app]
servers = "http://127.0.0.1:3000"
[[site]]
origin = "app"
[[site.rule]]
path = "/a"
key = { cookies = ["theme"] }
[[site.rule]]
path = "/b"
ttl = "5s"
cookies = "ignore"
[[site.rule]]
path = "/c"
override_ttl = { 404 = "5s" }
session_cookies = ["default", "wiki*", "sid"]
harmless_cookies = []
[[site.rule]]
path = "/d"
ttl = "5s"
request = { remove = ["Cookie"] }
[[site.rule]]
path = "/e"
cache = "off"
[[site.rule]]
path = "/f"
ttl = "5s"
harmless_cookies = ["default", "lang", "a", "b", "c", "d", "e"]
"#,
    );
    let notes: Vec<_> = checked.notes.iter().map(ToString::to_string).collect();
    let every = "every cookie keeps a request from it, but those of analytics, advertising and consent";
    let expected = [
        format!("larder.toml:2:7: defaults.ttl: {every}; \"theme\", in the key, make copies of their own"),
        "larder.toml:2:7: defaults.ttl: of all cookies only those that larder knows as sessions, \"*wiki*\", \"sid\" \
         keep a request from it"
            .to_owned(),
        format!("larder.toml:2:7: defaults.ttl: {every}"),
        "larder.toml:12:7: site[0].rule[1].ttl: no cookie keeps a request from it: `cookies` is \"ignore\"".to_owned(),
        "larder.toml:16:16: site[0].rule[2].override_ttl: of all cookies only those that larder knows as sessions, \
         \"*wiki*\", \"sid\" keep a request from it"
            .to_owned(),
        "larder.toml:21:7: site[0].rule[3].ttl: no cookie keeps a request from it: `request` removes them".to_owned(),
        format!("larder.toml:28:7: site[0].rule[5].ttl: {every}, \"lang\", \"a\", \"b\", \"c\", \"d\" and 1 more"),
    ];
    assert_eq!(notes, expected);
    assert_eq!(checked.warnings, []);
}

#[test]
fn storing_cookies_for_all_is_warned_about() {
    let warned = good(
        r#"[origins.app]
servers = "http://127.0.0.1:3000"
[[site]]
origin = "app"
set_cookie = "store"
[[site.rule]]
path = "/a"
set_cookie = "strip"
"#,
    )
    .warnings;
    let said: Vec<_> = warned.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "larder.toml:5:14: site[0].set_cookie: cookies that one client is sent are stored here, and given to all others\n  \
          hint: a cookie that starts a session may be given to others, who are then in it together"
        ]
    );
}
