//! `larder warm`: asks for pages before visitors do, so that they are stored.
//!
//! In: URLs, files of URLs, sitemaps. Out: what became of each request, by Cache-Status. The requests go through a listener of larder
//! like those of any client, so that its sites, rules, keys and limits apply. `larder purge --warm` uses the same run by [`warm()`].
//! Deliberately absent: pages that link to others; HTTP/2 and TLS, which larder's key does not know.

mod client;
mod counts;
mod drive;
mod error;
mod list;
mod progress;
mod rate;
mod report;
mod sitemaps;
mod through;
mod url;

use std::path::PathBuf;
use std::process::ExitCode;

use http::header::{HeaderName, HeaderValue};
use larder_http::message::Scheme;

use super::admin::{AdminArguments, run};
use super::output::{complain, print_all, say};
use super::{ended, exit};
use client::WarmClient;
pub(super) use drive::{WarmOptions, warm};
pub(super) use error::WarmError;
use list::{Omitted, UrlList};
pub(super) use progress::ShownAs;
pub(super) use rate::Interval;
pub(super) use report::WarmReport;
pub(super) use through::{ListenerAddress, address};
pub(super) use url::WarmUrl;

/// Fields that the connection or another option determines, and what to use in their place.
const NOT_BY_HEADER: [(&str, &str); 9] = [
    ("accept-encoding", "--accept-encoding"),
    ("connection", "nothing: connections are kept"),
    ("content-length", "nothing: a GET has no content"),
    ("expect", "nothing: a GET has no content"),
    ("host", "the URL"),
    ("te", "nothing: trailers are dropped"),
    ("transfer-encoding", "nothing: a GET has no content"),
    ("upgrade", "nothing: connections are kept"),
    ("x-forwarded-proto", "--scheme"),
];

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["urls", "sitemaps", "files"]))]
pub(super) struct WarmArguments {
    /// URLs as visitors use them: http://HOST/PATH or https://HOST/PATH
    #[arg(value_name = "URL", value_parser = WarmUrl::parse)]
    urls: Vec<WarmUrl>,
    /// Every page of a sitemap, or of all sitemaps that an index names; may be given several times
    #[arg(long = "sitemap", value_name = "URL", value_parser = WarmUrl::parse)]
    sitemaps: Vec<WarmUrl>,
    /// Every URL of a file, one a line; - is standard input; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Requests under way at once, at most
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    at_once: u16,
    /// Requests that begin in a length of time, at most: 50/s, 300/min [default: no limit but --at-once]
    #[arg(long, value_name = "RATE", value_parser = Interval::parse)]
    rate: Option<Interval>,
    /// A field of each request, "Name: value"; may be given several times
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = field)]
    fields: Vec<(HeaderName, HeaderValue)>,
    /// The codings that visitors accept, of which larder stores the origin's choice
    #[arg(long, value_name = "VALUE", default_value = drive::ACCEPT_ENCODING, value_parser = HeaderValue::from_str)]
    accept_encoding: HeaderValue,
    /// The scheme that visitors use, in place of that of each URL; larder believes https only from an address in `trusted`
    #[arg(long, value_parser = scheme, value_name = "http|https")]
    scheme: Option<Scheme>,
    /// The listener to ask [default: the first of the config (-c), else the first of the running larder]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    through: Option<String>,
    /// Print JSON, one object at the end, and no progress
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

/// A run, and what its list lacked.
#[derive(serde::Serialize)]
struct Warmed {
    #[serde(flatten)]
    report: WarmReport,
    omitted: Omitted,
}

pub(super) fn command(arguments: &WarmArguments) -> ExitCode {
    match run(warmed(arguments)) {
        Ok(warmed) => tell(&warmed, arguments.json),
        Err(error) => failed(&error, "--scheme http"),
    }
}

/// The end of a command that could not begin to warm; `plain` is what makes it ask for http URLs.
pub(super) fn failed(error: &WarmError, plain: &str) -> ExitCode {
    if let WarmError::Admin(error) = error {
        return ended::failed(error);
    }
    complain(error);
    match error {
        WarmError::NotListening(..) => say("  hint: --through names another address"),
        WarmError::Untrusted(local, _) => {
            say(format_args!("  hint: put \"{local}\" into `trusted`; or {plain}, if visitors use that"))
        }
        _ => {}
    }
    ExitCode::from(exit::FAILURE)
}

