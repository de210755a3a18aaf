//! `larder rm`: takes what is stored under URLs out of a running larder.
//!
//! In: URLs as clients ask for them. Out: how many responses went, from all stores, for each; and 0 only if all of it holds after a
//! crash as well. A URL under which nothing lies is no failure: it is as it should be. Only where it ends in `*` is it one: such a
//! URL was meant as a pattern, and none is matched.

use std::process::ExitCode;

use http::Method;
use larder_proxy::objects::Purged;

use super::admin::{AdminArguments, AdminClientError, encoded, run};
use super::ended::failed;
use super::exit;
use super::output::{complain, printable, say, write_out};
use super::table::counted;

#[derive(Debug, clap::Args)]
pub(super) struct RmArguments {
    /// URLs as clients ask for them: http://HOST/PATH; whole ones, no patterns
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
        let larder = arguments.admin.larder()?;
        for url in &arguments.urls {
            let target = format!("/object?url={}", encoded(url));
            match larder.ask_for::<Purged>(Method::DELETE, &target, "takes out what it has stored").await {
                Ok(Purged { removed: 0, .. }) if url.ends_with('*') => {
                    say(no_pattern(url));
                    code = exit::USAGE;
                }
                Ok(purged) => tell(&purged, arguments.json),
                // The others may still go, unless nobody is there to take them out.
                Err(error @ AdminClientError::Refused(..)) => {
                    complain(&error);
                    code = if error.is_of_the_question() { exit::USAGE } else { exit::FAILURE };
                }
                Err(error) => return Err(error),
            }
        }
        Ok::<_, AdminClientError>(())
    });
    match done {
        Ok(()) => ExitCode::from(code),
        Err(error) => failed(&error),
    }
}

/// Says what works in place of a pattern.
fn no_pattern(url: &str) -> String {
    let url = printable(url);
    let error = format!("nothing removed: rm takes whole URLs, and nothing is stored under {url} itself");
    let hint = format!("with the same options, larder ls --urls '{url}' | xargs -r -d '\\n' larder rm");
    format!("larder: error: {error}\n  hint: {hint}")
}

fn tell(purged: &Purged, json: bool) {
    let line = match json {
        true => serde_json::to_string(purged).unwrap_or_default(),
        false => {
            let gone = counted(purged.removed, "response", "responses");
            format!("{gone} removed: {}", printable(&purged.url))
        }
    };
    // That nobody reads it does not undo what was done, nor end it.
    let _ = write_out((line + "\n").as_bytes());
}
