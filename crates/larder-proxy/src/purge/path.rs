//! What the target of a purge names: a URL, everything below a path, or an expression.
//!
//! In: path and query as they were sent. Out: selectors. Plugins write all of these as the path, and nothing else tells them
//! apart. So a path is a URL, unless the part before `?` has a sign of an expression:
//!
//! | sign | why |
//! |---|---|
//! | `[`, `\`, `^`, `\|` | no URI has them (RFC 3986 3.3) |
//! | `.*`, `.+` | W3 Total Cache and Proxy Cache Purge end expressions with the first of them |
//! | `(`, or `$` at the end; with BAN alone | expressions are usual there, while URLs of wikis may have both |
//!
//! `.`, `-`, `+`, `*`, `$`, `(`, `)`, `{` and `}` are plain otherwise, and `?` begins a query. A target that ends in `*` names everything
//! that begins with the rest, as in NGINX Plus and nginx's purge module. With BAN, any other `*` is a wildcard too, as in Drupal's Purge.
//! With PURGE, a `$` at the end may be the module's sign for all variants of a URL; the URLs with and without it are purged.
//!
//! An expression matches from the first byte on. Some clients send the signs in URLs as they are. So a target that could
//! be a stored one is purged as a URL as well, unless its own expression matches it.

use bytes::Bytes;
use larder_cache::purge::{Expression, PatternText, Selector};
use larder_http::target::Target;

use super::names::Names;

/// What a target may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// A URL, whatever characters it has.
    Url,
    /// An expression, whatever characters it has.
    Expression,
    /// By its signs, in a request with PURGE.
    Purge,
    /// By its signs, in a request with BAN.
    Ban,
}

const NO_PATH: &str = "the target is no path";
const NO_URL: &str = "the target has characters that no URL has";

const SIGNS: [char; 4] = ['[', '\\', '^', '|'];
const WILDCARDS: [&str; 2] = [".*", ".+"];
/// A text without these matches itself as an expression.
const OPERATORS: [char; 13] = ['[', ']', '\\', '^', '|', '(', ')', '{', '}', '$', '*', '+', '?'];

/// Adds what a target names.
pub(super) fn read(target: &str, spelling: Spelling, names: &mut Names) {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    if !path.starts_with('/') {
        return names.refuse(NO_PATH);
    }
    match spelling {
        Spelling::Url => url(target, names),
        Spelling::Expression => expression(target, names),
        Spelling::Purge | Spelling::Ban if is_expression(path, spelling) => expression(target, names),
        Spelling::Purge | Spelling::Ban if target.ends_with('*') => wildcard(target, names),
        Spelling::Ban if path.contains('*') => wildcard(target, names),
        Spelling::Purge | Spelling::Ban => {
            url(target, names);
            if let (Spelling::Purge, Some(without)) = (spelling, target.strip_suffix('$')) {
                url(without, names);
            }
        }
    }
}

/// Adds what a target with wildcards names: `*` stands for any characters.
pub(super) fn wildcard(target: &str, names: &mut Names) {
    match target.strip_suffix('*') {
        Some(path) if path.ends_with('/') && !path.contains(['*', '?']) => {
            names.push(Selector::Prefix { host: None, path: path.into() });
        }
        _ => {
            let literals: Vec<String> = target.split('*').map(regex::escape).collect();
            pattern(&literals.join(".*"), names);
        }
    }
}

/// Adds a URL at the authority of the request.
pub(super) fn url(target: &str, names: &mut Names) {
    if is_url(target) {
        names.push(Selector::Here(target.into()));
    } else {
        names.refuse(NO_URL);
    }
}

fn expression(target: &str, names: &mut Names) {
    pattern(target, names);
    if target.replace(".*", "").contains(OPERATORS) && is_url(target) {
        names.push(Selector::Here(target.into()));
    }
}

fn pattern(text: &str, names: &mut Names) {
    let target = Some(Expression { text: text.into(), at_start: true });
    names.pattern(PatternText { target, ..PatternText::default() });
}

fn is_expression(path: &str, spelling: Spelling) -> bool {
    path.contains(SIGNS)
        || WILDCARDS.iter().any(|wildcard| path.contains(wildcard))
        || (spelling == Spelling::Ban && (path.contains('(') || path.ends_with('$')))
}

