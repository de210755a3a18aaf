//! What rules are called, and where they stand.

use super::errors::check;
use super::*;

fn labels(rules: &str) -> Vec<String> {
    let checked = good(&format!("{SITE}{rules}"));
    checked.config.sites.first().map(crate::Site::labels).unwrap_or_default()
}

#[test]
fn a_rule_is_called_by_its_name_else_by_what_it_asks_for() {
    let rules = r#"
[[site.rule]]
name = "assets"
path = ["/assets/*", "*.css"]
[[site.rule]]
path = ["/blog/*", "/news/*", "/tags/*"]
path_regex = "^/b[0-9]+$"
[[site.rule]]
path_regex = "^/user/[0-9]+$"
[[site.rule]]
methods = ["QUERY", "HEAD"]
[[site.rule]]
header = { "X-Preview" = true }
[[site.rule]]
cookie = { theme = "dark" }
[[site.rule]]
query = { size = true }
[[site.rule]]
ttl = "1s"
"#;
    let told =
        ["assets", "/blog/* +3", "/^/user/[0-9]+$/", "method QUERY", "field x-preview", "cookie theme"];
    assert_eq!(labels(rules), [&told[..], &["parameter size", "every request"]].concat());
}

#[test]
fn no_two_labels_of_a_site_are_alike_and_none_is_longer_than_a_line() {
    let long = format!("/{}*", "a".repeat(100));
    let rules = format!(
        "[[site.rule]]\npath = \"/a\"\nmethods = [\"GET\"]\n[[site.rule]]\npath = \"/a\"\n[[site.rule]]\npath = \"{long}\"\n"
    );
    assert_eq!(labels(&rules), ["/a", "/a (2)", &format!("/{}...", "a".repeat(63))]);
}

#[test]
fn a_rule_knows_its_line() {
    let checked = good(&format!("{SITE}[[site.rule]]\nttl = \"1s\"\n\n[[site.rule]]\n"));
    let lines: Vec<_> =
        checked.config.sites.iter().flat_map(|site| &site.rules).map(|rule| rule.line).collect();
    assert_eq!(lines, [Some(5), Some(8)]);
}

#[test]
fn two_rules_of_a_site_have_different_names_and_a_name_is_plain() {
    check(
        &format!(
            "{SITE}[[site.rule]]\nname = \"a\"\n[[site.rule]]\nname = \"b c\"\n[[site.rule]]\nname = \"a\"\n\
             [[site]]\nhosts = [\"other.example\"]\norigin = \"app\"\n[[site.rule]]\nname = \"a\"\n"
        ),
        r#"
larder.toml:8:8: site[0].rule[1].name: found "b c", expected a name such as "assets", "blog-pages"
  hint: 1 to 64 letters, digits, "-", "_" and "."
larder.toml:10:8: site[0].rule[2].name: rule[0] (line 6) is named "a" already
  hint: a name tells a rule from all others of its site
"#,
    );
}
