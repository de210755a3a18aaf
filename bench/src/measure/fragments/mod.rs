//! Pages put together from cached fragments: what they cost beside the same page stored whole, and beside nginx and Varnish.
//!
//! In: a page of 9.3 KB of ten fragments, by SSI and by ESI, and variants of it: none that is kept; a condition on a cookie and
//! a thousand visitors; a fragment that lives for 100 ms. Also a page of 75 KB of twenty fragments, and 75 KB that are looked through
//! for directives and have none. Out: the figures of the runner, a table of pages behind slow fragments (slow.rs), and the targets.
//! Each server is asked for its template, or for the page, and each answer has to be the page byte for byte.
//! Fragments in memcached are values.rs, and the setup that others have published is published.rs.

mod published;
mod slow;
mod values;

use std::path::Path;

use anyhow::{Result, ensure};

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, nginx, varnish};
use super::curl::{Version, ask};
use super::drive::{Load, Request};
use super::outcome::{Judged, Outcome};
use super::page::Page;
use super::runner::{Pace, Row, Scenario, run as measure};
use super::validity::OriginAsked;
use harness::pages::{Form, FragmentedPage, Theme};

const SSI: &str = "larder, SSI";
const ESI: &str = "larder, ESI";
const WHOLE: &str = "larder, whole";
const NGINX: &str = "nginx, ssi on";
const VARNISH: &str = "Varnish, do_esi";
const SCANNED: &str = "larder, assemble";
const NOT_SCANNED: &str = "larder, no assemble";
const NGINX_NOT_SCANNED: &str = "nginx, ssi off";

const KEPT: &str = "10 fragments";
const ANEW: &str = "10 fragments, put together";
const VISITORS: &str = "a condition, 1000 visitors";
const BRIEF: &str = "a fragment of 100 ms";
const LARGE: &str = "75 KB, 20 fragments";
const PLAIN: &str = "75 KB, no directive";

/// CPU per request: of a page over that of the same page stored whole.
const KEPT_OF_WHOLE: f64 = 1.5;
const ANEW_OF_WHOLE: f64 = 2.5;
/// Over that of a peer.
const OF_PEERS: f64 = 0.1;
/// Requests per second over those of a peer.
const RATE_OF_PEERS: f64 = 5.0;
/// Without directives, over a hit that is not looked through: as much as two runs of one server differ.
const SCANNED_OF_NOT: f64 = 1.05;
/// A lifetime of 100 ms ends ten times a second.
const ASKED_PER_S: f64 = 11.0;

const PAGE: FragmentedPage = FragmentedPage {
    form: Form::Whole,
    theme: Theme::Plain,
    fragments: 10,
    fragment_bytes: 700,
    bytes: 9300,
};
const LARGE_PAGE: FragmentedPage =
    FragmentedPage { fragments: 20, fragment_bytes: 1024, bytes: 75_000, ..PAGE };
const NO_FRAGMENTS: FragmentedPage =
    FragmentedPage { fragments: 0, fragment_bytes: 0, bytes: 75_000, ..PAGE };

/// A visitor of each greeting.
const FIRST: usize = 2;
const SECOND: usize = 702;

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let mut scenarios = vec![
        kept(&kit),
        anew(&kit),
        visitors(&kit),
        brief(&kit),
        large(&kit),
        without_directives(&kit),
        values::scenario(&kit),
    ];
    scenarios.extend(published::scenarios(&kit));
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let slow = slow::run(&kit)?;
    let mut judged = judge(&outcome)?;
    judged.push(values::judge(&outcome)?);
    judged.extend(slow::judge(&slow));
    Page {
        name: "fragments",
        title: "Pages of fragments",
        how: how(),
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("varnishd", "-V"), ("wrk", "-v")],
    }
    .write_with(root, &outcome, slow::told(&slow), &judged)
}

fn how() -> String {
    format!(
        "One worker each, pinned to one core; `wrk -t1 -c64` with keep-alive on another; three interleaved rounds of 3 s, medians. Every \
         answer was the same page byte for byte, put together from a stored template and stored fragments, or stored whole \
         (\"{WHOLE}\"). larder runs bench/full.toml, everything on, but where the table says otherwise. nginx: `ssi on` and `proxy_cache` \
         on tmpfs for template and fragments; Varnish: `do_esi` and memory. \"{KEPT}\": {} bytes, of which ten times {} are fragments. \
         \"{ANEW}\": the template reads the client's address into a variable, so no page of it is kept. \"{VISITORS}\": the page greets its visitor by a cookie (bench/load/visitors.lua); nginx has the same `if`. \
         \"{BRIEF}\": larder with `override_ttl = \"100ms\"` for one of the ten fragments, and nothing used stale. \"{LARGE}\": {} bytes, of \
         which 20 times {} are fragments. \"{PLAIN}\": larder with `assemble = \"ssi\"` and with `assemble = \"off\"`, and nothing else; nginx \
         with `ssi on` and without. {} {} {}",
        PAGE.bytes,
        PAGE.fragment_bytes,
        LARGE_PAGE.bytes,
        LARGE_PAGE.fragment_bytes,
        values::how(),
        published::how(),
        slow::how(),
    )
}

/// larder with everything on, asked for the page in this form.
fn larder_row<'a>(kit: &'a Kit, name: &'static str, page: FragmentedPage) -> Row<'a> {
    Row::new(name, move |setup| larder::full(kit, setup, name, AccessLog::Off)).asking(page.target())
}

/// Lines of a location: a fragment's key has to be its own, and not that of the page.
const NGINX_LINES: &str = "proxy_cache_key $uri$is_args$args;";

