//! Stores, and which of them a response goes to: what is refused, what is warned about, what it comes to.

use super::errors::check_rule;
use super::*;
use crate::{ByteSize, Settings};

/// Stores named `pages` and `media`, and the site that uses the first.
const STORES: &str = "[stores.pages]\n[stores.media]\n[origins.app]\nservers = \"http://127.0.0.1:3000\"\n\
                      [[site]]\norigin = \"app\"\nstore = \"pages\"\n";

#[test]
fn a_place_names_a_store_and_what_goes_there() {
    check_rule(
        "place = [{ type = \"video\", min_size = \"1M\" }, { status = [], store = \"defualt\" }, { store = 1 }, 1]",
        "larder.toml:6:10: site[0].rule[0].place[0].store: missing key \"store\"\n\
         larder.toml:6:19: site[0].rule[0].place[0].type: found \"video\", expected a media type pattern such as \
         \"video/*\", \"application/json\", \"*/*+xml\"\n  hint: did you mean \"video/*\"?\n\
         larder.toml:6:39: site[0].rule[0].place[0].min_size: found \"1M\", expected a size such as \"512MiB\", \
         \"64KiB\", \"2GB\"\n  hint: did you mean \"1MiB\"?\n\
         larder.toml:6:58: site[0].rule[0].place[1].status: found an empty list, expected something to match\n  \
         hint: leave `status` out to match any\n\
         larder.toml:6:70: site[0].rule[0].place[1].store: no store is named \"defualt\"\n  hint: did you mean \
         \"default\"?\n\
         larder.toml:6:93: site[0].rule[0].place[2].store: found 1, expected a name such as \"app\", \"big-files\"\n\
         larder.toml:6:98: site[0].rule[0].place[3]: found 1, expected a table",
    );
    check_rule(
        "place = { store = \"default\" }",
        "larder.toml:6:9: site[0].rule[0].place: found a table, expected a list of tables\n  hint: write \
         [[site.rule.place]]: there may be several",
    );
    check_rule(
        "place = [{ types = \"a/b\", store = \"default\" }]",
        "larder.toml:6:12: site[0].rule[0].place[0].types: unknown key \"types\"\n  hint: did you mean \"type\"?",
    );
}

#[test]
fn places_are_taken_whole_from_the_first_that_has_them() {
    let config = good(&format!(
        "{STORES}place = [{{ type = [\"Video/*\", \"a/b\"], min_size = \"1MiB\", status = [200, \"203-206\"], store = \
         \"media\" }}, {{ store = \"default\" }}]\n[[site.rule]]\npath = \"/a\"\n[[site.rule]]\npath = \
         \"/b\"\nplace = []\n"
    ))
    .config;
    let site = &config.sites[0];
    let resolve = |rule: usize| {
        Settings::resolve(Some(&site.rules[rule].settings), &site.settings, &config.defaults.settings).place
    };
    let places = resolve(0);
    assert_eq!(places.len(), 2);
    let types: Vec<_> = places[0].types.iter().map(|pattern| pattern.as_str()).collect();
    let statuses: Vec<_> = places[0].statuses.iter().map(ToString::to_string).collect();
    assert_eq!((types, statuses), (vec!["video/*", "a/b"], vec!["200".to_owned(), "203-206".to_owned()]));
    assert_eq!(
        (places[0].min_size, places[0].store.as_str(), places[1].store.as_str()),
        (Some(ByteSize(1 << 20)), "media", "default")
    );
    assert!(resolve(1).is_empty());
}

#[test]
fn stores_and_places_that_nothing_reaches_are_warned_about() {
    let checked = good(&format!(
        "{STORES}place = [{{ store = \"default\" }}, {{ type = \"a/b\", store = \"pages\" }}]\n[[site.rule]]\npath = \
         \"/a\"\ncache = \"off\"\nplace = [{{ type = \"a/b\", store = \"pages\" }}]\n"
    ));
    let warnings: Vec<_> = checked.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings.join("\n"),
        "larder.toml:2:9: stores.media: it is not used by any site\n\
         larder.toml:8:33: site[0].place[1]: this entry is never reached: place[0] takes every response\n  hint: the \
         first entry that matches decides: put the general ones last\n\
         larder.toml:12:9: site[0].rule[0].place: it is not used\n  hint: `cache` is \"off\" here"
    );
    let by_place = format!("{STORES}place = [{{ type = \"a/b\", store = \"media\" }}]\n");
    assert_eq!(good(&by_place).warnings, []);
}
