//! What is said about templates and fragments: how it resolves, what is refused, what is warned about.

use std::time::Duration;

use super::errors::{check_rule, check_top};
use super::*;
use crate::{AssembleMode, AssembleSetting, ByteSize, Escape, Fragments, OnError, Resolved, Settings};

/// What holds in a site with these lines.
fn resolved(lines: &str) -> Resolved {
    let config = good(&format!("{SITE}{lines}\n")).config;
    Settings::resolve(None, &config.sites[0].settings, &config.defaults.settings)
}

fn warnings(lines: &str) -> String {
    let checked = good(&format!("{SITE}{lines}\n"));
    checked.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_word_is_a_table_with_that_language_and_the_other_keys_have_their_defaults() {
    let types = |setting: &AssembleSetting| {
        setting.types.iter().map(|one| one.as_str().to_owned()).collect::<Vec<_>>()
    };
    for (lines, language) in [
        ("", AssembleMode::Auto),
        ("assemble = \"auto\"", AssembleMode::Auto),
        ("assemble = \"ssi\"", AssembleMode::Ssi),
        ("assemble = \"esi\"", AssembleMode::Esi),
        ("assemble = \"off\"", AssembleMode::Off),
        ("assemble = {}", AssembleMode::Auto),
        ("assemble = { language = \"esi\" }", AssembleMode::Esi),
    ] {
        let said = resolved(lines).assemble;
        assert_eq!((said.language, said.escape, said.strict), (language, Escape::Html, false), "{lines}");
        assert_eq!(types(&said), ["text/html"], "{lines}");
    }
    let all = "assemble = { language = \"ssi\", types = [\"Text/HTML\", \"a/b\"], escape = \"none\", strict = true }";
    let said = resolved(all).assemble;
    assert_eq!((said.language, said.escape, said.strict), (AssembleMode::Ssi, Escape::Nothing, true));
    assert_eq!(types(&said), ["text/html", "a/b"]);
}

#[test]
fn fragments_have_limits_unless_others_are_said() {
    let said = resolved("").fragments;
    let seconds = Duration::from_secs;
    assert_eq!(said, Fragments::default());
    assert_eq!((said.timeout, said.page_timeout), (seconds(10), seconds(60)));
    assert_eq!((said.depth, said.count, said.at_once), (10, 1000, 16));
    assert_eq!((said.page_size, said.on_error), (ByteSize(64 << 20), OnError::Fail));
    assert!(!said.silent && !said.error_bodies && said.hosts.is_empty());
    let said = resolved(
        "fragments = { timeout = \"1s\", depth = 2, on_error = \"omit\", silent = true, hosts = \"A.example\" }",
    );
    let said = said.fragments;
    assert_eq!((said.timeout, said.depth, said.on_error), (seconds(1), 2, OnError::Omit));
    assert_eq!((said.count, said.page_timeout), (1000, seconds(60)), "other keys have their defaults");
    assert_eq!(said.hosts.iter().map(|host| host.as_str()).collect::<Vec<_>>(), ["a.example"]);
}

#[test]
fn rules_sites_and_defaults_say_it_and_tables_are_taken_whole() {
    let config = good(
        r#"[defaults]
assemble = "esi"
fragments = { depth = 3, count = 7 }
[origins.app]
servers = "http://127.0.0.1:3000"
[[site]]
origin = "app"
fragments = { depth = 4 }
[[site.rule]]
path = "/a"
assemble = { language = "ssi", strict = true }
[[site.rule]]
path = "/b"
[site.rule.fragments]
silent = true
"#,
    )
    .config;
    let site = &config.sites[0];
    let of = |rule: Option<usize>| {
        let rule = rule.map(|index| &site.rules[index].settings);
        let resolved = Settings::resolve(rule, &site.settings, &config.defaults.settings);
        let Resolved { assemble, fragments, .. } = resolved;
        ((assemble.language, assemble.strict), (fragments.depth, fragments.count, fragments.silent))
    };
    assert_eq!(of(None), ((AssembleMode::Esi, false), (4, 1000, false)));
    assert_eq!(of(Some(0)), ((AssembleMode::Ssi, true), (4, 1000, false)));
    assert_eq!(of(Some(1)), ((AssembleMode::Esi, false), (10, 1000, true)));
}

#[test]
fn what_is_no_choice_is_refused_with_the_nearest() {
    let expected = "expected \"auto\" or \"ssi\" or \"esi\" or \"off\", or a table";
    for (value, hint) in [
        ("\"sssi\"", "did you mean \"ssi\"?"),
        ("\"on\"", "write the language of the templates: \"ssi\" or \"esi\""),
        ("true", "write the language of the templates: \"ssi\" or \"esi\""),
        ("false", "did you mean \"off\"?"),
    ] {
        check_rule(
            &format!("assemble = {value}"),
            &format!("larder.toml:6:12: site[0].rule[0].assemble: found {value}, {expected}\n  hint: {hint}"),
        );
    }
    check_rule(
        "assemble = [\"ssi\"]",
        &format!("larder.toml:6:12: site[0].rule[0].assemble: found a list, {expected}"),
    );
    check_rule(
        "assemble = { langauge = \"ssi\", types = [], escape = \"xml\", strict = 1 }",
        "larder.toml:6:14: site[0].rule[0].assemble.langauge: unknown key \"langauge\"\n  hint: did you mean \
         \"language\"?\n\
         larder.toml:6:40: site[0].rule[0].assemble.types: found an empty list, expected at least one media type\n  \
         hint: write language = \"auto\" for templates that say so alone\n\
         larder.toml:6:53: site[0].rule[0].assemble.escape: found \"xml\", expected \"html\" or \"none\"\n\
         larder.toml:6:69: site[0].rule[0].assemble.strict: found 1, expected true or false",
    );
    check_rule(
        "assemble = { language = \"ssi\", types = \"text/*\" }",
        "larder.toml:6:40: site[0].rule[0].assemble.types: found \"text/*\", expected a media type without \
         parameters such as \"text/html\", \"application/xhtml+xml\"\n  hint: one type, not a pattern",
    );
}

#[test]
fn limits_of_a_page_are_bounded_and_never_zero() {
    for (said, column, key, expected) in [
        ("timeout = \"0s\"", 25, "timeout", "found \"0s\", expected \"1ms\" to \"10m\""),
        ("page_timeout = \"2h\"", 30, "page_timeout", "found \"2h\", expected \"1ms\" to \"1h\""),
        ("depth = 0", 23, "depth", "found 0, expected 1 to 100"),
        ("count = 0", 23, "count", "found 0, expected 1 to 100000"),
        ("at_once = 0", 25, "at_once", "found 0, expected 1 to 1000"),
        ("page_size = 0", 27, "page_size", "found 0, expected \"1KiB\" to \"1024TiB\""),
        ("on_error = \"skip\"", 26, "on_error", "found \"skip\", expected \"fail\" or \"omit\""),
    ] {
        check_top(
            &format!("[defaults]\nfragments = {{ {said} }}"),
            &format!("larder.toml:2:{column}: defaults.fragments.{key}: {expected}"),
        );
    }
    check_rule(
        "fragments = { hosts = [\"a.example\", \"http://b.example\"] }",
        "larder.toml:6:37: site[0].rule[0].fragments.hosts[1]: found \"http://b.example\", expected a host such as \
         \"example.com\", \"*.example.com\"\n  hint: a host is written without a scheme",
    );
}

#[test]
fn what_has_no_effect_is_warned_about() {
    assert_eq!(
        warnings("assemble = { types = \"text/html\" }"),
        "larder.toml:5:22: site[0].assemble.types: it is not used\n  hint: types count under language = \"ssi\" or \
         \"esi\""
    );
    assert_eq!(
        warnings("assemble = \"off\"\nfragments = { depth = 2 }"),
        "larder.toml:6:13: site[0].fragments: it is not used\n  hint: `assemble` is \"off\" here"
    );
    assert_eq!(
        warnings("fragments = { timeout = \"2m\" }"),
        "larder.toml:5:25: site[0].fragments.timeout: timeout (2m) is never reached: page_timeout (1m) is less"
    );
    assert_eq!(warnings("fragments = { page_timeout = \"1s\" }"), "");
    assert_eq!(warnings("cache = \"off\"\nassemble = \"ssi\"\nfragments = { depth = 2 }"), "");
}

#[test]
fn a_host_of_fragments_without_a_site_is_warned_about() {
    let warned = |hosts: &str, fragments: &str| {
        let site = format!("[[site]]\norigin = \"app\"\n{hosts}\n");
        let checked = good(&format!(
            "[defaults]\nfragments = {{ hosts = {fragments} }}\n[origins.app]\nservers = \"http://127.0.0.1:3000\"\n{site}"
        ));
        checked.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let hosts = "hosts = [\"a.example\", \"*.b.example\"]";
    assert_eq!(warned(hosts, "[\"a.example\", \"c.b.example\", \"*.example\", \"*.d.b.example\"]"), "");
    assert_eq!(warned("", "[\"anything.example\"]"), "", "the site has every host");
    assert_eq!(
        warned(hosts, "[\"a.example\", \"b.example\"]"),
        "larder.toml:2:37: defaults.fragments.hosts[1]: no site has the host \"b.example\"\n  hint: fragments come from \
         sites of this config alone: add a [[site]] with this host"
    );
    assert_eq!(
        warned(hosts, "\"c.example\""),
        "larder.toml:2:23: defaults.fragments.hosts: no site has the host \"c.example\"\n  hint: fragments come from \
         sites of this config alone: add a [[site]] with this host"
    );
    let in_rule = good(&format!(
        "{SITE}hosts = \"a.example\"\n[[site.rule]]\npath = \"/x\"\nfragments.hosts = \"*.c.example\"\n"
    ));
    assert_eq!(in_rule.warnings.len(), 1);
    assert_eq!(in_rule.warnings[0].key, "site[0].rule[0].fragments.hosts");
}
