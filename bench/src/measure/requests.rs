//! Hits of other kinds: not modified, a range, many keys, many fields.
//!
//! In: one scenario for each, with keep-alive. Out: the same figures as for plain hits. There are no targets here: what
//! stands beside larder says whether a kind of hit is dear.
//! Deliberately absent: servers that cannot do a kind. HAProxy's cache has no ranges, and wrk cannot read its 304;
//! servers of files tell their own entity tags, and send the fields that they are told to.

use std::path::Path;

use anyhow::Result;

use super::contender::{Kit, floor, nginx, varnish};
use super::drive::{Load, Request};
use super::hit::floor_fields;
use super::page::{PROGRAMS, Page};
use super::rows::{NGINX, VARNISH, of_floor, of_h2o, of_haproxy, of_larder, of_nginx_files};
use super::runner::{Expected, Pace, Row, Scenario, run as measure};
use harness::origin::{body, entity_tag};

const PAGE: &str = "/page/57000";
const PAGE_BYTES: usize = 57_000;
const SMALL: &str = "/page/134";
const SMALL_BYTES: usize = 134;
const KEYS: usize = 10_000;
/// First and last byte of the range.
const RANGE: (usize, usize) = (20_000, 28_191);
const COOKIE_BYTES: usize = 2048;
const REQUEST_FIELDS: usize = 20;

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let scenarios = [
        not_modified(&kit),
        range(&kit),
        many_keys(&kit),
        many_response_fields(&kit),
        many_request_fields(&kit),
    ];
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    Page {
        name: "requests",
        title: "Hits of other kinds",
        how: format!(
            "One worker each, pinned to one core; `wrk -t1 -c64` with keep-alive on another; three interleaved rounds of \
             3 s, medians. Every answer came from the cache. larder runs bench/full.toml, everything on. \"304\": \
             If-None-Match with the entity tag of {PAGE_BYTES} stored bytes. \"range\": bytes {} to {} of the same. \"10 000 \
             keys\": {SMALL_BYTES} bytes each, asked for in a fixed order in which the share of the key in place k goes with \
             1/k (bench/load/zipf.lua). \"30 response fields\": {SMALL_BYTES} bytes under 30 more fields. \"20 request \
             fields\": {SMALL_BYTES} bytes, asked for with {REQUEST_FIELDS} fields and a Cookie of {COOKIE_BYTES} bytes. HAProxy's \
             cache answers no ranges, and its 304 says the length of what it leaves out (RFC 9110 8.6), which wrk waits for; files of nginx and H2O have no entity tag of the origin's and no fields of its own.",
            RANGE.0, RANGE.1
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &[])
}

/// The caches that can do everything.
fn caches(kit: &Kit) -> Vec<Row<'_>> {
    vec![
        of_larder(kit),
        // Its cache answers ranges of its own accord only where the origin says that it would.
        Row::new(NGINX, |setup| nginx::cache(setup, NGINX, "proxy_force_ranges on;")),
        // Left to itself it asks the origin for every request with a cookie, so its users have it forget them.
        Row::new(VARNISH, |setup| varnish::without_cookies(setup, VARNISH)),
    ]
}

/// The floor with what larder says, and these fields more.
fn floor_with<'a>(kit: &'a Kit, status: &str, fields: &[String], content: &[u8]) -> Row<'a> {
    of_floor(kit, floor::answer(status, &[floor_fields(), fields.to_vec()].concat(), content))
}

fn not_modified(kit: &Kit) -> Scenario<'_> {
    let mut rows = vec![floor_with(kit, "304 Not Modified", &[], b"")];
    rows.extend(caches(kit));
    let mut scenario = Scenario::hit("304", PAGE, Vec::new(), rows);
    scenario.prime = Some(PAGE.to_owned());
    scenario.request.fields = vec![format!("If-None-Match: {}", entity_tag(PAGE_BYTES))];
    scenario.expected = Expected { status: 304, body: Vec::new() };
    scenario
}

