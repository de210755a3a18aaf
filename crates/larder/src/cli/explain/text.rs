//! An explanation as text for a terminal: numbered parts in the order of the decision, labels to the left.
//!
//! In: the same value that `--json` prints, and the columns that there are. Out: lines of no more columns, but for a word that is
//! longer.
//! What came over the network is printed without anything that a terminal could take for a command.

use larder_proxy::explain::{
    Candidate, Course, ExplainedFreshness, ExplainedResponse, Explanation, Judgement, OriginAnswer,
    OriginServer, Route,
};

use super::columns::{Columns, tied};
use super::parts::parts;
use super::phrases::{cited, span};
use super::purges;
use super::records::records;
use crate::cli::table::counted;

/// Variants that are shown one by one.
const VARIANTS_MAX: usize = 16;

/// Servers that are shown one by one.
const SERVERS_MAX: usize = 16;

/// Writes an explanation in lines of at most `width` columns.
pub(super) fn text(of: &Explanation, width: usize) -> String {
    let mut out = Columns::new(width);
    request(&mut out, of);
    route(&mut out, &of.route);
    key(&mut out, of);
    if of.key.is_some() {
        stored(&mut out, of);
    }
    records(&mut out, of);
    decision(&mut out, of);
    if let Some(origin) = &of.origin {
        answer(&mut out, origin);
    }
    parts(&mut out, of);
    removal(&mut out, of);
    purges::of_url(&mut out, of);
    out.part("Cache-Status");
    out.row("", &of.cache_status);
    out.finish()
}

fn request(out: &mut Columns, of: &Explanation) {
    let request = &of.request;
    out.line(0, &format!("{} {}", request.method, request.url));
    for field in &request.fields {
        out.line(2, &format!("{}: {}", field.name, field.value));
    }
    if !request.dropped_fields.is_empty() {
        let names = request.dropped_fields.join(", ");
        out.line(2, &format!("({names}: dropped, since only a trusted peer may send it, or nobody)"));
    }
    if !request.running {
        out.line(2, "(from the config alone: no larder was asked, so nothing is stored)");
    }
}

/// What a rule is called and where it stands; nothing where an older larder does not say so.
fn called(label: &str, line: Option<usize>) -> String {
    match line {
        _ if label.is_empty() => String::new(),
        Some(line) => format!(" ({label}, line {line})"),
        None => format!(" ({label})"),
    }
}

fn route(out: &mut Columns, route: &Route) {
    out.part("Site and rule");
    let by = match &route.host_pattern {
        Some(pattern) => format!("{}, by its host {pattern}", route.site),
        None => format!("{}, which takes every host", route.site),
    };
    out.row("site", &by);
    out.row("path", &route.canonical_path);
    let all = |conditions: &[String]| match conditions {
        [] => "every request".to_owned(),
        conditions => conditions.join(", "),
    };
    let rule = match (route.rule, route.rules) {
        (Some(rule), rules) => {
            let called = called(&route.label, route.line);
            format!("{rule} of {rules}{called}: {}", all(&route.conditions))
        }
        (None, 0) => "none: the site has no rules".to_owned(),
        (None, rules) => format!("none of {rules} matches: the site's own settings hold"),
    };
    out.row("rule", &rule);
    for passed in &route.passed_over {
        let called = called(&passed.label, passed.line);
        out.row("passed over", &format!("rule {}{called}: {}", passed.rule, all(&passed.conditions)));
    }
    if let Some(why) = &route.websocket {
        out.row("websocket", &cited(why));
    }
    if let Some(origin) = &route.origin {
        out.row("origin", origin);
    }
    match route.host.as_deref() {
        None | Some("client") => {}
        Some("upstream") => out.row("  host", "the server's own name, in place of the client's"),
        Some(name) => out.row("  host", &format!("{name}, in place of the client's")),
    }
    for server in route.servers.iter().take(SERVERS_MAX) {
        out.row("  server", &told_server(server));
    }
    let more = route.servers.len().saturating_sub(SERVERS_MAX);
    if more > 0 {
        out.row("", &format!("and {more} more: --json shows all of them"));
    }
    if route.refresh_ahead {
        out.row("refresh ahead", "what is in use will be refreshed before its lifetime ends");
    }
    if let Some(wait) = route.collapse_wait_seconds {
        let wait = span(wait);
        out.row(
            "collapse wait",
            &format!("who has waited {wait} for another's fetch may go alone, one a second"),
        );
    }
    if route.min_uses > 1 {
        out.row(
            "min uses",
            &format!("will be stored only once its URL was asked for {} times lately", route.min_uses),
        );
    }
}

