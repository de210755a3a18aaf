//! Which site and which rule took a request, and what its key is made of, as the steps decided.

use std::sync::Arc;

use larder_http::message::RequestHead;
use larder_http::target::Target;
use larder_origin::{SentHost, ServerReport};

use super::explanation::{Key, KeyPart, OriginServer, PassedOver, Reason, Route};
use super::printed::seconds;
use super::reason::CONFIGURATION;
use super::walk::Walk;
use crate::detail::UPGRADE_IS_OFF;
use crate::key;
use crate::plan::Plan;
use crate::route::Site;
use crate::settings::{RuleMatch, RuleSettings, ValueMatch};

/// Rules that were passed over and are told; a site may have thousands.
const PASSED_OVER_MAX: usize = 32;

/// Tells where a request belongs. `settings` are those that the site gave for it.
pub(super) fn told(plan: &Plan, site: &Site, settings: &Arc<RuleSettings>, head: &RequestHead) -> Route {
    let rules = &site.settings.rules;
    let place = rules.iter().position(|(_, own)| Arc::ptr_eq(own, settings));
    let before = rules.iter().take(place.unwrap_or(rules.len())).take(PASSED_OVER_MAX).enumerate();
    let host = head.authority.host();
    let patterns = &site.settings.hosts;
    let covers = |pattern: &&String| {
        pattern.strip_prefix('*').is_some_and(|end| host.ends_with(end) && host.len() > end.len())
    };
    let exact = patterns.iter().find(|pattern| *pattern == host);
    let origin = site.settings.origin.and_then(|origin| plan.origins.get(origin));
    Route {
        site: site.settings.name.to_string(),
        host_pattern: exact.or_else(|| patterns.iter().filter(covers).max_by_key(|p| p.len())).cloned(),
        canonical_path: head.target.canonical_path().unwrap_or_default().into_owned(),
        rule: place.map(|place| place + 1),
        label: settings.label.to_string(),
        line: settings.line,
        conditions: place
            .and_then(|place| rules.get(place))
            .map(|(rule, _)| conditions(rule))
            .unwrap_or_default(),
        passed_over: before
            .map(|(place, (rule, settings))| PassedOver {
                rule: place + 1,
                label: settings.label.to_string(),
                line: settings.line,
                conditions: conditions(rule),
            })
            .collect(),
        rules: rules.len(),
        cache: settings.cache,
        origin: origin.map(|choice| choice.name.to_string()),
        host: origin.map(|choice| match &choice.settings.host {
            SentHost::Client => "client".to_owned(),
            SentHost::Upstream => "upstream".to_owned(),
            SentHost::Name(name) => name.to_string(),
        }),
        servers: origin.map(|choice| choice.state.servers()).into_iter().flatten().map(server).collect(),
        refresh_ahead: settings.refresh_ahead,
        collapse_wait_seconds: settings.collapse_wait.map(seconds),
        min_uses: u32::from(settings.min_uses).max(1),
        websocket: None,
    }
}

/// What becomes of a WebSocket handshake at a site.
pub(super) fn websocket(site: &Site) -> Reason {
    match site.settings.websocket {
        true => Reason::new(
            "upgrade",
            "It will be passed on; after a 101 the bytes will go through as they are.",
            CONFIGURATION,
        ),
        false => Reason::new(
            UPGRADE_IS_OFF,
            "The site passes none on, so it will be an ordinary request: websocket = true in the site changes that.",
            CONFIGURATION,
        ),
    }
}

fn server(of: ServerReport) -> OriginServer {
    OriginServer {
        server: of.server,
        address: of.address,
        weight: of.weight,
        backup: of.backup,
        state: of.state.token().to_owned(),
        in_flight: of.in_flight,
        failures: of.failures,
    }
}

/// What a rule asks for, each condition in a few words.
fn conditions(rule: &RuleMatch) -> Vec<String> {
    let one_of = |what: &str, values: Vec<String>| {
        (!values.is_empty()).then(|| format!("{what} {}", values.join(" or ")))
    };
    let wanted = |value: &ValueMatch| match value {
        ValueMatch::Present(true) => "is there".to_owned(),
        ValueMatch::Present(false) => "is not there".to_owned(),
        ValueMatch::Pattern(pattern) => format!("is {}", glob(pattern)),
    };
    let paths = rule.paths.iter().map(|pattern| glob(pattern)).collect();
    let methods = rule.methods.iter().map(ToString::to_string).collect();
    let fields = rule.fields.iter().map(|(name, value)| format!("field {name} {}", wanted(value)));
    let cookies = rule.cookies.iter().map(|(name, value)| format!("cookie {name} {}", wanted(value)));
    let query = rule.query.iter().map(|(name, value)| format!("parameter {name} {}", wanted(value)));
    one_of("path", paths)
        .into_iter()
        .chain(one_of("method", methods))
        .chain(fields.chain(cookies).chain(query))
        .collect()
}

/// A pattern as it was written, where it was a glob: those come translated (see [`RuleMatch::paths`]).
fn glob(pattern: &str) -> String {
    let regex = || format!("/{pattern}/");
    let Some(inner) = pattern.strip_prefix("^(?s-u)").and_then(|rest| rest.strip_suffix('$')) else {
        return regex();
    };
    let mut glob = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => glob.extend(characters.next()),
            '.' if characters.next() == Some('*') => glob.push('*'),
            '.' => return regex(),
            other => glob.push(other),
        }
    }
    glob
}

/// Tells the key, and what the rule did to the query before.
pub(super) fn key_told(walk: &Walk<'_>, raw: &Target) -> Key {
    let (head, settings) = (walk.head(), &walk.settings.key);
    let mut parts = key::describe(head, settings, walk.versions.as_ref());
    if head.method.as_str() == "QUERY" {
        parts.extend(key::describe_content(&head.fields, &walk.question.content));
    }
    let (dropped_parameters, reordered) = key::query_changes(raw, &head.target);
    Key {
        text: key::text(head, settings, walk.versions.as_ref()),
        parts: parts.into_iter().map(|(name, value)| KeyPart { name, value }).collect(),
        dropped_parameters,
        reordered,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Method};

    use super::*;

    #[test]
    fn globs_are_told_as_they_were_written_and_other_patterns_as_patterns() {
        for (pattern, told) in [
            ("^(?s-u)/foo.*$", "/foo*"),
            (r"^(?s-u).*\.png$", "*.png"),
            ("^(?s-u)/$", "/"),
            ("^/a|b$", "/^/a|b$/"),
            ("^(?s-u)a.b$", "/^(?s-u)a.b$/"),
        ] {
            assert_eq!(glob(pattern), told, "{pattern}");
        }
    }

    #[test]
    fn a_rules_conditions_are_told_one_by_one() {
        let rule = RuleMatch {
            paths: vec!["^(?s-u)/a.*$".to_owned(), "^(?s-u)/b$".to_owned()],
            methods: vec![Method::GET, Method::HEAD],
            fields: vec![(HeaderName::from_static("x-a"), ValueMatch::Present(false))],
            cookies: vec![("sid".to_owned(), ValueMatch::Present(true))],
            query: vec![("lang".to_owned(), ValueMatch::Pattern("^(?s-u)d.*$".to_owned()))],
        };
        let told = ["path /a* or /b", "method GET or HEAD", "field x-a is not there", "cookie sid is there"];
        assert_eq!(conditions(&rule), [&told[..], &["parameter lang is d*"]].concat());
        assert_eq!(conditions(&RuleMatch::default()), Vec::<String>::new());
    }
}
