//! How soon a larder that was killed is back with its objects, first with few purges and then with as many as it remembers.
//!
//! In: a larder with a disk, full of objects. Out: the time from the start of the program to the first answer, and to the first
//! hit, with either. Purges are made in bulk at the admin address.
//! Deliberately absent: peers. Neither Varnish's memory nor its xkey outlives a restart, and nginx remembers no purges.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cost::KEPT_GROUP;
use super::origin::{GROUPS, OBJECT_BYTES, target};
use crate::measure::asker::{Asker, Was};
use crate::measure::contender::Launch;
use crate::measure::load::on_load_core;
use crate::measure::metric;
use crate::measure::turns::wait;
use harness::children::Server;

/// Longest wait for a server, and for its first hit.
pub(super) const BACK_MAX: Duration = Duration::from_secs(120);
/// A little less than larder remembers, so that none is given up.
pub(super) const PREDICATES: u64 = 262_000;
/// Names that one request at the admin address may have.
const NAMES_MAX: u64 = 10_000;
const PURGE_MAX: Duration = Duration::from_secs(60);
/// Answers after which no hit is waited for.
const ANSWERS_MAX: u64 = 500;
/// Between two attempts while nobody listens yet.
const ATTEMPTS_EVERY: Duration = Duration::from_millis(1);

/// How it came back.
#[derive(Clone, Copy)]
pub(super) struct Back {
    pub(super) predicates: u64,
    /// From the start of the program to the first answer.
    pub(super) first_answer: Duration,
    /// To the end of the first answer that was a hit; `None` where nothing is used any more without the origin.
    pub(super) first_hit: Option<Duration>,
}

/// Kills the server and starts it again, twice: with the purges that it has, and with as many as it remembers.
pub(super) fn run(launch: &mut Launch, server: Server) -> Result<[Back; 2]> {
    server.kill();
    // Each looks for other objects: one that was asked for before the first hit has been stored anew.
    let (server, few) = back(launch, 1)?;
    let admin = launch.admin.context("no admin address")?;
    for first in (0..PREDICATES).step_by(usize::try_from(NAMES_MAX)?) {
        purge_tags(admin, first..(first + NAMES_MAX).min(PREDICATES))?;
    }
    server.kill();
    let (server, many) = back(launch, 1001)?;
    drop(server);
    Ok([few, many])
}

fn back(launch: &mut Launch, first: u64) -> Result<(Server, Back)> {
    let began = Instant::now();
    let mut server = launch.start()?;
    let (address, mut first_answer, mut number) = (launch.address, None, first);
    let (first_answer, first_hit) = loop {
        server.still_runs()?;
        ensure!(began.elapsed() < BACK_MAX, "no answer after {} s", BACK_MAX.as_secs());
        let name = target(number * GROUPS + KEPT_GROUP);
        let answered = on_load_core(async {
            let mut asker = Asker::connect_for(address, OBJECT_BYTES).await.ok()?;
            Some(asker.ask(&name).await)
        })?;
        let Some(was) = answered.transpose().context("while it starts")? else {
            wait(ATTEMPTS_EVERY);
            continue;
        };
        let first_answer = *first_answer.get_or_insert_with(|| began.elapsed());
        if was == Was::Hit {
            break (first_answer, Some(began.elapsed()));
        }
        number += 1;
        if number == first + ANSWERS_MAX {
            break (first_answer, None);
        }
    };
    let predicates = metric::told(launch.admin.context("no admin address")?, "larder_purge_predicates")?;
    Ok((server, Back { predicates, first_answer, first_hit }))
}

/// Purges tags that nothing has.
fn purge_tags(admin: SocketAddr, numbers: std::ops::Range<u64>) -> Result<()> {
    let tags: Vec<String> = numbers.map(|number| format!("other-{number:08}")).collect();
    let content = serde_json::json!({ "tags": tags }).to_string();
    let mut stream = TcpStream::connect(admin).context("the admin address")?;
    stream.set_read_timeout(Some(PURGE_MAX))?;
    write!(
        stream,
        "POST /api/v1/purges HTTP/1.1\r\nHost: {admin}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{content}",
        content.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let line = answer.lines().next().unwrap_or_default();
    ensure!(line.contains(" 200 "), "a purge at the admin address: {line}");
    Ok(())
}
