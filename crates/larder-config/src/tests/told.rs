//! What is kept of a config's text: no secret, and where things stand.

use proptest::prelude::*;

use super::*;
use crate::schema::Shape;
use crate::sections::all_sections;
use crate::told::sound::sounds_secret;
use crate::{DIFF_LINES_MAX, DiffKind, Difference, load};

fn told(text: &str) -> String {
    good(text).text.text
}

#[test]
fn every_kind_of_secret_is_cut_out_and_nothing_else() {
    let text = r#"# the "token" of last year: token = "0123456789abcdefg"; see # wiki
[admin]
token      = "change-me-change-me"   # not change-me-change-me2
view_token = 'look-only-look-only'
[origins.app]
servers = "http://127.0.0.1:3000"
[stores.a]
redis = "redis://larder:p%40ssw0rd-1@127.0.0.1:6379/0"   # redis://u:old@host
[stores.b.redis]
url = "unix:///run/redis.sock?db=1&user=me&pass=hunter22"
key = "x#{target}"
[[site]]
origin = "app"
purge = { header = "X-Purge-Key: 5f2c81d09b7ae346", token = """\
   \u0030123456789abcdef""" }
request = { set = { Authorization = "Basic YWRtaW46YWRtaW4=", X-Device = "phone" } }
[[site.rule]]
query = { api_key = "0123456789abcdef", page = "p@ssw0rd-1" }
"#;
    let shown = r#"# the "token" of last year: token = ***
[admin]
token      = "***"   # not ***2
view_token = "***"
[origins.app]
servers = "http://127.0.0.1:3000"
[stores.a]
redis = "redis://***@127.0.0.1:6379/0"   # redis://***@host
[stores.b.redis]
url = "unix:///run/redis.sock?db=1&user=***&pass=***"
key = "x#{target}"
[[site]]
origin = "app"
purge = { header = "x-purge-key: ***", token = "***"
 }
request = { set = { Authorization = "***", X-Device = "phone" } }
[[site.rule]]
query = { api_key = "***", page = "***" }
"#;
    assert_eq!(told(text), shown);
}

