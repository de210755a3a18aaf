//! A rule: which requests it is for, and what holds for them.

use http::{HeaderName, Method};

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::sections::settings::Settings;
use crate::value::glob::{PathGlob, PathRegex};
use crate::value::matching::ValueMatch;
use crate::value::name::{CookieName, ParameterName};

section! {
    /// A rule. Everything that it names has to match: one of its paths or regular expressions, one of its methods,
    /// and every field, cookie and parameter. Rules see the request only, and never merge: what the first matching
    /// rule leaves out comes from the site, then from `[defaults]`. Without matchers it is for every request.
    pub struct Rule in "`[[site.rule]]`" {
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
    }
}

impl Rule {
    /// Whether no request can pass it by.
    pub fn matches_all(&self) -> bool {
        let any_path = self.path.iter().any(PathGlob::matches_all)
            || (self.path.is_empty() && self.path_regex.is_empty());
        let names_nothing = self.header.is_empty() && self.cookie.is_empty() && self.query.is_empty();
        any_path && self.methods.is_empty() && names_nothing
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
