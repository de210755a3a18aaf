//! Every scenario of tests/scenarios against a larder in this process: real sockets, and a clock that steps move; and in the
//! same program the suites of hostile clients and origins.
#![allow(clippy::unwrap_used)]

mod hostile;

use std::path::Path;
use std::time::Duration;

use larder::server::Server;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_testkit::scenario::{Larder, Started, run_all};

#[derive(Default)]
struct InProcess {
    clock: Clock,
    server: Option<Server>,
}

fn check(config: &str) -> Result<larder_config::Checked, String> {
    larder_config::parse(config, "scenario", Path::new(".")).map_err(|errors| errors.to_string())
}

impl Larder for InProcess {
    fn start(&mut self, config: &str) -> Result<Started, String> {
        let server = Server::start(check(config)?, self.clock.clone(), Diagnostics::silent());
        let server = server.map_err(|error| error.to_string())?;
        let addr = *server.addresses().first().ok_or("no listener")?;
        let admin = server.admin_address().ok_or("no admin")?;
        self.server = Some(server);
        Ok(Started { addr, admin })
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
    }

    fn reload(&mut self, config: &str) -> Result<(), String> {
        let checked = check(config)?;
        let server = self.server.as_mut().ok_or("not started")?;
        server.reload(checked).map(|_| ()).map_err(|error| error.to_string())
    }

    fn stop(&mut self) -> Result<(), String> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let left = runtime.unwrap().block_on(server.drain(Duration::from_secs(5)));
        if left == 0 { Ok(()) } else { Err(format!("{left} connections did not end")) }
    }

    fn metric(&self, series: &str) -> Option<f64> {
        let text = self.server.as_ref()?.insight().metrics_text();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels: Vec<&str> =
            labels.trim_end_matches('}').split(',').filter(|one| !one.is_empty()).collect();
        let values = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let said = series.strip_prefix(name)?;
            let is_it =
                said.is_empty() || (said.starts_with('{') && labels.iter().all(|one| said.contains(one)));
            if is_it { value.parse::<f64>().ok() } else { None }
        });
        values.reduce(|sum, value| sum + value)
    }
}

/// `SCENARIO=part-of-a-path` runs some of them.
#[test]
fn scenarios() {
    let turn = hostile::suite::Turn::take();
    let only = std::env::var("SCENARIO").ok();
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    run_all(&scenarios, 4, only.as_deref(), &|| Box::new(InProcess::default())).assert_passed();
    turn.end().unwrap();
}
