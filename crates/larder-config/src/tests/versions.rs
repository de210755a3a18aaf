//! Versions of rules: the settings that are read, and what is refused or warned about.

use std::time::Duration;

use super::*;
use crate::{Settings, ValueKeyPart, Versions};

/// A store with values in Redis, and a rule; `rule` are lines of it.
fn config(store: &str, rule: &str) -> String {
    format!(
        "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n[stores.default]\n{store}\n[[site]]\nhosts = [\"example.com\"]\n\
         origin = \"app\"\n[[site.rule]]\n{rule}\n"
    )
}

fn read(store: &str, rule: &str) -> (Versions, String) {
    let checked = good(&config(store, rule));
    assert_eq!(checked.warnings, []);
    let (config, site) = (&checked.config, &checked.config.sites[0]);
    let resolved =
        Settings::resolve(Some(&site.rules[0].settings), &site.settings, &config.defaults.settings);
    let versions = resolved.versions.clone().unwrap();
    let server = config.server_of_versions(&resolved, &versions).unwrap().place.clone();
    (versions, format!("{server:?}"))
}

const STORE: &str = "redis = { url = \"redis://store\", key = \"{url}:version={version}\" }";

#[test]
fn a_hash_has_one_field_or_several_and_keys_stand_for_themselves() {
    let pages = format!("[stores.pages]\n{STORE}");
    let (of_field, server) =
        read(&pages, "store = \"pages\"\nversions = { hash = \"v\", field = \"{target}\" }");
    assert_eq!(
        (of_field.places.len(), of_field.timeout, of_field.write),
        (1, Duration::from_millis(200), false)
    );
    assert_eq!(of_field.places[0].field.as_ref().unwrap().parts(), [ValueKeyPart::Target]);
    assert!(server.contains("store"), "{server}");
    let (of_fields, server) = read(
        "",
        "versions = { redis = \"redis://own\", hash = \"v\", fields = [\"a\", \"{path}\"], write = true }",
    );
    assert_eq!((of_fields.places.len(), of_fields.write), (2, true));
    assert!(server.contains("own"), "{server}");
    let fleet = "[fleet]\nredis = \"redis://fleet\"";
    let (of_keys, server) = read(fleet, "versions = { keys = [\"a\", \"{host}\"], timeout = \"1s\" }");
    assert!(of_keys.places.iter().all(|place| place.field.is_none()));
    assert!(server.contains("fleet"), "{server}");
}

#[test]
fn a_rule_takes_back_what_its_site_says() {
    let site = "[[site]]\nversions = { redis = \"redis://a\", keys = [\"v\"] }\n";
    let checked = good(&config("", "versions = \"off\"").replace("[[site]]\n", site));
    let site = &checked.config.sites[0];
    let resolve =
        |rule| Settings::resolve(rule, &site.settings, &checked.config.defaults.settings).versions.is_some();
    assert_eq!((resolve(Some(&site.rules[0].settings)), resolve(None)), (false, true));
}

#[test]
fn what_says_too_little_or_too_much_is_told_what_to_write() {
    let check = |versions: &str, said: &str| {
        let told = printed(&config("", &format!("versions = {versions}")));
        assert!(told.contains(said), "{versions}: {told}");
    };
    let hint = "write versions = { hash = \"resource_versions\", field = \"{target}\" } or versions = { keys = [\"ver:{target}\"] }";
    check("{}", "where the versions lie is missing");
    check("{ write = true }", hint);
    check("{ hash = \"v\" }", "which field of the hash holds the version of a request is missing");
    check("{ field = \"{target}\" }", "a field without a hash is nowhere");
    check("{ hash = \"v\", field = \"a\", fields = [\"b\"] }", "`field` and `fields` say the same");
    check("{ hash = \"v\", field = \"a\", keys = [\"b\"] }", "two ways");
    check("{ keys = [] }", "at least one");
    check("{ keys = [\"{version}\"] }", "a version has no version itself");
    check("{ keys = [\"{targt}\"] }", "did you mean {target}?");
    check("\"on\"", "a table, or \\\"off\\\"".replace("\\", "").as_str());
    check("{ keys = [\"a\"] }", "the server of the versions is missing");
    check("{ redis = \"redis://a\", keys = [\"a\"], timeout = \"1m\" }", "5ms");
}

#[test]
fn a_store_has_a_place_for_versions_or_says_so() {
    let versions = "versions = { redis = \"redis://a\", keys = [\"v\"] }";
    assert!(
        printed(&config("files = \"html\"", versions)).contains("plain files have no place for versions")
    );
    let told = printed(&config(STORE, "ttl = \"1s\""));
    assert!(
        told.contains("the key of the store's values has {version}, and the rule has no versions"),
        "{told}"
    );
    // Rules beside it have none either, and are told of once.
    assert_eq!(told.matches("has no versions").count(), 1, "{told}");
    let by_cookie = "versions = { redis = \"redis://a\", keys = [\"v:{cookie:lang}\"] }";
    let warnings = |rule: &str| good(&config("", rule)).warnings.len();
    assert_eq!((warnings(by_cookie), warnings(&format!("{by_cookie}\nkey.cookies = [\"lang\"]"))), (1, 0));
    let unversioned = good(&config("redis = { url = \"redis://a\", key = \"{target}\" }", versions));
    let warned = unversioned.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(warned.contains("a new version leads to the same values of the store"), "{warned}");
}