fn told_server(of: &OriginServer) -> String {
    let mut told = of.server.clone();
    // An address of its own is told where the name alone does not say it.
    if !of.server.ends_with(&of.address) {
        told += &format!(" at {}", of.address);
    }
    told += &format!(": {}, {} in flight", of.state, of.in_flight);
    if of.failures > 0 {
        told += &format!(", {} failed so far", of.failures);
    }
    if of.backup {
        told += "; a backup";
    }
    told
}

fn key(out: &mut Columns, of: &Explanation) {
    let Some(key) = &of.key else { return };
    out.part("Cache key [RFC 9111 2]");
    for part in &key.parts {
        out.row(&part.name, part.value.as_deref().unwrap_or("(none)"));
    }
    if !key.dropped_parameters.is_empty() {
        let dropped = key.dropped_parameters.join(", ");
        out.row("left out", &format!("{dropped}: not in the key, nor sent to the origin"));
    }
    if key.reordered {
        out.row("sorted", "parameters are put in order, for the key and the origin");
    }
}

fn stored(out: &mut Columns, of: &Explanation) {
    out.part("Stored under it");
    let stored = &of.stored;
    if stored.hit_for_miss {
        out.row("mark", "the last answer could not be shared: no request will wait for another's fetch");
    }
    if !stored.stores.is_empty() {
        let stores = stored.stores.iter().map(|store| kept_in(&store.store, &store.places));
        out.row("looked in", &stores.collect::<Vec<_>>().join(", then "));
    }
    if stored.responses.is_empty() {
        out.row("", "nothing");
    }
    if let Some(before) = stored.before.as_ref().filter(|before| before.minutes_ago.is_some()) {
        let ago = match before.minutes_ago.unwrap_or_default() {
            0 => "within the last minute".to_owned(),
            minutes => format!("{minutes} min ago"),
        };
        out.row("before", &format!("{}, {ago}: {}", before.word, before.sentence));
    }
    let chosen = chosen(of);
    for (place, response) in stored.responses.iter().enumerate().take(VARIANTS_MAX) {
        let is_chosen = chosen.is_some_and(|chosen| std::ptr::eq(chosen, response));
        variant(out, place, response, is_chosen);
    }
    let more = stored.responses.len().saturating_sub(VARIANTS_MAX);
    if more > 0 {
        out.row("", &format!("and {more} more: --json shows all of them"));
    }
    if let Some(response) = chosen {
        out.part("Freshness");
        freshness(out, &response.freshness);
    }
}

/// A store, and where it keeps things, as far as that is known.
fn kept_in(store: &str, places: &[String]) -> String {
    match places {
        [] => store.to_owned(),
        places => format!("{store} ({})", places.join(", ")),
    }
}

/// The response that the decision speaks of.
fn chosen(of: &Explanation) -> Option<&ExplainedResponse> {
    of.stored.responses.iter().find(|response| response.selected && !response.gone)
}