#[test]
fn every_key_that_is_a_secret_sounds_like_one_also_in_a_comment() {
    let is_secret = |shape: &Shape| matches!(shape, Shape::Text(text) if text.noun.contains("secret"));
    let mut count = 0;
    for section in all_sections() {
        for key in section.keys.iter().filter(|key| is_secret(&key.shape)) {
            assert!(sounds_secret(key.name) || key.name == "header", "{}", key.name);
            let line = match key.name {
                "header" => "# header = \"X-K: s3cret-s3cret-s3cret\"",
                name => &format!("#{name}=\"s3cret-s3cret-s3cret\""),
            };
            let shown = told(&format!("{line}\n{SITE}"));
            assert!(!shown.contains("s3cret") && shown.contains(key.name), "{shown}");
            count += 1;
        }
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn comments_without_secrets_stay_as_they_are() {
    for line in [
        "# servers = \"http://a\"",
        "# see https://a.example/x and @y",
        "#",
        "# a: b",
        "# header = { X-A = 1 }",
    ] {
        let text = format!("{line}\n{SITE}");
        assert_eq!(told(&text), text);
    }
}

#[test]
fn sites_and_rules_have_lines_and_their_names() {
    let text = "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n\n# a\n[[site]]\nhosts = \"a.example\"\n\
                origin = \"app\"\n\n[[site.rule]]\nname = \"assets\"\npath = \"/assets/*\"\n[site.rule.response]\n\
                remove = [\n  \"X-A\",\n]\n\n[[site.rule]]\npath = [\"/b\", \"/c\"]\n\n# b\n[[site]]\norigin = \"app\"\n\
                [site.key]\nsort = true\n";
    let text = good(text).text;
    let sites: Vec<_> = text.sites.iter().map(|place| (&*place.site, place.line, place.end)).collect();
    assert_eq!(sites, [("a.example", 5, 18), ("*", 21, 24)]);
    let rules: Vec<_> =
        text.rules.iter().map(|place| (&*place.site, &*place.rule, place.line, place.end)).collect();
    assert_eq!(rules, [("a.example", "assets", 9, 15), ("a.example", "/b +1", 17, 18)]);
    let inline = "origins = { app = { servers = \"http://a\" } }\nsite = [\n { origin = \"app\" },\n]\n";
    let text = good(inline).text;
    assert_eq!((text.sites[0].line, text.sites[0].end), (3, 3));
}

#[test]
fn a_larder_without_a_file_has_no_text() {
    let checked = crate::accelerate("http://127.0.0.1:3000", &crate::Flags::default()).unwrap();
    assert_eq!((checked.text.file.clone(), checked.text.text.as_str()), (None, ""));
    assert!(checked.text.sites.is_empty() && checked.text.difference().is_none());
}

#[test]
fn a_file_that_has_changed_is_told_line_by_line_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("larder.toml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    let admin = "[admin]\ntoken = \"change-me-change-me\"\n";
    write(&format!("{admin}{SITE}"));
    let running = load(&path).unwrap().text;
    assert_eq!(running.file.as_deref(), path.to_str());
    assert_eq!(running.difference(), None);
    let other = "[admin]\ntoken = \"another-another-1\"\nhosts = [\"a.example\"]\n";
    write(&format!("{other}{SITE}"));
    let Some(Difference::Changed { lines, left_out: 0 }) = running.difference() else { panic!() };
    let lines: Vec<_> = lines.iter().map(|line| (line.kind, line.line, line.text.as_str())).collect();
    let expected = [
        (DiffKind::Same, 1, "[admin]"),
        (DiffKind::Same, 2, "token = \"***\""),
        (DiffKind::Added, 3, "hosts = [\"a.example\"]"),
        (DiffKind::Same, 4, "[origins.app]"),
        (DiffKind::Same, 5, "servers = \"http://127.0.0.1:3000\""),
        (DiffKind::Same, 6, "[[site]]"),
    ];
    assert_eq!(lines, expected);
    write(&format!("{}{SITE}", admin.replace("change-me-change-me", "another-another-1")));
    assert_eq!(running.difference(), Some(Difference::Unseen));
    write(&format!("{admin}tokn = \"another-another-1\"\n{SITE}"));
    assert_eq!(running.difference(), Some(Difference::Unreadable));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(running.difference(), Some(Difference::Absent));
}

#[test]
fn a_secret_of_one_text_is_no_word_of_a_difference() {
    let text =
        |token: &str, comment: &str| good(&format!("[admin]\ntoken = \"{token}\"\n{SITE}# {comment}\n")).text;
    let old = text("0123456789abcdef", "soon fedcba9876543210");
    let new = text("fedcba9876543210", "it was 0123456789abcdef");
    let Difference::Changed { lines, .. } = old.difference_to(&new) else { panic!() };
    let changed: Vec<_> =
        lines.iter().filter(|line| line.kind != DiffKind::Same).map(|line| &*line.text).collect();
    assert_eq!(changed, ["# soon ***", "# it was ***"]);
    assert!(!format!("{old:?}").contains("0123456789abcdef"));
}

#[test]
fn a_difference_is_bounded() {
    let many = |word: &str| good(&format!("{SITE}{}", format!("# {word}\n").repeat(40_000))).text;
    let (old, new) = (many("old"), many("new"));
    let Difference::Changed { lines, left_out } = old.difference_to(&new) else { panic!() };
    assert_eq!((lines.len(), lines.len() + left_out), (DIFF_LINES_MAX, 80_003));
}

/// As it may stand in a config, and what a server or a client then has to know.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[!#-\\[\\]-~]{16,40}", "[a*]{16,20}", "[a-c]{16,18}"]
}

proptest! {
    #[test]
    fn no_secret_is_left(
        secrets in prop::collection::vec(secret(), 5),
        password in "[a-zA-Z0-9%*-]{8,20}",
        comment in "[a-z #=:\"@/]{0,20}",
        escapes in any::<bool>(),
    ) {
        let [token, view, purge, field, basic] = &*secrets else { unreachable!() };
        prop_assume!(token != view);
        let password = password.replace('%', "%25");
        let written = |secret: &str| match escapes {
            true => secret.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect(),
            false => secret.to_owned(),
        };
        let text = format!(
            "# {comment}{token}{comment} {field}\n[admin]\ntoken = \"{}\" # {token}{view}\nview_token = \"{}\"\n\
             [stores.a]\nredis = \"redis://:{}@a#{comment}\"\n{SITE}\
             purge = {{ token = \"{}\", header = \"X-Key: {}\" }} # {comment} = {purge}{password}\n\
             request = {{ set = {{ X-Auth = \"{}\" }} }}\n",
            written(token), written(view), written(&password), written(purge), written(field), written(basic),
        );
        let text = text.replace(&format!("@a#{comment}"), "@a");
        if let Ok(checked) = parse(&text, "f", Path::new("")) {
            let shown = &checked.text.text;
            for secret in secrets.iter().chain([&password]) {
                prop_assert!(!shown.contains(secret.as_str()), "{} is in:\n{}", secret, shown);
            }
            prop_assert_eq!(shown.lines().count(), text.lines().count());
            let debug = format!("{checked:?}");
            prop_assert!(!debug.contains(token.as_str()));
        } else {
            prop_assert!(false, "{}\n{:?}", text, parse(&text, "f", Path::new("")));
        }
    }
}
