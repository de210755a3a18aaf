//! HTTP/2 conformance: the tool h2spec, pinned in tests/h2spec/go.mod, against larder on free ports, in clear text and over TLS.
//!
//! In: a `go` recent enough to build the tool, and the binary of the dev profile. Out: the failures of a run in clear text beside
//! tests/h2spec/expected.txt; any difference fails, in both directions, so that a repaired failure leaves the list. Over TLS the protocol is agreed
//! before the first byte, and there is no list.
//! Deliberately absent: a verdict where there is no such `go`: the run is skipped and says why.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use harness::built;
use harness::children::{Server, free_port, run_within};
use harness::go::{self, GoProgram};
use harness::origin::Origin;
use larder_testkit::certificates::Certificates;

const FOLDER: &str = "tests/h2spec";
const TOOL: &str = "github.com/summerwind/h2spec/cmd/h2spec";
const READY_MAX: Duration = Duration::from_secs(20);
const RUN_MAX: Duration = Duration::from_secs(600);

/// Runs the suite, and compares or, with `write`, rewrites the list of failures.
pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    let tool = match go::program(root, FOLDER, TOOL, "h2spec")? {
        GoProgram::At(tool) => tool,
        GoProgram::Unavailable(reason) => {
            println!("h2spec: skipped: {reason}");
            return Ok(());
        }
    };
    let report = root.join("target/tools/h2spec.xml");
    let larder = built::larder(root)?;
    let origin = Origin::start()?;
    let (listen, secured) = (free_port()?, free_port()?);
    let folder_of_run = tempfile::tempdir()?;
    let certificates = Certificates::new();
    let config = config(folder_of_run.path(), &origin, (listen, secured), &certificates)?;
    let mut server =
        Server::start("larder", Command::new(larder).arg("run").arg(config).stdout(Stdio::null()))?;
    server.wait_for(listen, READY_MAX)?;
    let (failed, total) = measure(&tool, &[], listen, &report)?;
    let (failed_over_tls, total_over_tls) = measure(&tool, &["--tls", "--insecure"], secured, &report)?;
    server.still_runs().context("larder did not survive the suite")?;
    drop(server);
    judge(&root.join(FOLDER).join("expected.txt"), &failed, total, write)?;
    for case in &failed_over_tls {
        println!("h2spec over TLS: failed: {case}");
    }
    ensure!(failed_over_tls.is_empty(), "h2spec fails over TLS");
    println!("h2spec over TLS: {total_over_tls} of {total_over_tls} passed");
    Ok(())
}

/// A larder with one site, in clear text and with a certificate made for this run.
fn config(
    folder: &Path,
    origin: &Origin,
    (listen, secured): (SocketAddr, SocketAddr),
    certificates: &Certificates,
) -> Result<PathBuf> {
    let path = folder.join("larder.toml");
    let text = format!(
        "listen = [\"{listen}\", {{ address = \"{secured}\", tls = true }}]\nadmin = false\nworkers = 1\n\
         [origins.app]\nservers = \"http://{}\"\n[[site]]\norigin = \"app\"\nredirect_https = false\n\
         tls = {{ cert = {:?}, key = {:?} }}\n",
        origin.address,
        certificates.file("server.pem"),
        certificates.file("server.key"),
    );
    fs::write(&path, text)?;
    Ok(path)
}

fn measure(
    tool: &Path,
    options: &[&str],
    listen: SocketAddr,
    report: &Path,
) -> Result<(BTreeSet<String>, usize)> {
    // A report left by an earlier run must not speak for this one.
    let _ = fs::remove_file(report);
    // The tool's exit code says only that something failed; the report says what.
    run_within(
        Command::new(tool)
            .args(["--strict", "--timeout", "3", "--host", &listen.ip().to_string()])
            .args(["--port", &listen.port().to_string()])
            .args(options)
            .arg("--junit-report")
            .arg(report)
            .stdout(Stdio::null()),
        RUN_MAX,
    )?;
    let report = fs::read_to_string(report).context("h2spec left no report")?;
    let (failed, total) = failures(&report);
    ensure!(total > 100, "h2spec ran only {total} tests");
    Ok((failed, total))
}

/// The failed cases of a JUnit report as `section: what was asked`, and the number of all cases.
fn failures(report: &str) -> (BTreeSet<String>, usize) {
    let mut failed = BTreeSet::new();
    let mut total = 0;
    for case in report.split("<testcase").skip(1) {
        total += 1;
        let (opening, inside) = case.split_once('>').unwrap_or((case, ""));
        let inside = inside.split("</testcase>").next().unwrap_or_default();
        if !opening.ends_with('/') && (inside.contains("<failure") || inside.contains("<error")) {
            failed.insert(format!("{}: {}", attribute(opening, "package"), attribute(opening, "classname")));
        }
    }
    (failed, total)
}

fn attribute(opening: &str, name: &str) -> String {
    let value = opening.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.unwrap_or_default().replace("&#39;", "'").replace("&#34;", "\"").replace("&amp;", "&")
}

fn judge(list: &Path, failed: &BTreeSet<String>, total: usize, write: bool) -> Result<()> {
    if write {
        // The reasons, which people wrote, stay.
        let before = fs::read_to_string(list).unwrap_or_default();
        let reasons = before.lines().filter(|line| line.starts_with('#'));
        let lines: Vec<&str> = reasons.chain(failed.iter().map(String::as_str)).collect();
        fs::write(list, lines.join("\n") + "\n").context("expected.txt")?;
    }
    let text = fs::read_to_string(list).context("tests/h2spec/expected.txt")?;
    let expected: BTreeSet<String> =
        text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(str::to_owned).collect();
    for case in failed.difference(&expected) {
        println!("h2spec: newly failed: {case}");
    }
    for case in expected.difference(failed) {
        println!("h2spec: passes now, take it off the list: {case}");
    }
    ensure!(*failed == expected, "h2spec differs from tests/h2spec/expected.txt");
    println!("h2spec: {} of {total} passed, {} known failures", total - failed.len(), failed.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read_from_the_report() {
        let report = r#"<testsuite><testcase package="http2/3.5" classname="Sends &#34;client&#34; preface" time="0"></testcase>
            <testcase package="http2/4.1" classname="Sends a frame" time="0"><failure>x</failure></testcase>
            <testcase package="http2/4.2" classname="Skipped" time="0"><skipped></skipped></testcase></testsuite>"#;
        let (failed, total) = failures(report);
        assert_eq!(total, 3);
        assert_eq!(failed.into_iter().collect::<Vec<_>>(), ["http2/4.1: Sends a frame"]);
    }
}
