//! The memory cap under a flood of distinct URLs: what the store says it holds, and what the process really holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::origin::Origin;

use crate::support::{Process, asking, assert_whole, cacheable, connect};

const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// What a process needs beside its store: the binary itself, buffers of connections, the allocator's slack.
const BESIDE_BYTES: u64 = 64 * 1024 * 1024;
const CLIENTS: u64 = 8;
/// Some 160 MiB in all, ten times the cap.
const EACH: u64 = 640;
const BODY_BYTES: u64 = 32 * 1024;

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_flood_of_urls_never_exceeds_the_memory_that_was_given() {
    let origin = Origin::simple(vec![cacheable("/*", BODY_BYTES)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--memory", "16MiB", "--workers", "2"]).await;
    let over = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicU64::new(0));
    let flood: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (addr, served) = (larder.addr, Arc::clone(&served));
            tokio::spawn(async move {
                let mut connection = connect(addr).await;
                for n in 0..EACH {
                    let target = format!("/{client}/{n}");
                    let response = connection.exchange(&asking(&target)).await.unwrap();
                    assert_whole(&response, &target, BODY_BYTES);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let watched = Arc::clone(&over);
    let (mut samples, mut most_resident, mut most_held) = (0, 0, 0);
    let sampling = async {
        loop {
            let last = watched.load(Ordering::Relaxed);
            let held = larder.metrics().await.sum("larder_cache_bytes");
            let resident = resident_bytes(larder.pid);
            assert!(held <= MAX_BYTES, "the store holds {held} bytes after {samples} samples");
            let allowed = MAX_BYTES * 13 / 10 + BESIDE_BYTES;
            assert!(resident <= allowed, "{resident} bytes are resident, {allowed} allowed");
            (samples, most_held, most_resident) =
                (samples + 1, most_held.max(held), most_resident.max(resident));
            if last {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let flooding = async {
        for client in flood {
            client.await.unwrap();
        }
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(sampling, flooding);
    assert_eq!(served.load(Ordering::Relaxed), CLIENTS * EACH);
    assert!(most_held > MAX_BYTES / 2, "the flood did not fill the store: {most_held}");
    assert!(samples > 10, "{samples} samples");
    let metrics = larder.metrics().await;
    assert!(metrics.sum("larder_cache_evictions_total") > CLIENTS * EACH / 2);
    println!("{samples} samples: at most {most_held} bytes held and {most_resident} resident");
}
