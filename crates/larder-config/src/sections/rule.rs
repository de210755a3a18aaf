//! A rule: which requests it is for, and what holds for them.

use http::{HeaderName, Method};

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::sections::settings::Settings;
use crate::value::glob::{PathGlob, PathRegex};
use crate::value::matching::ValueMatch;
use crate::value::name::{CookieName, ParameterName, RuleName};

section! {
    /// A rule. Everything that it names has to match: one of its paths or regular expressions, one of its methods,
    /// and every field, cookie and parameter. Rules see the request only, and never merge: what the first matching
    /// rule leaves out comes from the site, then from `[defaults]`. Without matchers it is for every request.
    pub struct Rule in "`[[site.rule]]`" {
        /// Names the rule wherever rules are told apart, as in `larder explain`. No other rule of the site has this name.
        name: Option<RuleName> = ("its first pattern, and how many more it has"), why "Most patterns say what they are for.";
        /// Globs for the whole path.
        path: Vec<PathGlob> = ("any path"), why "Most rules need nothing else.";
        /// Regular expressions for the path; a path may match either these or `path`.
        path_regex: Vec<PathRegex> = ("none"), why "For what a glob cannot say.";
        /// Methods.
        methods: Vec<Method> = ("any method"), why "Little but answers to GET is ever stored, so few rules need it.";
        /// Fields: a pattern for the value, or `true` for there and `false` for not there.
        header: Vec<(HeaderName, ValueMatch)> = ("any fields"), why "Whatever the rule decides has to be in the key too.";
        /// Cookies, likewise.
        cookie: Vec<(CookieName, ValueMatch)> = ("any cookies"), why "As for fields.";
        /// Query parameters, likewise; names and values as they stand in the query.
        query: Vec<(ParameterName, ValueMatch)> = ("any query"), why "As for fields; the query is in the key by default.";
        flatten settings: Settings, "What holds for the requests that match.";
        line line, "The line on which it begins.";
    }
}

/// The longest label that is made of a pattern, in characters.
const LABEL_CHARS_MAX: usize = 64;

impl Rule {
    /// What it is called: its name; else its first pattern and how many more it has, as in `/assets/* +3`; else the first
    /// of what it asks for.
    pub fn label(&self) -> String {
        if let Some(name) = &self.name {
            return name.as_str().to_owned();
        }
        let globs = self.path.iter().map(|glob| glob.as_str().to_owned());
        let mut paths = globs.chain(self.path_regex.iter().map(|regex| format!("/{}/", regex.as_str())));
        let Some(first) = paths.next() else { return cut(&self.first_condition()) };
        match paths.count() {
            0 => cut(&first),
            more => format!("{} +{more}", cut(&first)),
        }
    }

    /// The first of what it asks for beside paths.
    fn first_condition(&self) -> String {
        let method = self.methods.first().map(|method| format!("method {method}"));
        let field = || self.header.first().map(|(name, _)| format!("field {name}"));
        let cookie = || self.cookie.first().map(|(name, _)| format!("cookie {name}"));
        let parameter = || self.query.first().map(|(name, _)| format!("parameter {name}"));
        let first = method.or_else(field).or_else(cookie).or_else(parameter);
        first.unwrap_or_else(|| "every request".to_owned())
    }

    /// Whether no request can pass it by.
    pub fn matches_all(&self) -> bool {
        let any_path = self.path.iter().any(PathGlob::matches_all)
            || (self.path.is_empty() && self.path_regex.is_empty());
        let names_nothing = self.header.is_empty() && self.cookie.is_empty() && self.query.is_empty();
        any_path && self.methods.is_empty() && names_nothing
    }
}

/// A label of bounded length.
fn cut(label: &str) -> String {
    match label.char_indices().nth(LABEL_CHARS_MAX) {
        Some((end, _)) => format!("{}...", label.get(..end).unwrap_or_default()),
        None => label.to_owned(),
    }
}

impl Consistent for Rule {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        for name in ["path", "path_regex", "methods", "header", "cookie", "query"] {
            let Some(node) = table.get(name) else { continue };
            let is_empty = match &node.value {
                Value::List(items) => items.is_empty(),
                Value::Table(table) => table.entries.is_empty(),
                _ => false,
            };
            if is_empty {
                let hint = Some(format!("leave `{name}` out to match any"));
                reading.refuse_value(node, &At::Key(at, name), "something to match", hint);
            }
        }
    }
}
