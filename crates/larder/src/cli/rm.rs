//! `larder rm`: takes what is stored under URLs out of a running larder.
//!
//! In: URLs as clients ask for them. Out: how many responses went, from all stores, for each; and 0 only if all of it holds after a
//! crash as well. A URL under which nothing lies is no failure: it is as it should be.

use std::process::ExitCode;

use http::Method;
use larder_proxy::objects::Purged;

use super::admin::{AdminArguments, AdminError, encoded, run};
use super::table::count;
use super::{complain, exit, printable, write_out};

#[derive(Debug, clap::Args)]
pub(super) struct RmArguments {
    /// URLs as clients ask for them: http://HOST/PATH
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Print JSON, an object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn rm(arguments: &RmArguments) -> ExitCode {
    let mut code = 0;
    let done = run(async {
        for url in &arguments.urls {
            let target = format!("/object?url={}", encoded(url));
            match arguments
                .admin
                .ask_for::<Purged>(Method::DELETE, &target, "takes out what it has stored")
                .await
            {
                Ok(purged) => tell(&purged, arguments.json),
                // The others may still go, unless nobody is there to take them out.
                Err(error @ AdminError::Refused(..)) => {
                    complain(&error);
                    code = if error.is_of_the_question() { exit::USAGE } else { exit::FAILURE };
                }
                Err(error) => return Err(error),
            }
        }
        Ok::<_, AdminError>(())
    });
    if let Err(error) = done {
        complain(&error);
        code = exit::FAILURE;
    }
    ExitCode::from(code)
}

fn tell(purged: &Purged, json: bool) {
    let line = match json {
        true => serde_json::to_string(purged).unwrap_or_default(),
        false => {
            let responses = if purged.removed == 1 { "response" } else { "responses" };
            format!("{} {responses} removed: {}", count(purged.removed), printable(&purged.url))
        }
    };
    // That nobody reads it does not undo what was done, nor end it.
    let _ = write_out((line + "\n").as_bytes());
}
