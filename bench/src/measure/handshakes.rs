//! Handshakes of TLS 1.3, and what hits wait beside them.
//!
//! In: a connection for each request, with a full handshake or with a ticket, and hits at a fixed rate beside 500 full handshakes
//! per second. Out: CPU time of a handshake with its request, and the waits of the hits.
//! Deliberately absent: RSA, and clients' certificates.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::contender::{Kit, caddy};
use super::drive::{Handshake, LAST_REQUEST, Load};
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::rows::{CADDY, H2O, HAPROXY, LARDER, NGINX, of_caddy, of_h2o, of_haproxy, of_larder, of_nginx};
use super::runner::{Pace, Row, Scenario, run as measure};
use harness::origin::body;

const TARGET: &str = "/page/134";
const BYTES: usize = 134;

const FULL: &str = "full";
const POST_QUANTUM: &str = "full, ML-KEM";
const RESUMED: &str = "resumed";
const BESIDE: &str = "hits beside handshakes";

const OF_NGINX: f64 = 0.75;
/// A full handshake with ML-KEM beside one without.
const OF_PLAIN: f64 = 1.5;
/// The same beside Caddy, which has it as well.
const OF_CADDY: f64 = 0.6;
/// p99 of hits beside handshakes, in microseconds.
const P99_MAX_US: f64 = 3000.0;

/// Full handshakes, and hits, per second.
const PER_S: f64 = 500.0;
const HITS_PER_S: f64 = 5000.0;

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let caddy = kit.caddy()?;
    let scenario = |name, load| scenario(&kit, caddy.as_ref(), name, load);
    let scenarios = [
        scenario(FULL, Load::Handshakes(Handshake::Full)),
        // OpenSSL 3.0, with which the other peers are packaged, has no ML-KEM.
        Scenario {
            rows: [of_larder(&kit)].into_iter().chain(of_caddy(caddy.as_ref(), targets())).collect(),
            ..scenario(POST_QUANTUM, Load::Handshakes(Handshake::PostQuantum))
        },
        scenario(RESUMED, Load::Handshakes(Handshake::Resumed)),
        scenario(
            BESIDE,
            Load::BesideHandshakes { connections: 64, per_s: HITS_PER_S, handshakes_per_s: PER_S },
        ),
    ];
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let judged = judge(&outcome, caddy.is_some())?;
    Page {
        name: "handshakes",
        title: "Handshakes of TLS 1.3",
        how: format!(
            "One worker each, pinned to one core, the load on another; three interleaved rounds of 3 s, medians. A \
             certificate of ECDSA over P-256. A client on rustls opens a connection for each request, one after the other, \
             so CPU per request is that of a handshake, a hit of {BYTES} bytes and the end of the connection. \"{RESUMED}\": with \
             the ticket of the connection before. \"{BESIDE}\": {HITS_PER_S:.0} hits per second on 64 kept connections over \
             TLS, whose waits these are, while the client makes {PER_S:.0} full handshakes per second; CPU per request is \
             of both together. OpenSSL 3.0, of the others but Caddy, has no ML-KEM; H2O does not resume each session of this client. larder runs bench/full.toml, everything on.{}",
            caddy::told(caddy.as_ref())
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

fn targets() -> Vec<String> {
    vec![TARGET.to_owned()]
}

fn scenario<'a>(kit: &'a Kit, caddy: Option<&PathBuf>, name: &str, load: Load) -> Scenario<'a> {
    let mut rows: Vec<Row<'a>> = vec![of_larder(kit), of_nginx(), of_haproxy()];
    if name != RESUMED {
        rows.push(of_h2o(targets()));
        rows.extend(of_caddy(caddy, targets()));
    }
    let mut scenario = Scenario::hit(name, TARGET, body(BYTES), rows);
    scenario.load = load;
    if matches!(load, Load::Handshakes(_)) {
        // What is looked at beside the runs has the same head as the answers in them.
        scenario.request.fields = vec![LAST_REQUEST.to_owned()];
    }
    scenario.request.secured = true;
    scenario
}

fn judge(outcome: &Outcome, has_caddy: bool) -> Result<Vec<Judged>> {
    let of_full = outcome.figures(POST_QUANTUM, LARDER)?.cpu_us() / outcome.figures(FULL, LARDER)?.cpu_us();
    let mut judged = vec![
        outcome.cpu_at_most(FULL, LARDER, OF_NGINX, NGINX)?,
        outcome.cpu_at_most(RESUMED, LARDER, OF_NGINX, NGINX)?,
        Judged::of_ratio(
            POST_QUANTUM,
            format!("{LARDER}: CPU per handshake at most {OF_PLAIN:.2} of one without ML-KEM"),
            of_full,
            OF_PLAIN,
        ),
        Judged::of_ratio(
            BESIDE,
            format!("{LARDER}: p99 of hits at most {P99_MAX_US:.0} us"),
            outcome.figures(BESIDE, LARDER)?.p99_us(),
            P99_MAX_US,
        ),
        outcome.p99_at_most(BESIDE, LARDER, 1.0, NGINX)?,
        outcome.p99_at_most(BESIDE, LARDER, 1.0, HAPROXY)?,
        outcome.p99_at_most(BESIDE, LARDER, 1.0, H2O)?,
    ];
    if has_caddy {
        judged.push(outcome.cpu_at_most(POST_QUANTUM, LARDER, OF_CADDY, CADDY)?);
    }
    Ok(judged)
}
