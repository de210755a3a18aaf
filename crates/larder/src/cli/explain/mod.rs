//! `larder explain`: why a request is answered as it is.
//!
//! In: a URL and what else a request may have. Out: an explanation on standard output, as text or as JSON; or one line
//! on standard error. Nothing is decided here: a running larder explains itself, and a config is explained by the same
//! code.

mod ask;
mod columns;
mod parts;
mod phrases;
mod purges;
mod records;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use larder_proxy::explain::Explanation;

use super::admin::{self, AddressArguments};
use super::ended::failed;
use super::exit;
use super::output::{complain, print_all, say};
use ask::{AskError, Asked};

/// An explanation as text, in lines of at most so many columns.
pub(super) fn explained(of: &Explanation, width: usize) -> String {
    text::text(of, width)
}

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArguments {
    /// The URL as a client asks for it: http://HOST/PATH
    url: String,
    /// A field of the request, "Name: value"; may be given several times
    #[arg(short = 'H', long = "field", value_name = "FIELD", value_parser = field)]
    fields: Vec<(String, String)>,
    /// The method
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// The content of a QUERY, which is part of its key
    #[arg(long, value_name = "TEXT", default_value = "")]
    content: String,
    /// Ask no running larder: explain by this config, with nothing stored
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["admin", "token"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    admin: AddressArguments,
    /// Never ask the origin, not even where nothing is stored
    #[arg(long)]
    offline: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected \"Name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn explain(arguments: &ExplainArguments) -> ExitCode {
    let asked = Asked {
        method: &arguments.method,
        url: &arguments.url,
        fields: &arguments.fields,
        content: &arguments.content,
        offline: arguments.offline,
    };
    let question = match asked.question() {
        Ok(question) => question,
        Err(error) => {
            complain(&error);
            return ExitCode::from(exit::USAGE);
        }
    };
    let checked = match arguments.config.as_deref().map(ask::load).transpose() {
        Ok(checked) => checked,
        Err(errors) => {
            say(errors);
            return ExitCode::from(exit::CONFIG);
        }
    };
    let explained = admin::run(async {
        match &checked {
            Some(checked) => ask::from_config(question, &checked.config).await,
            None => ask::running(&asked, &arguments.admin).await,
        }
    });
    match explained {
        Ok(explanation) => print(&explanation, arguments.json),
        Err(AskError::Admin(error)) => failed(&error),
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    }
}

fn print(explanation: &Explanation, json: bool) -> ExitCode {
    let out = match json {
        true => serde_json::to_string_pretty(explanation).map(|json| json + "\n"),
        false => Ok(text::text(explanation, columns::width())),
    };
    match out {
        Ok(out) => print_all(out.as_bytes()),
        Err(error) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
    }
}
