//! `larder certs`: the certificates that clients of a running larder are shown, and renewals of those that it orders.
//!
//! In: nothing, or a host. Out: a table, the next to expire first, and 1 where one expires soon; or what came of a renewal.

use std::process::ExitCode;
use std::time::Duration;

use http::Method;
use larder_tls::date;
use tokio::time::{Instant, sleep};

use super::admin::{AdminArguments, AdminClientError, encoded, run};
use super::ended::failed;
use super::exit;
use super::output::{print_all, printable};
use super::table::{Lean, Table};
use crate::server::{CertificateList, CertificateTold};

/// Where they are asked for.
const CERTIFICATES: &str = "/api/v1/certificates";
const WHAT: &str = "its certificates";

const RENEWAL: &str = "the renewal";
/// Between two looks at whether a renewal is over.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct CertsArguments {
    #[command(subcommand)]
    command: Option<CertsCommand>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

#[derive(Debug, clap::Subcommand)]
enum CertsCommand {
    /// Order a new certificate for a host now, whatever its schedule says, and wait for it
    Renew(RenewArguments),
}

#[derive(Debug, clap::Args)]
struct RenewArguments {
    /// The host, of a site with tls = "acme"
    #[arg(value_name = "NAME")]
    name: String,
    /// How long to wait for what comes of it, in seconds, 86400 at most
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: u64,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn certs(arguments: &CertsArguments) -> ExitCode {
    if let Some(CertsCommand::Renew(arguments)) = &arguments.command {
        return renew(arguments);
    }
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

/// What came of a renewal.
enum Renewed {
    /// The certificate is good until then.
    Until(i64),
    Failed(String),
    /// Neither in time.
    Unknown,
}

fn renew(arguments: &RenewArguments) -> ExitCode {
    let (text, code) = match run(renewed(arguments)) {
        Err(error) => return failed(&error),
        Ok(Renewed::Until(not_after)) => (
            format!("{} has a new certificate, good until {}\n", printable(&arguments.name), date(not_after)),
            exit::SUCCESS,
        ),
        Ok(Renewed::Failed(why)) => {
            let name = printable(&arguments.name);
            (format!("{name}: {}; it is tried again\n", printable(&why)), exit::FAILURE)
        }
        Ok(Renewed::Unknown) => {
            let name = printable(&arguments.name);
            (
                format!("{name}: nothing came of it in {} s; the order goes on\n", arguments.wait),
                exit::FAILURE,
            )
        }
    };
    let printed = print_all(text.as_bytes());
    if code == exit::SUCCESS { printed } else { ExitCode::from(code) }
}

fn time_of(told: &CertificateTold) -> (i64, i64) {
    (told.not_before, told.not_after)
}

async fn renewed(arguments: &RenewArguments) -> Result<Renewed, AdminClientError> {
    let larder = arguments.admin.larder()?;
    let state = async || {
        let list: CertificateList = larder.ask_for(Method::GET, CERTIFICATES, WHAT).await?;
        let is_it = |told: &CertificateTold| told.file.is_none() && told.site == arguments.name;
        Ok::<_, AdminClientError>(list.certificates.into_iter().find(is_it))
    };
    let before = state().await?;
    let name = encoded(&arguments.name);
    larder.post(&format!("{CERTIFICATES}?name={name}"), RENEWAL, "{}".into(), |_| false).await?;
    let until = Instant::now() + Duration::from_secs(arguments.wait);
    let (time_before, failures_before) =
        before.map_or((None, 0), |told| (Some(time_of(&told)), told.failures));
    while Instant::now() < until {
        sleep(LOOK_EVERY).await;
        let Some(told) = state().await? else { continue };
        if told.not_after != 0 && time_before != Some(time_of(&told)) {
            return Ok(Renewed::Until(told.not_after));
        }
        // A failure of before stands there until this order is over.
        if let Some(why) = told.failure.filter(|_| told.failures != failures_before) {
            return Ok(Renewed::Failed(why));
        }
    }
    Ok(Renewed::Unknown)
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
