//! What a running larder tells of itself at its admin address.
//!
//! In: the address and a metric's name. Out: the samples of that metric, added up over its labels: how many disks or reasons
//! there are is none of a measurement's business.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

const METRICS_MAX: Duration = Duration::from_secs(10);

/// The value of a metric, over all its labels.
///
/// # Errors
/// Nobody answers there, or there is no such metric.
pub(super) fn told(admin: SocketAddr, name: &str) -> Result<u64> {
    let mut stream = TcpStream::connect_timeout(&admin, METRICS_MAX).context("the admin address")?;
    stream.set_read_timeout(Some(METRICS_MAX))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    sum_of(&answer, name).with_context(|| format!("no {name} in /metrics"))
}

/// The samples of one metric, added up over its labels.
fn sum_of(metrics: &str, name: &str) -> Option<u64> {
    let sample = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let value = rest.strip_prefix('{').map_or(Some(rest), |rest| Some(rest.rsplit_once('}')?.1))?;
        value.strip_prefix(' ')?.trim().parse::<u64>().ok()
    };
    metrics.lines().filter_map(sample).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_added_up_over_its_labels() {
        let metrics = "# TYPE larder_disk_index_bytes gauge\nlarder_disk_index_bytes{store=\"a\",disk=\"}\"} 5\n\
                       larder_disk_index_bytes{store=\"b\"} 7\nlarder_disk_index_bytes_max 100\n";
        assert_eq!(sum_of(metrics, "larder_disk_index_bytes"), Some(12));
        assert_eq!(sum_of("larder_disk_index_bytes 3\n", "larder_disk_index_bytes"), Some(3));
        assert_eq!(sum_of(metrics, "larder_disk"), None);
    }
}
