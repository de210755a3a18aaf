//! `larder purges`: the last purges of a running larder.
//!
//! In: nothing, or the name of one. Out: a table, newest first; or all that is known of that one. 1 where it does not hold.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use larder_proxy::purges::AuditEntry;

use super::admin::{AdminArguments, AdminClientError, run};
use super::ended::failed;
use super::exit;
use super::output::{print_all, printable};
use super::purge::{ago, in_fleet, last, one};
use super::table::{Lean, Table};

#[derive(Debug, clap::Args)]
pub(super) struct PurgesArguments {
    /// The name of a purge, for all that is known of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn purges(arguments: &PurgesArguments) -> ExitCode {
    let asked = run(async {
        let larder = arguments.admin.larder()?;
        match &arguments.id {
            None => last(&larder).await,
            Some(id) => Ok::<_, AdminClientError>(vec![one(&larder, id).await?]),
        }
    });
    let receipts = match asked {
        Ok(receipts) => receipts,
        Err(error) => return failed(&error),
    };
    let text = match (arguments.json, &arguments.id) {
        (true, None) => serde_json::to_string_pretty(&receipts).unwrap_or_default() + "\n",
        (true, Some(_)) => {
            let one = receipts.first().map(serde_json::to_string_pretty);
            one.and_then(Result::ok).unwrap_or_default() + "\n"
        }
        (false, None) => table(&receipts),
        (false, Some(_)) => receipts.first().map(whole).unwrap_or_default(),
    };
    let printed = print_all(text.as_bytes());
    let is_complete = |receipt: &AuditEntry| receipt.fleet.as_ref().is_none_or(|fleet| fleet.complete);
    let is_held = receipts.iter().all(|receipt| receipt.held != Some(false) && is_complete(receipt));
    match arguments.id.is_none() || is_held {
        true => printed,
        false => ExitCode::from(exit::FAILURE),
    }
}

fn table(receipts: &[AuditEntry]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let mut table = Table::new(&[
        ("ID", Lean::Left),
        ("WHEN", Lean::Left),
        ("BY", Lean::Left),
        ("DIALECT", Lean::Left),
        ("MODE", Lean::Left),
        ("REMOVED", Lean::Right),
        ("HELD", Lean::Left),
        ("WHAT", Lean::Left),
    ]);
    for receipt in receipts {
        table.row([
            receipt.id.clone(),
            ago(receipt.at_ms, now),
            receipt.peer.clone().unwrap_or_else(|| receipt.by.clone()),
            receipt.dialect.clone(),
            receipt.mode.clone(),
            receipt.removed.to_string(),
            held(receipt).to_owned(),
            receipt.what.clone(),
        ]);
    }
    match table.is_empty() {
        true => "nothing was purged since larder started\n".to_owned(),
        false => table.text(0),
    }
}

const fn held(receipt: &AuditEntry) -> &'static str {
    match receipt.held {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not yet",
    }
}

fn whole(receipt: &AuditEntry) -> String {
    let lines = [
        format!("purge {}", receipt.id),
        format!("  what      {} ({} names, {})", receipt.what, receipt.predicates, receipt.mode),
        format!(
            "  by        {} ({}, {})",
            receipt.peer.as_deref().unwrap_or("-"),
            receipt.dialect,
            receipt.by
        ),
        format!("  removed   {} so far, {} made stale", receipt.removed, receipt.softened),
        format!(
            "  held      {}{}",
            held(receipt),
            receipt.why.as_ref().map_or_else(String::new, |why| format!(": {why}"))
        ),
    ];
    let in_fleet = receipt.fleet.as_ref().map(|fleet| format!("  fleet     {}", in_fleet(fleet)));
    lines.iter().chain(&in_fleet).map(|line| printable(line) + "\n").collect()
}