/// Makes the list, then works it off.
async fn warmed(arguments: &WarmArguments) -> Result<Warmed, WarmError> {
    let listener = ListenerAddress::find(arguments.through.as_deref(), &arguments.admin).await?;
    let mut options = WarmOptions {
        at_once: usize::from(arguments.at_once),
        interval: arguments.rate,
        accept_encoding: arguments.accept_encoding.clone(),
        shown: if arguments.json { ShownAs::Nothing } else { ShownAs::on_stderr() },
        ..WarmOptions::new(&listener)
    };
    // A field that is given replaces what it would be else, and may have several lines.
    for (name, _) in &arguments.fields {
        options.fields.remove(name);
    }
    for (name, value) in &arguments.fields {
        options.fields.append(name, value.clone());
    }
    let mut list = UrlList::new(arguments.scheme);
    arguments.urls.iter().for_each(|url| list.add(url.clone()));
    for path in &arguments.files {
        let failed = |error| WarmError::File(path.display().to_string(), error);
        list.add_file(path).map_err(failed)?;
    }
    let sitemaps: Vec<_> = arguments.sitemaps.iter().map(|url| list.as_asked(url.clone())).collect();
    listener.check(list.urls.iter().chain(&sitemaps)).await?;
    if !sitemaps.is_empty() {
        let mut client = WarmClient::new(options.address.clone(), options.fields.clone());
        sitemaps::add(&sitemaps, &mut client, &mut list).await;
        listener.check(&list.urls).await?;
    }
    list.finish();
    Ok(Warmed { omitted: list.omitted, report: warm(list.urls, options).await })
}

fn tell(warmed: &Warmed, json: bool) -> ExitCode {
    let out = match json {
        true => serde_json::to_string(warmed).map(|json| json + "\n"),
        false => Ok(warmed.report.text() + &omitted(warmed.omitted)),
    };
    match out {
        Ok(out) => {
            // That nobody reads the result does not change it.
            print_all(out.as_bytes());
        }
        Err(error) => complain(&error),
    }
    match warmed.report.exit_code() {
        exit::SUCCESS if warmed.omitted.faults > 0 => ExitCode::from(exit::FAILURE),
        code => ExitCode::from(code),
    }
}

/// What the list lacks, in a line; nothing where it lacks nothing.
fn omitted(omitted: Omitted) -> String {
    let counts =
        [("fault", omitted.faults), ("of another site", omitted.other_site), ("twice", omitted.duplicates)];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    if counts.is_empty() { String::new() } else { format!("\nleft out: {}\n", counts.join(", ")) }
}

fn scheme(text: &str) -> Result<Scheme, String> {
    let known = [Scheme::Http, Scheme::Https].into_iter().find(|scheme| scheme.as_str() == text);
    known.ok_or_else(|| "expected http or https".to_owned())
}

fn field(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("expected \"Name: value\"")?;
    let name: HeaderName = name.trim().parse().map_err(|_| format!("{name:?} is no name of a field"))?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| "no value of a field".to_owned())?;
    match NOT_BY_HEADER.iter().find(|(forbidden, _)| name == *forbidden) {
        Some((_, instead)) => Err(format!("{name} is not given as a field; use {instead}")),
        None => Ok((name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_something_else_determines_are_refused() {
        let read = field("Accept-Language:  de, en;q=0.5 ").expect("a field");
        assert_eq!(read, (http::header::ACCEPT_LANGUAGE, HeaderValue::from_static("de, en;q=0.5")));
        for (text, part) in [
            ("Accept-Language de", "expected \"Name: value\""),
            (": x", "no name"),
            ("a b: x", "no name"),
            ("a: \u{7f}", "no value"),
            ("Host: a", "use the URL"),
            ("X-Forwarded-Proto: https", "use --scheme"),
            ("Accept-Encoding: br", "use --accept-encoding"),
        ] {
            let said = field(text).expect_err(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn what_the_list_lacks_is_one_line() {
        assert_eq!(omitted(Omitted::default()), "");
        let some = Omitted { faults: 1, other_site: 20, duplicates: 0 };
        assert_eq!(omitted(some), "\nleft out: fault 1, of another site 20\n");
    }
}