fn nginx_row<'a>(name: &'static str, more: &'static str, page: FragmentedPage) -> Row<'a> {
    Row::new(name, move |setup| nginx::cache(setup, name, &format!("{NGINX_LINES} {more}")))
        .asking(page.target())
}

fn varnish_row<'a>(page: FragmentedPage) -> Row<'a> {
    Row::new(VARNISH, |setup| varnish::cache(setup, VARNISH, slow::DO_ESI)).asking(page.target())
}

/// All that put this page together, and larder with the page stored whole.
fn rows(kit: &Kit, page: FragmentedPage) -> Vec<Row<'_>> {
    vec![
        larder_row(kit, SSI, page.written(Form::Ssi)),
        larder_row(kit, ESI, page.written(Form::Esi)),
        larder_row(kit, WHOLE, page),
        nginx_row(NGINX, "ssi on;", page.written(Form::Ssi)),
        varnish_row(page.written(Form::Esi)),
    ]
}

fn kept(kit: &Kit) -> Scenario<'_> {
    Scenario::hit(KEPT, &PAGE.target(), PAGE.page(FIRST), rows(kit, PAGE))
}

fn anew(kit: &Kit) -> Scenario<'_> {
    let page = FragmentedPage { theme: Theme::Address, ..PAGE };
    let mut rows = rows(kit, page);
    // The peers put each page together anew as it is.
    rows.truncate(3);
    Scenario::hit(ANEW, &page.target(), page.page(FIRST), rows)
}

fn visitors(kit: &Kit) -> Scenario<'_> {
    let whole = FragmentedPage { theme: Theme::Visitor, ..PAGE };
    let template = whole.written(Form::Ssi);
    let greets_both =
        move |contender: Contender| contender.with_last_check(move |contender| greets(contender, template));
    let larder_ssi =
        Row::new(SSI, move |setup| Ok(greets_both(larder::full(kit, setup, SSI, AccessLog::Off)?)));
    let nginx_ssi = Row::new(NGINX, move |setup| {
        Ok(greets_both(nginx::cache(setup, NGINX, &format!("{NGINX_LINES} ssi on;"))?))
    });
    let rows = vec![
        larder_ssi.asking(template.target()),
        larder_row(kit, WHOLE, whole),
        nginx_ssi.asking(template.target()),
    ];
    let mut scenario = Scenario::hit(VISITORS, &whole.target(), whole.page(FIRST), rows);
    scenario.request.fields = vec![cookie(FIRST)];
    scenario.load = Load::Wrk { connections: 64, script: Some("visitors.lua") };
    scenario
}

fn cookie(visitor: usize) -> String {
    format!("Cookie: visitor={visitor:03}")
}

/// That the other half of the visitors get the other page.
fn greets(contender: &Contender, template: FragmentedPage) -> Result<()> {
    for visitor in [FIRST, SECOND] {
        let request = Request { fields: vec![cookie(visitor)], ..Request::of(template.target()) };
        let answer = ask(contender.address, Version::Http11, &request)?;
        ensure!(answer.body == template.page(visitor), "visitor {visitor} got another page");
    }
    Ok(())
}

fn brief(kit: &Kit) -> Scenario<'_> {
    const SITE: &str =
        "assemble = \"ssi\"\n\n[[site.rule]]\npath = \"/page/part/plain/0/*\"\noverride_ttl = \"100ms\"\n";
    let row = |name: &'static str, page: FragmentedPage| {
        Row::new(name, move |setup| larder::site(&kit.larder, setup, name, SITE)).asking(page.target())
    };
    let rows = vec![row(SSI, PAGE.written(Form::Ssi)), row(WHOLE, PAGE)];
    let mut scenario = Scenario::hit(BRIEF, &PAGE.target(), PAGE.page(FIRST), rows);
    scenario.origin_asked = OriginAsked::Sometimes;
    scenario
}

fn large(kit: &Kit) -> Scenario<'_> {
    Scenario::hit(LARGE, &LARGE_PAGE.target(), LARGE_PAGE.page(FIRST), rows(kit, LARGE_PAGE))
}

fn without_directives(kit: &Kit) -> Scenario<'_> {
    let page = NO_FRAGMENTS;
    let site = |name: &'static str, site: &'static str| {
        Row::new(name, move |setup| larder::site(&kit.larder, setup, name, site))
    };
    let rows = vec![
        site(SCANNED, "assemble = \"ssi\""),
        site(NOT_SCANNED, "assemble = \"off\""),
        nginx_row(NGINX, "ssi on;", page),
        nginx_row(NGINX_NOT_SCANNED, "", page),
    ];
    Scenario::hit(PLAIN, &page.target(), page.page(FIRST), rows)
}

fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    let mut judged = Vec::new();
    for server in [SSI, ESI] {
        judged.push(outcome.cpu_at_most(KEPT, server, KEPT_OF_WHOLE, WHOLE)?);
        for peer in [NGINX, VARNISH] {
            judged.push(outcome.cpu_at_most(KEPT, server, OF_PEERS, peer)?);
        }
        judged.push(outcome.cpu_at_most(ANEW, server, ANEW_OF_WHOLE, WHOLE)?);
        for peer in [NGINX, VARNISH] {
            judged.push(outcome.rate_at_least(LARGE, server, RATE_OF_PEERS, peer)?);
        }
    }
    judged.push(outcome.cpu_at_most(VISITORS, SSI, ANEW_OF_WHOLE, WHOLE)?);
    judged.push(outcome.asked_at_most(BRIEF, SSI, ASKED_PER_S)?);
    judged.push(outcome.cpu_at_most(PLAIN, SCANNED, SCANNED_OF_NOT, NOT_SCANNED)?);
    Ok(judged)
}
