//! `larder get`: what a running larder has stored under a URL.
//!
//! In: a URL as clients ask for it. Out: the body on standard output or in a file, byte for byte as it is stored, content coding
//! included; or with `--head` and `--json` what is known of all responses under the URL. With `--assembled` the same of the page that
//! larder makes of a stored template. A body that breaks off ends with 1, and
//! so does one that is not text where standard output is a terminal.

use std::fs::File;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::Method;
use larder_proxy::objects::{AssembledPage, Object, StoredObject};

use super::admin::{AdminArguments, RunningLarder, encoded, run};
use super::ended::Ended;
use super::exit;
use super::ls::distinction;
use super::output::{complain, print_all, printable, say, write_out};
use super::table::{bytes, counted, signed_time};

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
    /// The page that larder puts together from the stored template and fragments, for a visitor who sends no field
    #[arg(long, conflicts_with = "response")]
    assembled: bool,
    /// Write the body to a file; - is standard output, whatever the body is
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["head", "json"])]
    output: Option<PathBuf>,
    /// Which response, where several lie under the URL; as --head numbers them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["head", "json"])]
    response: u32,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn get(arguments: &GetArguments) -> ExitCode {
    if arguments.assembled {
        return assembled(arguments);
    }
    let got = run(async {
        let larder = arguments.admin.larder()?;
        let target = format!("/object?url={}", encoded(&arguments.url));
        let object: Object = larder.ask_for(Method::GET, &target, WHAT).await?;
        if !arguments.head && !arguments.json {
            warn_of_others(&object, arguments.response);
            body(arguments, &larder, &format!("{target}&body={}", arguments.response)).await?;
        }
        Ok::<_, Ended>(object)
    });
    match got {
        Ok(object) if arguments.json => json(&object),
        Ok(object) if arguments.head => print_all(heads(&object).as_bytes()),
        Ok(_) => ExitCode::SUCCESS,
        Err(ended) => ended.told(),
    }
}

/// The page of a stored template, or its head.
fn assembled(arguments: &GetArguments) -> ExitCode {
    let only_head = arguments.head || arguments.json;
    let got = run(async {
        let larder = arguments.admin.larder()?;
        let target = format!("/object?url={}&assembled=page", encoded(&arguments.url));
        let page: AssembledPage = larder.ask_for(Method::GET, &target, WHAT).await?;
        if !only_head && page.body_bytes.is_some() {
            if let Some(why) = &page.left_out {
                let why = printable(&format!("{}: {}", why.token, why.sentence));
                say(format_args!("larder: warning: larder export leaves this page out: {why}"));
            }
            body(arguments, &larder, &format!("{target}&body=1")).await?;
        }
        Ok::<_, Ended>(page)
    });
    match got {
        Ok(page) if arguments.json => json(&page),
        Ok(AssembledPage { body_bytes: None, left_out: Some(why), .. }) => {
            let why = printable(&format!("{}: {}", why.token, why.sentence));
            say(format_args!("larder: error: there is no page: {why}"));
            ExitCode::from(exit::FAILURE)
        }
        Ok(page) if arguments.head => print_all(page_head(&page).as_bytes()),
        Ok(_) => ExitCode::SUCCESS,
        Err(ended) => ended.told(),
    }
}

fn json(value: &impl serde::Serialize) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(json) => print_all((json + "\n").as_bytes()),
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    }
}

/// Copies the body to where it is wanted as it comes.
async fn body(arguments: &GetArguments, larder: &RunningLarder, target: &str) -> Result<(), Ended> {
    let mut answer = larder.ask(Method::GET, target, WHAT).await?;
    let output = arguments.output.as_deref();
    let mut file = match output.filter(|path| *path != Path::new("-")) {
        Some(path) => Some(File::create(path).map_err(|error| Ended::File(path.to_owned(), error))?),
        None => None,
    };
    let only_text = output.is_none() && std::io::stdout().is_terminal();
    while let Some(bytes) = answer.next().await? {
        if only_text && !is_text(&bytes) {
            return Err(Ended::NotText);
        }
        match (&mut file, output) {
            (Some(file), Some(path)) => {
                file.write_all(&bytes).map_err(|error| Ended::File(path.to_owned(), error))?;
            }
            _ if !write_out(&bytes).map_err(Ended::Writing)? => break,
            _ => {}
        }
    }
    Ok(())
}

