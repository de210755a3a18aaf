//! Which cookies keep a request from what lives by `ttl` or `override_ttl`, and which do not: a note for each place that says
//! one of them.
//!
//! Nothing is wrong there. But a rule that stores a page for everybody for a minute, and one that stores it for nobody,
//! differ by the name of a cookie; so `larder check` says what will happen. A lifetime that several rules take from their
//! site or from `[defaults]` is told once for each answer that they give.

use http::header::COOKIE;

use crate::document::Table;
use crate::reading::{At, Reading, tables};
use crate::sections::config::Config;
use crate::sections::settings::{Resolved, Settings};
use crate::value::harmless::HarmlessCookie;
use crate::value::session::SessionCookie;
use crate::value::words::{CacheMode, Cookies};

pub(crate) fn note(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let top = At::Top;
    let defaults_at = At::Key(&top, "defaults");
    let defaults = tables(table, "defaults").into_iter().next().map(|table| (table, defaults_at));
    let list = At::Key(&top, "site");
    let site_tables = tables(table, "site");
    for (index, (site, site_table)) in config.sites.iter().zip(&site_tables).enumerate() {
        let site_at = At::Item(&list, index);
        let rules_at = At::Key(&site_at, "rule");
        let rules = site.rules.iter().zip(tables(site_table, "rule")).enumerate();
        for (index, (rule, rule_table)) in rules {
            let resolved = Settings::resolve(Some(&rule.settings), &site.settings, &config.defaults.settings);
            let layers =
                [Some((rule_table, At::Item(&rules_at, index))), Some((site_table, site_at)), defaults];
            tell(&resolved, &layers, reading);
        }
        if !site.rules.iter().any(crate::sections::rule::Rule::matches_all) {
            let resolved = Settings::resolve(None, &site.settings, &config.defaults.settings);
            tell(&resolved, &[Some((site_table, site_at)), defaults], reading);
        }
    }
}

/// Notes, at the places that say so, what cookies mean to the lifetimes that hold there.
fn tell(resolved: &Resolved, layers: &[Option<(&Table, At<'_>)>], reading: &mut Reading<'_>) {
    if resolved.cache == CacheMode::Off {
        return;
    }
    for (name, lifetimes) in [("ttl", &resolved.ttl), ("override_ttl", &resolved.override_ttl)] {
        if lifetimes.any.is_none() && lifetimes.by_status.is_empty() {
            continue;
        }
        let Some((table, at)) = layers.iter().flatten().find(|(table, _)| table.get(name).is_some()) else {
            continue;
        };
        let Some(node) = table.get(name) else { continue };
        let note = reading.problem(&node.place, &At::Key(at, name), sentence(resolved));
        if !reading.notes.contains(&note) {
            reading.notes.push(note);
        }
    }
}

/// Which cookies keep a request from being answered from what is stored, and its answer from being stored.
fn sentence(resolved: &Resolved) -> String {
    if resolved.cookies == Cookies::Ignore {
        return "no cookie keeps a request from it: `cookies` is \"ignore\"".to_owned();
    }
    if resolved.request.remove.contains(&COOKIE)
        && resolved.request.set.iter().all(|(name, _)| name != COOKIE)
    {
        return "no cookie keeps a request from it: `request` removes them".to_owned();
    }
    let keyed =
        match resolved.key.cookies.iter().map(|name| format!("{:?}", name.as_str())).collect::<Vec<_>>() {
            names if names.is_empty() => String::new(),
            names => format!("; {}, in the key, make copies of their own", names.join(", ")),
        };
    let harmless = harmless(&resolved.harmless_cookies);
    match &resolved.session_cookies {
        None if harmless.is_empty() => format!("every cookie keeps a request from it{keyed}"),
        None => format!("every cookie keeps a request from it, but {harmless}{keyed}"),
        Some(names) if names.is_empty() => format!("no cookie keeps a request from it{keyed}"),
        Some(names) => {
            let but = if harmless.is_empty() { harmless } else { format!(", but not {harmless}") };
            format!("of all cookies only {} keep a request from it{but}{keyed}", sessions(names))
        }
    }
}

fn harmless(names: &[HarmlessCookie]) -> String {
    let name = |name: &HarmlessCookie| match name {
        HarmlessCookie::Known => "those of analytics, advertising and consent".to_owned(),
        HarmlessCookie::Pattern(pattern) => format!("{pattern:?}"),
    };
    shortened(names.iter().map(name).collect())
}

fn sessions(names: &[SessionCookie]) -> String {
    let name = |name: &SessionCookie| match name {
        SessionCookie::Known => "those that larder knows as sessions".to_owned(),
        SessionCookie::Whole(name) => format!("{name:?}"),
        SessionCookie::Part(part) => format!("\"*{part}*\"").replace("**", "*"),
    };
    shortened(names.iter().map(name).collect())
}

/// The first few of them.
fn shortened(mut names: Vec<String>) -> String {
    const SHOWN: usize = 6;
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
