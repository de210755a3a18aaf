//! A thousand clients at the worst moment: what reaches the application, and what each of them gets.
//!
//! In: 1000 connected clients that send at the same instant, an application whose page takes 300 ms and which may die
//! at will. Five moments: one URL that nobody asked for before; 1000 URLs that expire together; the client whose
//! request caused the fetch hangs up; the fetch dies before its head; it dies in mid-body. Out: origin requests, the
//! most in flight at once, the waits, and the outcomes counted. Where no client may see an error, one error of larder
//! refuses the report; what larder must do with a fetch that dies is judged beside the figures.
//! nginx in its best manner stands beside for comparison: its figures stand as they are, errors included.
//! Deliberately absent: throughput, which the microcache measurement has.

mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::sync::Barrier;

use super::contender::{self, Contender, Setup};
use super::load::{Answer, Broken, Client, allow_descriptors, on_load_core};
use super::slow_app::{Ending, Habits, SlowApp};

const CLIENTS: usize = 1000;
const RENDER: Duration = Duration::from_millis(300);
/// The lifetime of every page here: long enough to warm 1000 of them.
const LIFETIME: Duration = Duration::from_secs(3);
/// Longest wait for something that ends by itself: a fetch under way, refreshes behind.
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// Nothing new for so long means that nothing comes any more.
const QUIET: Duration = Duration::from_millis(500);

const NGINX: &str = "proxy_cache_valid 200 3s; proxy_cache_lock on; proxy_cache_use_stale updating;";
const NGINX_BEHIND: &str = "proxy_cache_valid 200 3s; proxy_cache_lock on; proxy_cache_use_stale updating; \
                            proxy_cache_background_update on;";
const LARDER: &str = "ttl = \"3s\"\n";
const LARDER_BEHIND: &str = "ttl = \"3s\"\nstale_while_revalidate = \"30s\"\n";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    ColdUrl,
    ExpireTogether,
    HangUp,
    DiesBeforeHead,
    DiesInMidBody,
}

impl Moment {
    fn title(self) -> &'static str {
        match self {
            Self::ColdUrl => "one cold URL",
            Self::ExpireTogether => "1000 URLs expired together",
            Self::HangUp => "the one who caused the fetch hangs up",
            Self::DiesBeforeHead => "the fetch dies before its head",
            Self::DiesInMidBody => "the fetch dies in mid-body",
        }
    }

    fn ending(self) -> Ending {
        match self {
            Self::DiesBeforeHead => Ending::BeforeHead,
            Self::DiesInMidBody => Ending::MidBody,
            _ => Ending::Whole,
        }
    }

    /// Whether every client must get its page.
    fn must_serve(self) -> bool {
        self.ending() == Ending::Whole
    }

    fn origin_requests(self) -> u64 {
        if self == Self::ExpireTogether { CLIENTS as u64 } else { 1 }
    }

    /// What larder must do, in a table's words.
    fn demand(self) -> String {
        let outcome = match self {
            Self::DiesBeforeHead => "502 for all, the next one asks again",
            Self::DiesInMidBody => "all cut, nothing stored: the next one asks again",
            _ => "every client served",
        };
        match self.origin_requests() {
            1 => format!("1 origin request, {outcome}"),
            more => format!("{more} origin requests, {outcome}"),
        }
    }

    fn target(self, client: usize) -> String {
        if self == Self::ExpireTogether { format!("/page/{client}") } else { "/page".to_owned() }
    }
}

/// What one client got.
type Outcome = Result<Answer, Broken>;

struct Row {
    moment: Moment,
    server: String,
    waits: Vec<Duration>,
    /// How many clients saw what.
    outcomes: BTreeMap<String, usize>,
    /// How many got a page that was stored before.
    from_store: usize,
    origin_requests: u64,
    at_once: u64,
    /// Of the request that follows, where the fetch died: how it ended, and whether the origin was asked for it.
    next: Option<(String, bool)>,
    is_larder: bool,
}

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    contender::cores()?;
    allow_descriptors()?;
    let program = contender::build_larder(root)?;
    let scratch = contender::scratch()?;
    let scratch = scratch.path();
    let mut rows = Vec::new();
    for (moment, larder, settings) in [
        (Moment::ColdUrl, true, LARDER),
        (Moment::ColdUrl, false, NGINX),
        (Moment::ExpireTogether, true, LARDER),
        (Moment::ExpireTogether, true, LARDER_BEHIND),
        (Moment::ExpireTogether, false, NGINX),
        (Moment::ExpireTogether, false, NGINX_BEHIND),
        (Moment::HangUp, true, LARDER),
        (Moment::HangUp, false, NGINX),
        (Moment::DiesBeforeHead, true, LARDER),
        (Moment::DiesBeforeHead, false, NGINX),
        (Moment::DiesInMidBody, true, LARDER),
        (Moment::DiesInMidBody, false, NGINX),
    ] {
        let app = SlowApp::start(Habits { render: RENDER, one_at_a_time: false })?;
        let name = match settings {
            LARDER_BEHIND => "larder, stale_while_revalidate",
            NGINX_BEHIND => "nginx right, background update",
            _ if larder => "larder",
            _ => "nginx right",
        };
        let setup = Setup::new(scratch, app.address);
        let contender = if larder {
            contender::larder::site(&program, &setup, name, settings)?
        } else {
            contender::nginx::cache(&setup, name, settings)?
        };
        let what = || format!("{}: {name}", moment.title());
        let row = measure(moment, larder, contender, app).with_context(what)?;
        println!("{}: {} origin requests; {}", what(), row.origin_requests, row.outcomes_text());
        let served = row.outcomes.keys().all(|outcome| outcome == WHOLE);
        ensure!(!larder || !moment.must_serve() || served, "{}: {}", what(), row.outcomes_text());
        rows.push(row);
    }
    report::report(root, &rows)
}

