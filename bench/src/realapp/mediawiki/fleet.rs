//! Three larders before the wiki that share what they store. The wiki knows the first alone, and sends its purges there.
//!
//! In: the stage, the wiki, and the configuration of one larder. Out: what the wiki was asked when each page was asked for at all three, and
//! whether all three are current after an edit, an edit of a template, a deletion and a restoration.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use harness::children::{Server, pause};

use super::MADE_ANEW;
use super::purges::{Editor, view};
use super::wiki::{SHELVES, Wiki};
use crate::realapp::fetch::{Answer, Client};
use crate::realapp::stage::{Larder, Stage};

/// A purge is complete once all larders are known, which takes a lease.
const READY_MAX: Duration = Duration::from_secs(30);

/// Asks all three for every page, before and after changes in the wiki.
pub(super) fn run(stage: &Stage<'_>, wiki: &Wiki, config: &str, direct: Client) -> Result<()> {
    let socket = stage.work.join("redis.sock");
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(&socket);
    command.current_dir(stage.work).stdin(Stdio::null()).stdout(Stdio::null());
    let _redis = Server::start("redis-server", &mut command)?;
    let begun = Instant::now();
    while !socket.exists() {
        ensure!(begun.elapsed() < READY_MAX, "redis-server does not start");
        pause();
    }
    let with_redis = |name: &str| {
        format!(
            "[stores.default]\nmemory = \"256MiB\"\nredis = \"unix://{}\"\n[fleet]\nname = {name:?}\nlease = \"3s\"\n{config}",
            socket.display()
        )
    };
    let public = direct.host;
    let larders = [
        stage.larder_at(public, &with_redis("web-1"))?,
        stage.larder(&with_redis("web-2"))?,
        stage.larder(&with_redis("web-3"))?,
    ];
    let clients = larders.each_ref().map(|larder| Client { address: larder.public, ..direct });
    are_together(&larders)?;

    // The seventh was moved, and shows the page that it leads to now: the wiki purges that alone.
    let targets: Vec<String> = (1..=SHELVES)
        .filter(|number| *number != 7)
        .map(|number| view(&format!("Shelf_{number}")))
        .chain(wiki.pages.iter().map(|page| view(page)))
        .chain([view("Main_Page"), view("Shelves")])
        .collect();
    let mut editor = Editor::log_in(wiki, direct)?;
    wiki.run_jobs()?;
    let own = all(&direct, &targets)?;
    println!("\n| three larders | URLs | identical at all three | requests to the wiki |\n|---|---|---|---|");
    let asked = compare("nothing stored", &larders, &clients, (&targets, &own))?;
    ensure!(asked == targets.len() as u64, "the wiki was asked {asked} times for {} pages", targets.len());
    let asked = compare("all stored", &larders, &clients, (&targets, &own))?;
    ensure!(asked == 0, "the wiki was asked {asked} times for what is stored");
    let changes: [(&str, &[(&str, &str)]); 4] = [
        (
            "edit",
            &[("action", "edit"), ("title", "Shelf_2"), ("text", "{{Notice}} Edited for three larders.")],
        ),
        (
            "edit of a template",
            &[("action", "edit"), ("title", "Template:Notice"), ("text", "Mind three ladders.")],
        ),
        ("delete", &[("action", "delete"), ("title", "Shelf 3")]),
        ("undelete", &[("action", "undelete"), ("title", "Shelf 3")]),
    ];
    for (change, form) in changes {
        editor.act(form)?;
        let own = all(&direct, &targets)?;
        let asked = compare(change, &larders, &clients, (&targets, &own))?;
        // Who fetches does so for all, but a page that is not there is stored by nobody.
        ensure!(asked > 0 && asked <= targets.len() as u64 + 2, "{change}: the wiki was asked {asked} times");
    }
    Ok(())
}

/// Waits until a purge at the first is complete.
fn are_together(larders: &[Larder; 3]) -> Result<()> {
    let [first, ..] = larders;
    let admin = Client { address: first.admin, host: first.admin, compressed: false };
    let begun = Instant::now();
    loop {
        let body = ["--data-binary", r#"{"tags": ["nothing"]}"#, "-H", "Content-Type: application/json"];
        let answer = admin.curl("/api/v1/purges", &body)?;
        let fleet: serde_json::Value = serde_json::from_slice(&admin.get("/api/v1/fleet")?.body)?;
        let others = fleet["others"].as_array().context("no list of members")?.len();
        if answer.status == 200 && others == 2 {
            return Ok(());
        }
        ensure!(begun.elapsed() < READY_MAX, "the larders do not come together: {fleet}");
        pause();
    }
}

fn all(client: &Client, targets: &[String]) -> Result<Vec<Answer>> {
    targets.iter().map(|target| client.get(target)).collect()
}

/// Asks each larder for everything; a row of the table, and how often they have asked the wiki.
fn compare(
    what: &str,
    larders: &[Larder; 3],
    clients: &[Client; 3],
    (targets, own): (&[String], &[Answer]),
) -> Result<u64> {
    let sent =
        || larders.iter().map(|larder| larder.sum("larder_origin_requests_total")).sum::<Result<u64>>();
    let before = sent()?;
    for (target, own) in targets.iter().zip(own) {
        for (client, name) in clients.iter().zip(["first", "second", "third"]) {
            let answer = client.get(target)?;
            if let Some(difference) = own.difference(&answer, MADE_ANEW) {
                anyhow::bail!("{what}: {target} at the {name} ({}): {difference}", answer.cache_status);
            }
        }
    }
    let asked = sent()? - before;
    println!("| {what} | {0} | {0} | {asked} |", targets.len());
    Ok(asked)
}
