//! `larder get`: what a running larder has stored under a URL.
//!
//! In: a URL as clients ask for it. Out: the body on standard output, byte for byte as it is stored, content coding
//! included; or with `--head` and `--json` what is known of all responses under the URL. A body that breaks off ends with 1.

use std::process::ExitCode;

use http::Method;
use larder_proxy::objects::{Object, StoredObject};

use super::admin::{AdminArguments, encoded, run};
use super::ls::distinction;
use super::table::{bytes, signed_time};
use super::{Ended, complain, exit, print_all, printable, write_out};

const WHAT: &str = "shows what it has stored";

#[derive(Debug, clap::Args)]
pub(super) struct GetArguments {
    /// The URL as a client asks for it: http://HOST/PATH
    url: String,
    /// Print what is known of each response under the URL, with its fields, in place of the body
    #[arg(long)]
    head: bool,
    /// The same as JSON
    #[arg(long)]
    json: bool,
    /// Which response, where several lie under the URL; as --head numbers them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["head", "json"])]
    response: u32,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn get(arguments: &GetArguments) -> ExitCode {
    let got = run(async {
        let target = format!("/object?url={}", encoded(&arguments.url));
        let object: Object = arguments.admin.ask_for(Method::GET, &target, WHAT).await?;
        if !arguments.head && !arguments.json {
            warn_of_others(&object, arguments.response);
            body(arguments, &target).await?;
        }
        Ok::<_, Ended>(object)
    });
    match got {
        Ok(object) if arguments.json => match serde_json::to_string_pretty(&object) {
            Ok(json) => print_all((json + "\n").as_bytes()),
            Err(error) => {
                complain(&error);
                ExitCode::from(exit::FAILURE)
            }
        },
        Ok(object) if arguments.head => print_all(heads(&object).as_bytes()),
        Ok(_) => ExitCode::SUCCESS,
        Err(ended) => ended.told(),
    }
}

/// Copies the body to standard output as it comes.
async fn body(arguments: &GetArguments, target: &str) -> Result<(), Ended> {
    let target = format!("{target}&body={}", arguments.response);
    let mut answer = arguments.admin.ask(Method::GET, &target, WHAT).await?;
    while let Some(bytes) = answer.next().await? {
        if !write_out(&bytes).map_err(Ended::Writing)? {
            break;
        }
    }
    Ok(())
}

fn warn_of_others(object: &Object, number: u32) {
    let count = object.responses.len();
    if count > 1 && usize::try_from(number).is_ok_and(|number| number <= count) {
        eprintln!(
            "larder: warning: {count} responses lie under this URL, and this is number {number}: \
             --head shows them, --response chooses another"
        );
    }
}

/// All responses with their fields.
fn heads(object: &Object) -> String {
    let mut text = String::new();
    for (index, response) in object.responses.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&head(index + 1, response));
    }
    text
}

fn places(of: &StoredObject) -> String {
    match (&of.file, of.by_hand) {
        (Some(file), true) => format!("{file}, put there by hand"),
        (Some(file), false) => file.clone(),
        (None, _) => of.places.join(", "),
    }
}

fn head(number: usize, of: &StoredObject) -> String {
    let ttl = match of.ttl_seconds {
        _ if of.invalidated => "gone: one of its cache groups was invalidated".to_owned(),
        _ if of.by_hand => "fresh for as long as it lies there".to_owned(),
        seconds if seconds < 0 => format!("stale for {}", signed_time(seconds.saturating_neg())),
        seconds => format!("fresh for {}", signed_time(seconds)),
    };
    let age = signed_time(i64::try_from(of.age_seconds).unwrap_or(i64::MAX));
    let lines = [
        format!("{number}  {} {}{}", of.status, of.url, distinction(of)),
        format!("   {} in store {}: {}", bytes(of.body_bytes), of.store, places(of)),
        format!("   age {age}, {ttl}; {} {}", if of.by_hand { "changed" } else { "stored" }, of.stored_at),
    ];
    let fields = of.fields.iter().map(|field| format!("   {}: {}", field.name, field.value));
    let mut text = String::new();
    for line in lines.into_iter().chain(fields) {
        text.push_str(&printable(&line));
        text.push('\n');
    }
    text
}
