//! What `larder purge` takes on its command line.

use std::time::Duration;

use crate::cli::admin::AdminArguments;
use crate::cli::warm;

#[derive(Debug, clap::Args)]
#[group(id = "named", required = true, multiple = true)]
pub(in crate::cli) struct PurgeArguments {
    /// URLs as clients ask for them: http://HOST/PATH
    #[arg(value_name = "URL", group = "named")]
    pub(super) urls: Vec<String>,
    /// Every response with this tag; may be repeated, as all of these
    #[arg(long = "tag", value_name = "TAG", group = "named")]
    pub(super) tags: Vec<String>,
    /// Everything below a path: http://HOST/PATH/, or /PATH/ at every host
    #[arg(long = "prefix", value_name = "URL/", group = "named")]
    pub(super) prefixes: Vec<String>,
    /// Every response whose path and query match a regular expression
    #[arg(long = "pattern", value_name = "RE", group = "named")]
    pub(super) patterns: Vec<String>,
    /// Everything at a host
    #[arg(long = "host", value_name = "HOST", group = "named")]
    pub(super) hosts: Vec<String>,
    /// Every response in a cache group (RFC 9875) of an origin such as https://HOST
    #[arg(long = "group", num_args = 2, value_names = ["ORIGIN", "NAME"], group = "named")]
    pub(super) groups: Vec<String>,
    /// Everything
    #[arg(long, group = "named")]
    pub(super) all: bool,
    /// Only responses of the site that this host belongs to
    #[arg(long, value_name = "HOST")]
    pub(super) site: Option<String>,
    /// Make it stale in place of gone: it may be used while it is refreshed, and for an origin that fails
    #[arg(long)]
    pub(super) soft: bool,
    /// How long to wait until the purge is written down, such as 10s, at most 60s; after that it exits with an error, and larder tries on
    #[arg(long, value_name = "TIME", value_parser = wait)]
    pub(super) wait: Option<Duration>,
    /// Ask for the URLs that were purged, once the purge holds, as larder warm does; not for what tags and other names concern
    #[arg(long)]
    pub(super) warm: bool,
    /// The listener to ask with --warm [default: the first of the config (-c), else the first of the running larder]
    #[arg(long, value_parser = warm::address, value_name = "ADDRESS", requires = "warm")]
    pub(super) through: Option<String>,
    /// Print JSON; with --warm a second object, for what became of the requests
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) admin: AdminArguments,
}

/// The longest that larder waits for the journals.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn wait(text: &str) -> Result<Duration, String> {
    match larder_config::read_duration(text) {
        Ok(wait) if !wait.is_zero() && wait <= WAIT_MAX => Ok(wait),
        _ => Err("expected a time above 0 and at most 60s, such as 10s".to_owned()),
    }
}