/// Whether a response may be stored under it.
fn is_url(target: &str) -> bool {
    Target::parse(Bytes::copy_from_slice(target.as_bytes())).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, spelling: Spelling, expected: &[&str]) {
        let mut names = Names::default();
        read(target, spelling, &mut names);
        let found = match names.into_selectors() {
            Err(words) => vec![words.to_owned()],
            Ok(selectors) => selectors.iter().map(written).collect(),
        };
        assert_eq!(found, expected, "{target} {spelling:?}");
    }

    fn written(selector: &Selector) -> String {
        match selector {
            Selector::Here(target) => format!("url {target}"),
            Selector::Prefix { host: None, path } => format!("below {path}"),
            Selector::Pattern(PatternText {
                target: Some(Expression { text, at_start: true }),
                host: None,
                content_type: None,
                tags: None,
            }) => format!("expression {text}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn plain_targets_are_urls() {
        for target in [
            "/",
            "/a.html",
            "/a-b_c~d/",
            "/wiki/Mercury_(planet)",
            "/wiki/M*A*S*H",
            "/wiki/A$AP_Rocky",
            "/wiki/C++",
            "/%5Ba%5D",
            "/a;b=c,d:e@f!'",
            "/list?filter[color]=red|blue",
            "/?s=a.*b",
            "/a?b=^c",
            "/x/?a=(1)*b",
            "/files/{0a1b}.pdf",
        ] {
            check(target, Spelling::Purge, &[&format!("url {target}")]);
        }
        check("/a?b=c", Spelling::Ban, &["url /a?b=c"]);
        check("/news", Spelling::Ban, &["url /news"]);
    }

    #[test]
    fn signs_of_an_expression_make_one() {
        check("/.*", Spelling::Purge, &["expression /.*"]);
        check("/blog/.*", Spelling::Purge, &["expression /blog/.*"]);
        check("/news.*", Spelling::Ban, &["expression /news.*"]);
        check("/a.+b", Spelling::Purge, &["expression /a.+b", "url /a.+b"]);
        check("/a|/b", Spelling::Purge, &["expression /a|/b", "url /a|/b"]);
        check("/a[12].jpg", Spelling::Purge, &["expression /a[12].jpg", "url /a[12].jpg"]);
        check(r"/a\.html\?x=1", Spelling::Ban, &[r"expression /a\.html\?x=1", r"url /a\.html\?x=1"]);
        check("/(a b)[c]", Spelling::Ban, &["expression /(a b)[c]"]);
        check("/(a)", Spelling::Ban, &["expression /(a)", "url /(a)"]);
        check("/news$", Spelling::Ban, &["expression /news$", "url /news$"]);
    }

    #[test]
    fn a_star_is_a_wildcard_at_the_end_of_a_path_and_everywhere_with_ban() {
        for spelling in [Spelling::Purge, Spelling::Ban] {
            check("/*", spelling, &["below /"]);
            check("/news/*", spelling, &["below /news/"]);
        }
        for spelling in [Spelling::Purge, Spelling::Ban] {
            check("/news*", spelling, &["expression /news.*"]);
            check("/list?page=*", spelling, &[r"expression /list\?page=.*"]);
        }
        check("/news*", Spelling::Url, &["url /news*"]);
        check("/*/a.b", Spelling::Ban, &[r"expression /.*/a\.b"]);
        check("/*/*", Spelling::Ban, &["expression /.*/.*"]);
        check("/x?y=/*", Spelling::Purge, &[r"expression /x\?y=/.*"]);
    }

    #[test]
    fn a_dollar_at_the_end_of_a_purge_may_be_nginx_sign_for_all_variants() {
        check("/wiki/US$", Spelling::Purge, &["url /wiki/US$", "url /wiki/US"]);
        check("/wiki/US$", Spelling::Url, &["url /wiki/US$"]);
        check("/$", Spelling::Purge, &["url /$", "url /"]);
        check("/a?b=^c$", Spelling::Purge, &["url /a?b=^c$", "url /a?b=^c"]);
    }

    #[test]
    fn a_client_may_say_what_its_path_is() {
        check("/a.*[", Spelling::Url, &["url /a.*["]);
        check("/blog.*", Spelling::Expression, &["expression /blog.*"]);
        check("/blog", Spelling::Expression, &["expression /blog"]);
        check("/c*d", Spelling::Expression, &["expression /c*d", "url /c*d"]);
    }

    #[test]
    fn what_is_no_path_and_what_no_url_has_is_refused() {
        for target in ["", "*", "a", "?a", "http://a.example/", "^/a"] {
            check(target, Spelling::Ban, &[NO_PATH]);
        }
        for target in ["/a b", "/a#b", "/\u{e4}", "/a\u{7f}", "/a?b#c"] {
            check(target, Spelling::Purge, &[NO_URL]);
        }
    }
}
