//! The lines beside a plain file: what is read and written again is read as the same, and its times can be placed on any
//! clock.

use std::time::Duration;

use crate::allocated::in_proportion;
use larder_files::TargetUri;
use larder_files::fuzzing;
use larder_http::message::Scheme;
use larder_http::time::{Now, WallTime};

const URI: TargetUri<'_> =
    TargetUri { scheme: Scheme::Https, authority: "example.com", path: "/a%20b", query: Some("c") };

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let Some((meta, again)) = in_proportion(input.len(), || fuzzing::meta(input, &URI)) else { return };
    let (second, twice) = fuzzing::meta(&again, &URI).expect("what is written is read");
    assert_eq!((&second, &twice), (&meta, &again), "changed by writing it again");
    for (wall, monotonic) in [(0, 0), (1_700_000_000_000, 5), (u64::MAX, u64::MAX)] {
        let now = Now { wall: WallTime(wall), monotonic: Duration::from_millis(monotonic) };
        let freshness = meta.times.freshness(now);
        assert!(freshness.lifetime <= meta.times.lifetime, "longer than it was said");
        assert!(freshness.received.monotonic <= now.monotonic, "from the future");
        assert!(freshness.remaining(now) <= meta.times.lifetime);
    }
}
