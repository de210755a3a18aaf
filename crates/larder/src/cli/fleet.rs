//! `larder fleet`: the larders that purge together, as a running one knows them.
//!
//! In: nothing. Out: a table of the members, and the state of the log. 1 where this larder has no lease, or no Redis.

use std::process::ExitCode;

use http::Method;

use super::admin::{AdminArguments, run};
use super::ended::failed;
use super::exit;
use super::output::{print_all, printable};
use super::table::{Lean, Table, counted};
use crate::server::FleetTold;

/// Where it is asked for.
const FLEET: &str = "/api/v1/fleet";
const WHAT: &str = "the fleet";

#[derive(Debug, clap::Args)]
pub(super) struct FleetArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn fleet(arguments: &FleetArguments) -> ExitCode {
    let asked = run(async {
        let larder = arguments.admin.larder()?;
        larder.ask_for::<FleetTold>(Method::GET, FLEET, WHAT).await
    });
    let told = match asked {
        Ok(told) => told,
        Err(error) => return failed(&error),
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&told).unwrap_or_default() + "\n",
        false => text(&told),
    };
    let printed = print_all(text.as_bytes());
    match told.failure.is_none() && told.left_s != Some(0.0) {
        true => printed,
        false => ExitCode::from(exit::FAILURE),
    }
}

fn text(told: &FleetTold) -> String {
    let mut table = Table::new(&[("MEMBER", Lean::Left), ("APPLIED", Lean::Right), ("LEASE", Lean::Right)]);
    let own = format!("{} (here)", told.name);
    table.row([
        own,
        told.applied.map_or_else(|| "-".to_owned(), |applied| applied.to_string()),
        lease(told.left_s),
    ]);
    for other in &told.others {
        table.row([other.name.clone(), other.applied.to_string(), lease(other.left_s)]);
    }
    let mut text = table.text(0);
    let mut line = |words: String| text.push_str(&(printable(&words) + "\n"));
    match &told.failure {
        Some(why) => line(format!("the log cannot be had: {why}")),
        None => line(format!("log {}", told.epoch.as_deref().unwrap_or("not read yet"))),
    }
    if told.left_s == Some(0.0) {
        line("without a lease: the origin is asked before anything stored is used".to_owned());
    }
    if told.incomplete > 0 {
        line(format!("not complete: {} of this larder", counted(told.incomplete as u64, "purge", "purges")));
    }
    text
}

fn lease(left_s: Option<f64>) -> String {
    match left_s {
        Some(left) if left <= 0.0 => "none".to_owned(),
        Some(left) => format!("{left:.0} s"),
        None => "no end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::OtherTold;

    #[test]
    fn members_are_a_row_each_and_trouble_is_said() {
        let other = OtherTold { name: "web-2".to_owned(), applied: 6, left_s: None };
        let told = FleetTold {
            name: "web-1".to_owned(),
            epoch: Some("ab".to_owned()),
            applied: Some(7),
            left_s: Some(599.6),
            others: vec![other],
            incomplete: 0,
            failure: None,
        };
        let said = text(&told);
        assert!(said.contains("web-1 (here)") && said.contains("600 s") && said.contains("no end"), "{said}");
        assert!(said.ends_with("log ab\n"), "{said}");
        let troubled =
            FleetTold { failure: Some("it is gone".to_owned()), left_s: Some(0.0), incomplete: 2, ..told };
        let said = text(&troubled);
        assert!(said.contains("cannot be had: it is gone") && said.contains("without a lease"), "{said}");
        assert!(said.contains("2 purges of this larder"), "{said}");
    }
}
