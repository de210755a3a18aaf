//! Plain files as a tier, against what every tier must do.

use larder_http::time::Clock;
use larder_tier::contract::{Subject, run};

use super::*;
use crate::tier::HttpCaching;

#[test]
fn plain_files_are_a_tier() {
    let fixture = Fixture::with(64 << 20, |settings| settings.max_object = 16 << 20);
    let head = holds::head(200, &[("cache-control", "max-age=60")]);
    let subject = Subject { tier: Arc::clone(&fixture.store) as _, head, now: Clock::default().now() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run::<HttpCaching>(&subject));
}
