//! gRPC: a server and a client of grpcio, the C core that most languages use, from PyPI.
//!
//! In: the stage. Out: calls of every kind (unary, streams in either direction and in both, errors, deadlines,
//! cancellation, pauses), made once directly and once through larder with examples/grpc.toml. The client prints what came
//! of each call; both transcripts have to be the same, and the server has to hear of every call that was given up. Limits of
//! a second, which hold for other responses, show that a call may pause for longer.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::python;
use super::stage::Stage;
use harness::children::{Server, free_port, output_within, pause};

pub(super) use super::python::PACKAGES;

const READY_MAX: Duration = Duration::from_secs(20);
const CLIENT_MAX: Duration = Duration::from_secs(120);
/// By then the server has heard of a call that was given up. Told nothing, it would go on for 30 s.
const HEARD_MAX: Duration = Duration::from_secs(10);
/// How long calls pause, where larder's limits are a second.
const PAUSE_SECONDS: &str = "2.5";
/// Calls that the client gives up: by a deadline, and twice by cancelling.
const GIVEN_UP: usize = 3;

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let python = python::interpreter(stage, "grpc")?;
    let address = free_port()?;
    let log = stage.work.join("server.log");
    let mut command = Command::new(&python);
    command.arg(stage.data.join("server.py")).arg(address.to_string()).stdin(Stdio::null());
    let mut server = Server::start("the gRPC server", command.stdout(fs::File::create(&log)?))?;
    server.wait_for(address, READY_MAX)?;

    let example = stage.example("grpc.toml", "http://127.0.0.1:50051", address)?;
    let limits = "first_byte_timeout = \"1s\"\nbetween_bytes_timeout = \"1s\"\n";
    let config = example.replace("protocol = \"h2\"\n", &format!("protocol = \"h2\"\n{limits}"));
    ensure!(config.len() > example.len(), "examples/grpc.toml does not speak h2");
    let mut larder = stage.larder(&format!("{config}\n[limits]\nbody_idle = \"1s\"\n"))?;

    let directly = calls(stage, &python, address)?;
    let ended = ended(&log, GIVEN_UP)?;
    let through = calls(stage, &python, larder.public)?;
    print!("{through}");
    ensure!(through == directly, "without larder the transcript is another one:\n{directly}");
    ensure!(through.ends_with("done:\n"), "the client did not finish");
    let heard = self::ended(&log, 2 * GIVEN_UP)?;
    println!(
        "calls that were given up, of which the server heard: {ended} directly, {} through larder",
        heard - ended
    );
    server.still_runs()?;
    larder.still_runs()?;
    let broken = larder.sum("larder_origin_bodies_broken_total")?;
    ensure!(broken == 0, "{broken} responses of the server counted as broken");
    let version =
        output_within(Command::new(&python).args(["-c", "import grpc; print(grpc.__version__)"]), READY_MAX)?;
    Ok(format!("grpcio {}", version.trim()))
}

/// The client's transcript.
fn calls(stage: &Stage<'_>, python: &Path, address: SocketAddr) -> Result<String> {
    let mut command = Command::new(python);
    command.arg(stage.data.join("client.py")).arg(address.to_string()).arg(PAUSE_SECONDS);
    output_within(&mut command, CLIENT_MAX).context("the client")
}

/// How many calls the server has heard to be given up, once there are `expected`.
fn ended(log: &Path, expected: usize) -> Result<usize> {
    let deadline = Instant::now() + HEARD_MAX;
    loop {
        let count = fs::read_to_string(log)?.lines().filter(|line| line.starts_with("ended ")).count();
        if count >= expected {
            return Ok(count);
        }
        if Instant::now() > deadline {
            bail!("the server heard of {count} calls that were given up, not of {expected}");
        }
        pause();
    }
}