fn variant(out: &mut Columns, place: usize, response: &ExplainedResponse, is_chosen: bool) {
    let form = match &response.part {
        None => format!("{}, {}", response.status, counted(response.body_bytes, "byte", "bytes")),
        Some(part) => {
            let complete = part.complete.map_or_else(|| "unknown".to_owned(), |length| length.to_string());
            format!("{}, bytes {}-{} of {complete}", response.status, part.first, part.last)
        }
    };
    let state = match response {
        ExplainedResponse { gone: true, .. } => "gone: it was purged, or one of its cache groups was removed",
        ExplainedResponse { soft: true, selected: true, .. } if is_chosen => {
            "selected by this request; stale: a soft purge has ended its lifetime"
        }
        ExplainedResponse { soft: true, .. } => "stale: a soft purge has ended its lifetime",
        ExplainedResponse { invalidated: true, selected: true, .. } if is_chosen => {
            "selected by this request; invalidated: validated before it is used"
        }
        ExplainedResponse { invalidated: true, .. } => "invalidated: validated before it is used",
        ExplainedResponse { selected: true, .. } if is_chosen => "selected by this request",
        ExplainedResponse { selected: true, .. } => "selected too",
        _ => "not selected: it is for other values",
    };
    out.row(&format!("response {}", place + 1), &format!("{form}; {state}"));
    out.row("  lies in", &kept_in(&response.store, &response.places));
    if let Some(why) = &response.held_back {
        out.row("  only there", &cited(why));
    }
    for vary in &response.vary {
        let quoted =
            |value: Option<&str>| value.map_or_else(|| "none".to_owned(), |value| format!("\"{value}\""));
        let (stored, asked) = (quoted(vary.stored.as_deref()), quoted(vary.asked.as_deref()));
        let section = tied("[RFC 9111 4.1]");
        out.row("  varies by", &format!("{}: stored for {stored}, asked for {asked} {section}", vary.name));
    }
    if let Some(coding) = &response.content_encoding {
        out.row("  coding", coding);
    }
    if let Some(why) = &response.uncompressed {
        out.row("  coding", &cited(why));
    }
    if let Some(tag) = &response.etag {
        out.row("  etag", tag);
    }
    if let Some(date) = &response.last_modified {
        out.row("  modified", date);
    }
    if !response.groups.is_empty() {
        out.row("  groups", &response.groups.join(", "));
    }
    purges::of_response(out, response);
    if !response.cookies.is_empty() {
        out.row("  cookies", &format!("{}: every client is sent them", response.cookies.join(", ")));
    }
    if !response.cookies_withheld.is_empty() {
        let names = response.cookies_withheld.join(", ");
        out.row("  without", &format!("the cookies {names}: their clients alone were sent them"));
    }
    if !is_chosen {
        out.row("  freshness", &left(&response.freshness));
    }
}

fn left(freshness: &ExplainedFreshness) -> String {
    // Whole seconds where they are many, as Cache-Status has them; a short lifetime is told with its fraction.
    let seconds = match freshness.ttl_seconds.unsigned_abs() {
        0..10 => freshness.left_seconds,
        _ => freshness.ttl_seconds as f64,
    };
    let span = span(seconds.abs());
    if seconds > 0.0 {
        format!("fresh for {span} more")
    } else if seconds < 0.0 {
        format!("stale for {span}")
    } else {
        "at its end".to_owned()
    }
}

fn freshness(out: &mut Columns, of: &ExplainedFreshness) {
    lifetimes(out, of);
    out.row("age", &format!("{}; {} {}", span(of.age_seconds), left(of), tied("[RFC 9111 4.2.3]")));
    if of.no_cache {
        out.row("no-cache", &format!("each use has to be validated {}", tied("[RFC 9111 5.2.2.4]")));
    }
    if !of.stale.is_empty() {
        out.row("on stale use", &of.stale.join(", "));
    }
}

/// The lifetime, what gives it, and what would have given another.
fn lifetimes(out: &mut Columns, of: &ExplainedFreshness) {
    let lifetime = span(of.lifetime_seconds);
    let from = of.candidates.iter().find(|one| one.decides && !one.field.is_empty());
    out.row(
        "lifetime",
        &from.map_or_else(|| lifetime.clone(), |one| format!("{lifetime}, from {}", one.field)),
    );
    out.row("", &cited(&of.source));
    if let Some(from) = of.shortened_from_seconds {
        out.row("  jitter", &format!("shortened it from {}", span(from)));
    }
    for lost in of.candidates.iter().filter(|one| !one.decides && !one.field.is_empty()) {
        let Candidate { field, lifetime_seconds, source, .. } = lost;
        let section = tied(&format!("[{}]", source.section));
        out.row("  loses", &format!("{field} ({} {}) {section}", tied("would be"), span(*lifetime_seconds)));
    }
}

