//! The larder of a demo: in front of one app, on free ports of loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use larder_http::time::Clock;
use larder_observe::Diagnostics;

use crate::server::Server;

/// How long what is left of a demo may take to end.
pub(super) const END_TIME: Duration = Duration::from_secs(2);

/// Starts a larder in front of `app`. `rules` is config text that follows the site: its settings and rules.
pub(super) fn front(app: SocketAddr, rules: &str) -> anyhow::Result<Server> {
    let config = format!(
        r#"
        listen = ["127.0.0.1:0"]
        admin = "127.0.0.1:0"

        [origins.demo]
        servers = ["http://{app}"]

        [[site]]
        origin = "demo"
        {rules}
        "#
    );
    started(&config)
}

/// Starts a larder with all of its config.
pub(super) fn started(config: &str) -> anyhow::Result<Server> {
    let checked = larder_config::parse(config, "demo", Path::new(""))?;
    let clock = Clock::default();
    let diagnostics = Diagnostics::stderr(clock.clone())?;
    Ok(Server::start(checked, clock, diagnostics)?)
}