fn range(kit: &Kit) -> Scenario<'_> {
    let (first, last) = RANGE;
    let part: Vec<u8> = body(PAGE_BYTES).into_iter().skip(first).take(last + 1 - first).collect();
    let said = [format!("Content-Range: bytes {first}-{last}/{PAGE_BYTES}")];
    let mut rows = vec![floor_with(kit, "206 Partial Content", &said, &part)];
    rows.extend(caches(kit));
    rows.extend([of_nginx_files(vec![PAGE.to_owned()]), of_h2o(vec![PAGE.to_owned()])]);
    let mut scenario = Scenario::hit("range", PAGE, Vec::new(), rows);
    // Whole first: what is stored must not depend on how a cache treats a range of what it does not have.
    scenario.prime = Some(PAGE.to_owned());
    scenario.request.fields = vec![format!("Range: bytes={first}-{last}")];
    scenario.expected = Expected { status: 206, body: part };
    scenario
}

fn many_keys(kit: &Kit) -> Scenario<'_> {
    let mut rows = vec![floor_with(kit, "200 OK", &[], &body(SMALL_BYTES))];
    rows.extend(caches(kit));
    rows.push(of_haproxy());
    let files: Vec<String> = (0..KEYS).map(|key| format!("/key/{key}/{SMALL_BYTES}")).collect();
    rows.extend([of_nginx_files(files.clone()), of_h2o(files)]);
    let mut scenario = Scenario::hit("10 000 keys", "/key/0/134", body(SMALL_BYTES), rows);
    scenario.prime = Some(format!("/key/[0-{}]/{SMALL_BYTES}", KEYS - 1));
    scenario.load = Load::Wrk { connections: 64, script: Some("zipf.lua") };
    scenario
}

fn many_response_fields(kit: &Kit) -> Scenario<'_> {
    let fields: Vec<String> =
        (0..30).map(|n| format!("X-Field-{n}: a value of some length, as applications send it")).collect();
    let mut rows = vec![floor_with(kit, "200 OK", &fields, &body(SMALL_BYTES))];
    rows.extend(caches(kit));
    rows.push(of_haproxy());
    Scenario::hit("30 response fields", &format!("{SMALL}?fields=30"), body(SMALL_BYTES), rows)
}

fn many_request_fields(kit: &Kit) -> Scenario<'_> {
    let mut rows = vec![floor_with(kit, "200 OK", &[], &body(SMALL_BYTES))];
    rows.extend(caches(kit));
    let file = vec![SMALL.to_owned()];
    rows.extend([of_haproxy(), of_nginx_files(file.clone()), of_h2o(file)]);
    let mut scenario = Scenario::hit("20 request fields", SMALL, body(SMALL_BYTES), rows);
    scenario.request = Request { fields: browser_fields(), ..Request::of(SMALL) };
    scenario
}

/// What a browser with a long history sends. None of its cookies means a session.
fn browser_fields() -> Vec<String> {
    let mut fields: Vec<String> = [
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
        "Accept-Language: en-GB,en;q=0.7,de;q=0.3",
        "Accept-Encoding: gzip, deflate",
        "Referer: http://example.com/some/page/that/linked/here?with=a&query=string",
        "DNT: 1",
        "Sec-GPC: 1",
        "Sec-Fetch-Dest: document",
        "Sec-Fetch-Mode: navigate",
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-User: ?1",
        "Upgrade-Insecure-Requests: 1",
        "Priority: u=0, i",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut cookie = String::from("Cookie: ");
    let value = "0123456789abcdef0123456789abcdef";
    for number in 0.. {
        let pair = format!("_visit_{number}={value}; ");
        if cookie.len() + pair.len() > COOKIE_BYTES {
            break;
        }
        cookie.push_str(&pair);
    }
    let padding = "x".repeat(COOKIE_BYTES - cookie.len());
    cookie.push_str(&format!("last={padding}"));
    fields.push(cookie);
    for number in fields.len()..REQUEST_FIELDS {
        fields.push(format!("X-Request-Field-{number}: something that a proxy on the way has added"));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_as_many_fields_as_the_page_says() {
        let fields = browser_fields();
        assert_eq!(fields.len(), REQUEST_FIELDS);
        let cookie = fields.iter().find(|field| field.starts_with("Cookie: ")).map(String::len);
        assert!(cookie.is_some_and(|bytes| (COOKIE_BYTES..COOKIE_BYTES + 32).contains(&bytes)), "{cookie:?}");
    }
}