/// The outcome that every client wants.
const WHOLE: &str = "200";

fn measure(moment: Moment, is_larder: bool, mut contender: Contender, app: SlowApp) -> Result<Row> {
    let address = contender.address;
    let name = contender.name.clone();
    let row = on_load_core(async move {
        let mut clients = Vec::with_capacity(CLIENTS);
        for _ in 0..CLIENTS {
            clients.push(Client::connect(address).await?);
        }
        if moment == Moment::ExpireTogether {
            clients = warm(clients, &app).await?;
        }
        app.end_with(moment.ending());
        let known = app.sent().len();
        let leader = if moment == Moment::HangUp { clients.pop() } else { None };
        let outcomes = all_at_once(moment, clients, leader, &app).await?;
        settle(&app).await?;
        let (origin_requests, at_once) = (app.asked(), app.in_flight_most());
        let next = if moment.must_serve() { None } else { Some(one_more(moment, address, &app).await?) };
        let mut row = Row {
            moment,
            server: name,
            waits: outcomes.iter().map(|(wait, _)| *wait).collect(),
            outcomes: BTreeMap::new(),
            from_store: 0,
            origin_requests,
            at_once,
            next,
            is_larder,
        };
        row.waits.sort_unstable();
        for (_, outcome) in &outcomes {
            *row.outcomes.entry(in_words(outcome)).or_default() += 1;
            let rendering = outcome.as_ref().ok().and_then(|answer| answer.rendering);
            row.from_store += usize::from(rendering.is_some_and(|number| number < known));
        }
        anyhow::Ok(row)
    })??;
    contender.server.still_runs()?;
    Ok(row)
}

/// Every URL is asked for once, and then its lifetime passes.
async fn warm(clients: Vec<Client>, app: &SlowApp) -> Result<Vec<Client>> {
    let mut tasks = Vec::with_capacity(clients.len());
    for (number, mut client) in clients.into_iter().enumerate() {
        let target = Moment::ExpireTogether.target(number);
        tasks.push(tokio::spawn(async move { client.ask(&target).await.map(|answer| (client, answer)) }));
    }
    let mut warm = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Ok((client, answer)) = task.await? else { anyhow::bail!("a broken answer while warming") };
        ensure!(answer.status == 200 && answer.rendering.is_some(), "status {} while warming", answer.status);
        warm.push(client);
    }
    ensure!(app.asked() == CLIENTS as u64, "{} origin requests while warming", app.asked());
    // nginx counts lifetimes in whole seconds.
    tokio::time::sleep(LIFETIME + Duration::from_millis(1100)).await;
    app.forget();
    Ok(warm)
}

/// All clients ask in the same instant; `leader` has asked before them and hangs up once they have asked.
async fn all_at_once(
    moment: Moment,
    clients: Vec<Client>,
    leader: Option<Client>,
    app: &SlowApp,
) -> Result<Vec<(Duration, Outcome)>> {
    let ready = Arc::new(Barrier::new(clients.len() + 1));
    let asked = Arc::new(Barrier::new(clients.len() + 1));
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, mut client)| {
            let (ready, asked) = (Arc::clone(&ready), Arc::clone(&asked));
            let target = moment.target(number);
            tokio::spawn(async move {
                ready.wait().await;
                let begin = Instant::now();
                let sent = client.send(&target).await;
                asked.wait().await;
                let outcome = match sent {
                    Ok(sent) => client.receive(&target, sent).await,
                    Err(broken) => Err(broken),
                };
                (begin.elapsed(), outcome)
            })
        })
        .collect();
    let mut leader = leader;
    if let Some(leader) = &mut leader {
        leader.send(&moment.target(0)).await.map_err(|broken| anyhow::anyhow!("{broken:?}"))?;
        until(|| app.in_flight() == 1).await.context("the first request did not reach the application")?;
    }
    ready.wait().await;
    asked.wait().await;
    drop(leader);
    let mut outcomes = Vec::with_capacity(tasks.len());
    for task in tasks {
        outcomes.push(task.await?);
    }
    Ok(outcomes)
}

/// One more request, with the application well again: how it ended, and whether the origin was asked.
async fn one_more(moment: Moment, address: std::net::SocketAddr, app: &SlowApp) -> Result<(String, bool)> {
    app.end_with(Ending::Whole);
    let before = app.asked();
    let outcome = Client::connect(address).await?.ask(&moment.target(0)).await;
    Ok((in_words(&outcome), app.asked() > before))
}

fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Ok(answer) if answer.status == 200 && answer.rendering.is_none() => "wrong page".to_owned(),
        Ok(answer) => answer.status.to_string(),
        Err(Broken::NoHead) => "no answer".to_owned(),
        Err(Broken::Cut) => "cut".to_owned(),
        Err(Broken::Late) => "late".to_owned(),
        Err(Broken::Odd) => "not understood".to_owned(),
    }
}

/// Until the application has nothing in flight, and has had nothing new for a while.
async fn settle(app: &SlowApp) -> Result<()> {
    let mut since = (Instant::now(), app.asked());
    until(|| {
        let asked = app.asked();
        if asked != since.1 || app.in_flight() > 0 {
            since = (Instant::now(), asked);
        }
        since.0.elapsed() > QUIET
    })
    .await
    .context("the application is still asked")
}

async fn until(mut holds: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + SETTLE_MAX;
    while !holds() {
        ensure!(Instant::now() < deadline, "not within {} s", SETTLE_MAX.as_secs());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