/// Whether a terminal shows these bytes and does nothing else with them. A character that two pieces share counts as one.
fn is_text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.chars().all(|one| !one.is_control() || matches!(one, '\t' | '\n' | '\r' | '\u{c}'))
}

fn warn_of_others(object: &Object, number: u32) {
    let count = object.responses.len();
    if count > 1 && usize::try_from(number).is_ok_and(|number| number <= count) {
        say(format_args!(
            "larder: warning: {} lie under this URL, and this is number {number}: \
             --head shows them, --response chooses another",
            counted(count as u64, "response", "responses")
        ));
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
        _ if of.gone => "gone: it was purged, or one of its cache groups was removed".to_owned(),
        _ if of.soft => "stale: a soft purge has ended its lifetime".to_owned(),
        _ if of.invalidated => "invalidated: validated before it is used again".to_owned(),
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
    let language = of.language.iter().map(|language| {
        format!("   a template in {}: --assembled shows its page", language.to_ascii_uppercase())
    });
    let cookies = [("sets", &of.cookies), ("came with, and is stored without", &of.cookies_withheld)];
    let cookies = cookies.into_iter().filter(|(_, names)| !names.is_empty());
    let cookies = cookies.map(|(how, names)| format!("   {how} the cookies {}", names.join(", ")));
    let fields = of.fields.iter().map(|field| format!("   {}: {}", field.name, field.value));
    let mut text = String::new();
    for line in lines.into_iter().chain(language).chain(cookies).chain(fields) {
        text.push_str(&printable(&line));
        text.push('\n');
    }
    text
}

/// The head of a page that was put together.
fn page_head(of: &AssembledPage) -> String {
    let what = match &of.language {
        Some(language) => format!("a page from a template in {}", language.to_ascii_uppercase()),
        None => "no template: sent as it is stored".to_owned(),
    };
    let first = format!("{} {}", of.status, of.url);
    let second = format!("   {}, {what}", bytes(of.body_bytes.unwrap_or_default()));
    let left_out = of
        .left_out
        .iter()
        .map(|why| format!("   larder export leaves it out: {}: {}", why.token, why.sentence));
    let fields = of.fields.iter().map(|field| format!("   {}: {}", field.name, field.value));
    let lines = [first, second].into_iter().chain(left_out).chain(fields);
    lines.map(|line| printable(&line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use larder_proxy::explain::Field;
    use larder_proxy::objects::PageLeftOut;

    use super::*;

    #[test]
    fn a_page_is_told_with_what_a_client_gets_and_why_it_is_not_for_all() {
        let left_out =
            PageLeftOut { token: "personal".to_owned(), sentence: "It is for one\u{1b} visitor.".to_owned() };
        let page = AssembledPage {
            url: "http://a/".to_owned(),
            language: Some("ssi".to_owned()),
            status: 200,
            fields: vec![Field { name: "etag".to_owned(), value: "\"x\"".to_owned() }],
            body_bytes: Some(2048),
            left_out: Some(left_out),
        };
        let expected = "200 http://a/\n   2.0 KiB, a page from a template in SSI\n   larder export leaves it out: \
                        personal: It is for one\\u{1b} visitor.\n   etag: \"x\"\n";
        assert_eq!(page_head(&page), expected);
        let plain = AssembledPage { language: None, left_out: None, fields: Vec::new(), ..page };
        assert_eq!(page_head(&plain), "200 http://a/\n   2.0 KiB, no template: sent as it is stored\n");
    }

    #[test]
    fn text_is_what_a_terminal_only_shows() {
        for text in ["", "a\tb\r\n", "é \u{1f600} \u{fffd}", "caf\u{e9}"] {
            assert!(is_text(text.as_bytes()), "{text:?}");
        }
        // Another charset, and a character that the piece cuts.
        assert!(is_text(b"caf\xe9") && is_text(&"é".as_bytes()[..1]));
        for binary in [&b"\x1f\x8b\x08"[..], b"\x1b[2J", b"a\0", b"\x7f", "\u{9b}2J".as_bytes()] {
            assert!(!is_text(binary), "{binary:?}");
        }
    }
}
