//! `larder certs`: the certificates that clients of a running larder are shown.
//!
//! In: nothing. Out: a table, the next to expire first. 1 where one expires soon.

use std::process::ExitCode;

use http::Method;
use larder_tls::date;

use super::admin::{AdminArguments, run};
use super::ended::failed;
use super::exit;
use super::output::{print_all, printable};
use super::table::{Lean, Table};
use crate::server::{CertificateList, CertificateTold};

/// Where they are asked for.
const CERTIFICATES: &str = "/api/v1/certificates";
const WHAT: &str = "its certificates";

#[derive(Debug, clap::Args)]
pub(super) struct CertsArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn certs(arguments: &CertsArguments) -> ExitCode {
    let asked = run(async {
        let larder = arguments.admin.larder()?;
        larder.ask_for::<CertificateList>(Method::GET, CERTIFICATES, WHAT).await
    });
    let told = match asked {
        Ok(told) => told,
        Err(error) => return failed(&error),
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&told).unwrap_or_default() + "\n",
        false => table(&told.certificates),
    };
    let printed = print_all(text.as_bytes());
    match told.certificates.iter().any(|told| told.expires_soon) {
        true => ExitCode::from(exit::FAILURE),
        false => printed,
    }
}

fn table(certificates: &[CertificateTold]) -> String {
    if certificates.is_empty() {
        return "no site has a certificate\n".to_owned();
    }
    let mut certificates: Vec<_> = certificates.iter().collect();
    certificates.sort_by_key(|told| told.not_after);
    let mut table = Table::new(&[
        ("SITE", Lean::Left),
        ("SOURCE", Lean::Left),
        ("KEY", Lean::Left),
        ("LEFT", Lean::Right),
        ("EXPIRES", Lean::Left),
        ("", Lean::Left),
        ("FROM", Lean::Left),
    ]);
    for told in certificates {
        table.row([
            told.site.clone(),
            told.source.clone(),
            told.key.clone(),
            if told.not_after == 0 { "none yet".to_owned() } else { format!("{} d", told.days_left) },
            if told.not_after == 0 { String::new() } else { date(told.not_after) },
            if told.expires_soon { "WARNING" } else { "" }.to_owned(),
            whence(told),
        ]);
    }
    table.text(0)
}

/// The file that it is from; or why there is none, or when there is another.
fn whence(told: &CertificateTold) -> String {
    match (&told.file, &told.failure, told.next) {
        (Some(file), _, _) => file.clone(),
        (None, Some(failure), _) => format!("failed: {}", printable(failure)),
        (None, None, Some(next)) => format!("renews on {}", date(i64::try_from(next).unwrap_or(i64::MAX))),
        (None, None, None) => "an order is under way".to_owned(),
    }
}
