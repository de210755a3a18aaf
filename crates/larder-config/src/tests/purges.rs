//! Who may purge, and the fields that carry tags: what holds at a site, and what is printed about mistakes.

use super::errors::{check, check_rule, check_top};
use super::*;
use crate::{AbsentStatus, PurgeRules, PurgeSetting};

/// `lines` in a site, which begins on line 5.
#[track_caller]
fn check_site(lines: &str, expected: &str) {
    check(&format!("{SITE}{lines}\n"), expected);
}

/// The table that is open at the first site.
#[track_caller]
fn rules(text: &str) -> PurgeRules {
    let config = good(text).config;
    match config.purge(&config.sites[0]) {
        PurgeSetting::Open(rules) => rules.clone(),
        other => panic!("{other:?}"),
    }
}

fn warnings(text: &str) -> Vec<String> {
    good(text).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn purges_are_closed_unless_the_site_or_the_defaults_say_who_may() {
    let said = |defaults: &str, site: &str| {
        let config = good(&format!("[defaults]\n{defaults}\n{SITE}{site}\n")).config;
        match config.purge(&config.sites[0]) {
            PurgeSetting::Closed => "closed".to_owned(),
            PurgeSetting::Pass => "pass".to_owned(),
            PurgeSetting::Open(rules) => format!("soft {}, patterns {}", rules.soft, rules.patterns),
        }
    };
    let soft = "purge = { token = \"0123456789abcdef\", soft = true }";
    let exact = "purge = { from = \"192.0.2.7\", patterns = false }";
    assert_eq!(said("", ""), "closed");
    assert_eq!(said(soft, ""), "soft true, patterns true");
    assert_eq!(said("", exact), "soft false, patterns false");
    assert_eq!(said(soft, exact), "soft false, patterns false", "a table is taken whole");
    assert_eq!(said(soft, "purge = \"pass\""), "pass");
    assert_eq!(said(soft, "purge = \"closed\""), "closed");
    assert_eq!(said("purge = \"pass\"", ""), "pass");
}

#[test]
fn a_table_has_its_conditions_and_what_is_left_out_has_its_default() {
    let table = rules(&format!(
        "{SITE}[site.purge]\nfrom = [\"192.0.2.7\", \"10.0.0.0/8\"]\ntoken = \"0123456789abcdef\"\n\
         header = \"X-Purge-Key: 5f2c81d09b7ae346\"\nsoft = true\nlocation = \"/purge/\"\npatterns = false\n\
         absent = 412\nresponses = true\n"
    ));
    let header = table.header.as_ref().unwrap();
    assert!(table.from.len() == 2 && table.from[1].contains("10.1.2.3".parse().unwrap()));
    assert_eq!(table.token.as_ref().unwrap().expose(), "0123456789abcdef");
    assert_eq!((header.name.as_str(), header.value.expose()), ("x-purge-key", "5f2c81d09b7ae346"));
    assert_eq!((table.soft, table.patterns, table.responses), (true, false, true));
    assert_eq!(table.location.as_ref().unwrap().as_str(), "/purge");
    assert_eq!((table.absent, table.absent.code().as_u16()), (AbsentStatus::PreconditionFailed, 412));

    let table = rules(&format!("{SITE}purge.token = \"0123456789abcdef\"\n"));
    assert!(table.from.is_empty() && table.header.is_none() && table.location.is_none());
    assert_eq!((table.soft, table.patterns, table.responses), (false, true, false));
    assert_eq!(table.absent, AbsentStatus::Ok);
}

#[test]
fn tags_are_in_eight_fields_unless_others_are_named() {
    let said = |defaults: &str, site: &str| {
        let config = good(&format!("[defaults]\n{defaults}\n{SITE}{site}\n")).config;
        let tags = config.tags(&config.sites[0]);
        let names: Vec<_> = tags.fields.iter().map(|name| name.as_str().to_owned()).collect();
        (names.join(" "), tags.pass)
    };
    let known =
        "surrogate-key xkey cache-tag cache-tags x-cache-tags purge-cache-tags edge-cache-tag x-magento-tags";
    assert_eq!(said("", ""), (known.to_owned(), false));
    assert_eq!(said("tags = \"X-Tags\"", ""), ("x-tags".to_owned(), false));
    assert_eq!(said("tags = \"X-Tags\"", "tags = []"), (String::new(), false));
    assert_eq!(said("", "tags = [\"default\", \"CDN-Tag\", \"XKey\"]"), (format!("{known} cdn-tag"), false));
    assert_eq!(said("", "tags = { fields = [\"CDN-Tag\"], pass = true }"), ("cdn-tag".to_owned(), true));
    assert_eq!(
        said("tags = \"X-Tags\"", "tags = { pass = true }"),
        (known.to_owned(), true),
        "a table is whole"
    );
}

#[test]
fn a_table_without_a_condition_is_refused() {
    let hint = "\n  hint: add `token`, `header` or `from`, or write \"closed\"";
    check_site("purge = {}", &format!("larder.toml:5:9: site[0].purge: it does not say who may purge{hint}"));
    check_site(
        "purge = { soft = true, location = \"/purge\" }",
        &format!("larder.toml:5:9: site[0].purge: it does not say who may purge{hint}"),
    );
    check_top(
        "[defaults.purge]\nresponses = true",
        &format!("larder.toml:1:1: defaults.purge: it does not say who may purge{hint}"),
    );
    check_site(
        "purge = { from = [], token = \"0123456789abcdef\" }",
        "larder.toml:5:18: site[0].purge.from: found an empty list, expected at least one network\n  hint: no request \
         would meet it: name a network, or write \"closed\"",
    );
}

#[test]
fn every_mistake_in_a_table_is_printed_at_once_and_no_secret_is() {
    check_site(
        r#"[site.purge]
from = ["10.1.0.0/8"]
token = "hunter2"
header = "5f2c81d09b7ae346"
sft = true
location = "/"
patterns = "yes"
absent = 410
response = true"#,
        r#"
larder.toml:6:9: site[0].purge.from[0]: found "10.1.0.0/8", expected a network such as "10.0.0.0/8", "192.0.2.7", "fd00::/8"
  hint: did you mean "10.0.0.0/8"?
larder.toml:7:9: site[0].purge.token: found a text of 7 bytes, expected a secret such as the output of `openssl rand -hex 24`
  hint: 16 to 512 visible ASCII characters
larder.toml:8:10: site[0].purge.header: found a text without a colon, expected a field with a secret such as "X-Purge-Key: 5f2c81d09b7ae346"
  hint: write "NAME: VALUE"
larder.toml:9:1: site[0].purge.sft: unknown key "sft"
  hint: did you mean "soft"?
larder.toml:10:12: site[0].purge.location: found "/", expected a path to purge below such as "/purge", "/cache/purge"
  hint: every GET would be a purge: take a path that the site does not have
larder.toml:11:12: site[0].purge.patterns: found "yes", expected true or false
larder.toml:12:10: site[0].purge.absent: found 410, expected 200 or 404 or 412
larder.toml:13:1: site[0].purge.response: unknown key "response"
  hint: did you mean "responses"?
"#,
    );
    let expected = "expected a field with a secret such as \"X-Purge-Key: 5f2c81d09b7ae346\"";
    for (header, found, hint) in [
        (": 0123456789abcdef", "a field without a name", "write \"NAME: VALUE\""),
        ("X-Key:", "a field without a value", "16 to 512 ASCII characters without controls"),
        ("X-Key: hunter2", "a value of 7 bytes", "16 to 512 ASCII characters without controls"),
        (
            "Host: 0123456789abcdef",
            "a name that no such field can have",
            "the host decides the site (`hosts`), and goes on as it came",
        ),
    ] {
        check_site(
            &format!("purge = {{ header = \"{header}\" }}"),
            &format!("larder.toml:5:20: site[0].purge.header: found {found}, {expected}\n  hint: {hint}"),
        );
    }
    let config = good(&format!("{SITE}purge.header = \"X-Key: 0123456789abcdef\"\n")).config;
    assert!(!format!("{config:?}").contains("0123456789abcdef"));
}

#[test]
fn purge_is_a_word_or_a_table() {
    let expected = "expected \"closed\", \"pass\" or a table";
    check_site(
        "purge = \"0123456789abcdef\"",
        &format!(
            "larder.toml:5:9: site[0].purge: found another text, {expected}\n  hint: a secret belongs in a table: \
             {{ token = ... }}"
        ),
    );
    check_site(
        "purge = \"close\"",
        &format!(
            "larder.toml:5:9: site[0].purge: found another text, {expected}\n  hint: did you mean \"closed\"?"
        ),
    );
    check_site("purge = true", &format!("larder.toml:5:9: site[0].purge: found true, {expected}"));
}

#[test]
fn a_rule_has_no_purges_and_no_tags() {
    let places = "it belongs in `[defaults]` and `[[site]]`: purges";
    check_rule(
        "purge = \"pass\"\ntags = [\"xkey\"]\nlitespeed = true",
        &format!(
            "larder.toml:6:1: site[0].rule[0].purge: unknown key \"purge\"\n  hint: {places}\n\
             larder.toml:7:1: site[0].rule[0].tags: unknown key \"tags\"\n  hint: {places}\n\
             larder.toml:8:1: site[0].rule[0].litespeed: unknown key \"litespeed\"\n  hint: it belongs in `[[site]]`"
        ),
    );
    check_top(
        "[defaults]\nlitespeed = true",
        "larder.toml:2:1: defaults.litespeed: unknown key \"litespeed\"\n  hint: it belongs in `[[site]]`",
    );
}

#[test]
fn fields_with_a_meaning_of_their_own_carry_no_tags() {
    let expected = "expected a tag field's name such as \"Surrogate-Key\", \"X-Tags\"";
    let meaning = "it means something else, and larder takes a tag field out of its answers";
    check_site(
        "tags = [\"xkey\", \"Vary\", \"Content-Type\", \"cache-groups\"]",
        &format!(
            "larder.toml:5:17: site[0].tags[1]: found \"Vary\", {expected}\n  hint: {meaning}\n\
             larder.toml:5:25: site[0].tags[2]: found \"Content-Type\", {expected}\n  hint: {meaning}\n\
             larder.toml:5:41: site[0].tags[3]: found \"cache-groups\", {expected}\n  hint: larder reads it already: a \
             purge names a cache group as a group"
        ),
    );
    check_site(
        "tags = { field = [\"xkey\"], fields = \"Cache-Control\", pass = 1 }",
        &format!(
            "larder.toml:5:10: site[0].tags.field: unknown key \"field\"\n  hint: did you mean \"fields\"?\n\
             larder.toml:5:37: site[0].tags.fields: found \"Cache-Control\", {expected}\n  hint: it is not a list of tags: \
             larder reads directives or a time in it\n\
             larder.toml:5:61: site[0].tags.pass: found 1, expected true or false"
        ),
    );
}

#[test]
fn an_address_that_strangers_may_have_is_warned_about() {
    let proxy = "behind a proxy that adds no Via, Forwarded or X-Forwarded-For, every client has such an address: add \
                 `token` or `header`";
    let from = "from = [\"0.0.0.0/0\", \"::/0\", \"192.0.2.7\", \"127.0.0.1\", \"10.0.0.0/8\", \"fd00::/8\"]";
    let anybody = "every client could purge: name the networks that may, or add `token` or `header`";
    assert_eq!(
        warnings(&format!("{SITE}[site.purge]\n{from}\n")),
        [
            format!("larder.toml:6:9: site[0].purge.from[0]: 0.0.0.0/0 is every address\n  hint: {anybody}"),
            format!("larder.toml:6:22: site[0].purge.from[1]: ::/0 is every address\n  hint: {anybody}"),
            format!(
                "larder.toml:6:43: site[0].purge.from[3]: 127.0.0.1/32 may purge without a secret\n  hint: {proxy}"
            ),
            format!(
                "larder.toml:6:56: site[0].purge.from[4]: 10.0.0.0/8 may purge without a secret\n  hint: {proxy}"
            ),
            format!(
                "larder.toml:6:70: site[0].purge.from[5]: fd00::/8 may purge without a secret\n  hint: {proxy}"
            ),
        ]
    );
    for secret in ["token = \"0123456789abcdef\"", "header = \"X-Key: 0123456789abcdef\""] {
        assert_eq!(
            warnings(&format!("[defaults.purge]\n{secret}\nfrom = [\"::1\", \"::/0\"]\n{SITE}")),
            [
                "larder.toml:3:16: defaults.purge.from[1]: ::/0 is every address\n  hint: it is no condition: leave `from` \
                 out, or name the networks that may purge"
            ]
        );
    }
}

#[test]
fn litespeed_needs_an_origin() {
    let text = "[[site]]\nroot = \"public\"\nlitespeed = true\n";
    assert_eq!(
        warnings(text),
        [
            "larder.toml:3:13: site[0].litespeed: it is not used\n  hint: the site has no origin that could send these fields"
        ]
    );
    assert_eq!(warnings(&format!("{SITE}litespeed = true\n")), [""; 0]);
}

#[test]
fn purges_under_way_are_limited() {
    assert_eq!(good(SITE).config.limits.purges, 1024);
    assert_eq!(good(&format!("[limits]\npurges = 65536\n{SITE}")).config.limits.purges, 65536);
    check_top(
        "[limits]\npurges = 65537",
        "larder.toml:2:10: limits.purges: found 65537, expected 1 to 65536",
    );
    check_top("[limits]\npurges = 0", "larder.toml:2:10: limits.purges: found 0, expected 1 to 65536");
}
