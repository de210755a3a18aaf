//! What an idle connection costs: ten thousand of them, each of which has had one answer.
//!
//! In: larder, nginx and Varnish, each with one worker and a page in its cache, and over TLS larder and nginx. Out: resident memory with the
//! connections less that without, for each connection. Without means: after a number of connections have come, asked
//! and gone, so that what a server allocates once is not counted. Afterwards each connection asks once more, which
//! shows that the server had kept all of them.
//! Deliberately absent: HAProxy, which takes two descriptors per connection, more than a usual limit allows here; and the kernel's own memory for a socket, which is the same for all and in no process's figure.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::asker::{Asker, OBJECT_BYTES, object};
use super::contender::{Contender, Kit, Setup, floor, larder, nginx, varnish};
use super::load::{allow_descriptors, on_load_core};
use super::outcome::{Judged, Verdict};
use super::page::targets;
use super::plot::{Panel, bars};
use super::report::{Report, median};
use larder_testkit::certificates::Certificates;

const CONNECTIONS: usize = 10_000;
const WARM_CONNECTIONS: usize = 100;
/// What a connection of larder may cost: 12 KB, and 24 KB over TLS.
const BYTES_MAX: f64 = 12_000.0;
const TLS_BYTES_MAX: f64 = 24_000.0;
const ROUNDS: usize = 3;
/// Resident memory counts as settled when it has not changed for so long.
const SETTLED: Duration = Duration::from_millis(500);
const SETTLED_MAX: Duration = Duration::from_secs(20);

type Start = fn(&Kit, &Setup<'_>) -> Result<Contender>;

/// A row, and whether it is asked over TLS.
struct Contestant {
    name: &'static str,
    secured: bool,
    start: Start,
}

const LARDER: &str = "larder";
const LARDER_TLS: &str = "larder, TLS";

const CONTESTANTS: &[Contestant] = &[
    Contestant {
        name: LARDER,
        secured: false,
        start: |kit, setup| larder::full(kit, setup, LARDER, larder::AccessLog::Off),
    },
    Contestant {
        name: "nginx proxy_cache",
        secured: false,
        start: |_, setup| nginx::cache(setup, "nginx proxy_cache", ""),
    },
    Contestant { name: "Varnish", secured: false, start: |_, setup| varnish::cache(setup, "Varnish", "") },
    Contestant {
        name: LARDER_TLS,
        secured: true,
        start: |kit, setup| larder::full(kit, setup, LARDER_TLS, larder::AccessLog::Off),
    },
    Contestant {
        name: "nginx proxy_cache, TLS",
        secured: true,
        start: |_, setup| nginx::cache(setup, "nginx proxy_cache, TLS", ""),
    },
];

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    allow_descriptors()?;
    let kit = Kit::new(root)?;
    let origin = floor::origin(&kit, &object())?;
    let clear = kit.setup(origin.address);
    let secured = Setup { certificates: Some(kit.certificates()), ..clear };
    let mut rows: Vec<Row> =
        CONTESTANTS.iter().map(|contestant| Row { name: contestant.name, runs: Vec::new() }).collect();
    for round in 1..=ROUNDS {
        for (Contestant { name, secured: over_tls, start }, row) in CONTESTANTS.iter().zip(&mut rows) {
            let setup = if *over_tls { &secured } else { &clear };
            let mut contender = start(&kit, setup)?;
            let run = measure(&mut contender, setup.certificates).with_context(|| (*name).to_owned())?;
            println!("round {round}, {name}: {:.0} B per idle connection", run.bytes_per_connection());
            row.runs.push(run);
        }
    }
    report(root, &rows)
}

/// A server's runs.
struct Row {
    name: &'static str,
    runs: Vec<Run>,
}

/// Resident memory in bytes, without the idle connections and with them.
#[derive(Clone, Copy)]
struct Run {
    without: u64,
    with: u64,
}

impl Run {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn bytes_per_connection(self) -> f64 {
        (self.with as f64 - self.without as f64) / CONNECTIONS as f64
    }
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn megabytes(&self, of: fn(&Run) -> u64) -> f64 {
        median(self.runs.iter().map(|run| of(run) as f64 / 1e6).collect())
    }

    fn bytes_per_connection(&self) -> f64 {
        median(self.runs.iter().map(|run| run.bytes_per_connection()).collect())
    }
}