fn decision(out: &mut Columns, of: &Explanation) {
    out.part("Decision");
    let decision = &of.decision;
    let verdict = match decision.verdict {
        Course::Hit => "hit",
        Course::Refresh => "hit, stale",
        Course::Validate => "validate",
        Course::Complete => "complete",
        Course::Fetch => "ask origin",
        Course::Pass => "pass",
        Course::File => "static file",
        Course::Refuse => "refuse",
    };
    out.row(verdict, &cited(&decision.reason));
    if decision.alone {
        out.row("alone", "it will wait for no other request's fetch, and no other request for its");
    }
    for field in &decision.conditions {
        out.row("with", &format!("{}: {}", field.name, field.value));
    }
    if let Some(last) = &decision.last_time {
        out.row("last time", &format!("{}: {}", last.token, cited(last)));
    }
    if let Some(uses) = decision.uses {
        out.row("uses", &format!("{uses} lately, with this one; {} are asked for", of.route.min_uses));
    }
    match decision.refresh_ahead_seconds {
        None => {}
        Some(seconds) if seconds > 0.0 => {
            out.row(
                "ahead",
                &format!("the first use in {} or later will begin to refresh it", span(seconds)),
            );
        }
        Some(_) => out.row("ahead", "it ends soon: the next use will begin to refresh it"),
    }
    for stale in &decision.stale_use {
        let label = match stale.cause.as_str() {
            "origin-dead" => "origin dead",
            "origin-error" => "origin 5xx",
            _ => "meanwhile",
        };
        let used = if stale.allowed { "stale use allowed." } else { "no stale use." };
        out.row(label, &format!("{used} {}", cited(&stale.reason)));
        if let Some(window) = &stale.window {
            let (field, length) = (&window.field, span(window.seconds));
            out.row("", &format!("for {length} past its lifetime, from {field}"));
        }
    }
}

fn answer(out: &mut Columns, of: &OriginAnswer) {
    out.part("The origin's answer");
    if let Some(why) = &of.not_asked {
        return out.row("", &format!("not asked: {why}"));
    }
    if let Some(failed) = &of.failed {
        return out.row("none", &format!("{}: {}", of.origin, cited(failed)));
    }
    let took = of.seconds.map(|seconds| format!(" after {:.0} ms", seconds * 1000.0)).unwrap_or_default();
    let status = of.status.map(|status| status.to_string()).unwrap_or_default();
    out.row("status", &format!("{status} from {}{took}; nothing of it was stored", of.origin));
    for field in &of.fields {
        out.row("", &format!("{}: {}", field.name, field.value));
    }
    if let Some(why) = &of.uncompressed {
        out.row("coding", &cited(why));
    }
    if let Some(judgement) = &of.judgement {
        judged(out, judgement);
    }
}

fn judged(out: &mut Columns, of: &Judgement) {
    out.row(if of.stored { "to be stored" } else { "not stored" }, &cited(&of.reason));
    if let Some(help) = &of.help {
        out.row("what helps", help);
    }
    if let Some(place) = &of.place {
        let entry = place.entry.map(|entry| format!("place, entry {entry}")).unwrap_or_default();
        let wanted = match (place.entry, place.conditions.as_slice()) {
            (None, _) => place.reason.sentence.clone(),
            (Some(_), []) => format!("{entry}, which takes everything."),
            (Some(_), conditions) => format!("{entry}: {}.", conditions.join(", ")),
        };
        out.row("will go to", &format!("{}: {wanted}", kept_in(&place.store, &place.places)));
        if let Some(why) = &place.held_back {
            out.row("  only there", &cited(why));
        }
    }
    if !of.cookies_withheld.is_empty() {
        let names = of.cookies_withheld.join(", ");
        let told = format!("the cookies {names}: the client of the fetch alone is sent them");
        out.row("without", &told);
    }
    if !of.vary.is_empty() {
        out.row("varies by", &format!("{} {}", of.vary.join(", "), tied("[RFC 9111 4.1]")));
    }
    match of.stored {
        true => freshness(out, &of.freshness),
        false => lifetimes(out, &of.freshness),
    }
}

fn removal(out: &mut Columns, of: &Explanation) {
    if of.removal.is_empty() {
        return;
    }
    out.part("What will remove or renew it");
    for reason in &of.removal {
        out.item(&cited(reason));
    }
}

#[cfg(test)]
mod tests;