fn measure(contender: &mut Contender, certificates: Option<&Certificates>) -> Result<Run> {
    let address = contender.address;
    let server = &contender.server;
    let connector =
        certificates.map(|certificates| TlsConnector::from(certificates.client_config(&[b"http/1.1"])));
    let connector = connector.as_ref();
    let run = on_load_core(async {
        drop(connect_and_ask(address, connector, WARM_CONNECTIONS).await?);
        let without = settled(|| server.resident_bytes()).await;
        let mut connections = connect_and_ask(address, connector, CONNECTIONS).await?;
        let with = settled(|| server.resident_bytes()).await;
        for connection in &mut connections {
            connection.ask("/page").await.context("an idle connection")?;
        }
        anyhow::Ok(Run { without, with })
    })??;
    contender.server.still_runs()?;
    Ok(run)
}

/// A socket, bare or over TLS.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// Opens so many connections; each asks once.
async fn connect_and_ask(
    address: SocketAddr,
    connector: Option<&TlsConnector>,
    connections: usize,
) -> Result<Vec<Asker<Box<dyn Duplex>>>> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let stream: Box<dyn Duplex> = match connector {
            None => Box::new(socket),
            Some(connector) => Box::new(connector.connect(ServerName::try_from("localhost")?, socket).await?),
        };
        let mut connection = Asker::over(stream, address, OBJECT_BYTES);
        connection.ask("/page").await?;
        open.push(connection);
    }
    Ok(open)
}

/// Resident memory once it has stopped changing, or its last figure where it does not stop.
async fn settled(resident: impl Fn() -> u64) -> u64 {
    let (start, mut now) = (Instant::now(), resident());
    let mut since = Instant::now();
    while since.elapsed() < SETTLED && start.elapsed() < SETTLED_MAX {
        tokio::time::sleep(SETTLED / 10).await;
        let then = std::mem::replace(&mut now, resident());
        if then != now {
            since = Instant::now();
        }
    }
    now
}

fn report(root: &Path, rows: &[Row]) -> Result<()> {
    let mut table = String::from(
        "| server | bytes per idle connection | memory without, MB | with, MB |\n|---|---|---|---|\n",
    );
    for row in rows {
        let (without, with) = (row.megabytes(|run| run.without), row.megabytes(|run| run.with));
        let _ = writeln!(
            table,
            "| {} | {:.0} | {without:.1} | {with:.1} |",
            row.name,
            row.bytes_per_connection()
        );
    }
    let mut judged = Vec::new();
    for (name, most) in [(LARDER, BYTES_MAX), (LARDER_TLS, TLS_BYTES_MAX)] {
        let row = rows.iter().find(|row| row.name == name).context("no larder")?;
        let bytes = row.bytes_per_connection();
        judged.push(Judged {
            scenario: "idle".to_owned(),
            target: format!("{name}: a connection costs at most {:.0} KB", most / 1000.0),
            figure: format!("{bytes:.0} B"),
            verdict: Verdict::of(bytes <= most),
        });
    }
    table.push_str(&targets(&judged));
    table.push_str("\n![Resident bytes per idle connection](idle.svg)\n");
    let panel = Panel {
        title: "resident bytes per idle connection".to_owned(),
        bars: rows.iter().map(|row| (row.name.to_owned(), row.bytes_per_connection())).collect(),
    };
    bars(&root.join("bench/results/idle.svg"), "Idle connections", &[panel])?;
    let how = format!(
        "One worker each. {CONNECTIONS} connections over HTTP/1.1, each of which has asked for one page of 1 KB and got \
         it from the cache; resident memory (VmRSS of all processes) with them less that without them, after \
         {WARM_CONNECTIONS} others had come and gone. {ROUNDS} rounds, each with servers just started; medians. The kernel's memory for \
         sockets is not counted. nginx sets its connections' records up at its start, for as many as it may ever have: they are in \
         neither figure. TLS is 1.3, with a certificate of ECDSA over P-256. larder runs bench/full.toml, \
         everything on."
    );
    let holds = judged.iter().all(|judged| !judged.missed());
    Report {
        name: "idle",
        title: "Idle connections",
        table: &table,
        how: &how,
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("varnishd", "-V")],
        figures: json!({
            "connections": CONNECTIONS, "rounds": ROUNDS, "bytes_max": [BYTES_MAX, TLS_BYTES_MAX], "holds": holds,
            "rows": rows.iter().map(|row| json!({
                "server": row.name, "bytes_per_connection": row.bytes_per_connection().round(),
                "resident_bytes": row.runs.iter().map(|run| json!([run.without, run.with])).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        }),
    }
    .write(root)?;
    ensure!(holds, "an idle connection costs more than it may");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_costs_its_share_of_the_difference() {
        let run = Run { without: 10_000_000, with: 130_000_000 };
        assert_eq!(run.bytes_per_connection().to_bits(), 12_000.0_f64.to_bits());
        let less = Run { without: 10_000_000, with: 9_000_000 };
        assert!(less.bytes_per_connection() < 0.0);
    }
}
