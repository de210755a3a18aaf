//! The memory cap under a flood of distinct URLs: what the store says it holds, and what the process really holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_testkit::origin::Origin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Process, answer_of, asking, assert_whole, cacheable, connect, script, until};

const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// What a process needs beside its store: the binary itself, buffers of connections, the allocator's slack.
const BESIDE_BYTES: u64 = 64 * 1024 * 1024;
const CLIENTS: u64 = 8;
/// Some 160 MiB in all, ten times the cap.
const EACH: u64 = 640;
const BODY_BYTES: u64 = 32 * 1024;

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
            let resident = larder.resident_bytes();
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

/// Less than what the page on operating states for a client over HTTP/1, with the default `head_size`, and its connection to the
/// origin: not all of their buffers are full at once. In eight runs they took 490 to 528 KB together.
const CLIENT_BYTES: u64 = (32 + 288) * 1024;
const ORIGIN_BYTES: u64 = 224 * 1024;
const SLOW: u64 = 48;
/// Readers before them: by then the process has what any number of readers needs once.
const FIRST: u64 = 16;

#[tokio::test]
async fn slow_readers_of_bodies_that_are_not_stored_take_no_more_memory_than_is_stated() {
    let large = answer_of(&["Cache-Control: no-store"], 16 * 1024 * 1024);
    let origin = Origin::simple(vec![script("/large*", large)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--memory", "16MiB", "--workers", "2"]).await;
    let mut clients = slow_readers(&larder, 0..FIRST).await;
    let before = larder.resident_bytes();
    clients.extend(slow_readers(&larder, FIRST..FIRST + SLOW).await);
    let each = || (larder.resident_bytes().saturating_sub(before)) / SLOW;
    println!("{} bytes for each of {SLOW} slow readers", each());
    // Memory that was needed in passing goes back to the system within seconds, as the process goes on.
    until("each slow reader takes no more than is stated", async || {
        larder.metrics().await;
        each() <= CLIENT_BYTES + ORIGIN_BYTES
    })
    .await;
    assert_eq!(larder.metrics().await.sum("larder_connections_open"), FIRST + SLOW);
}

/// Clients that have read 100 bytes each, when nothing moves any more: all that is held for them is held.
async fn slow_readers(larder: &Process, numbers: std::ops::Range<u64>) -> Vec<TcpStream> {
    let mut clients = Vec::new();
    for n in numbers {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut client = socket.connect(larder.addr).await.unwrap();
        client.write_all(&asking(&format!("/large/{n}")).to_http1()).await.unwrap();
        client.read_exact(&mut [0; 100]).await.unwrap();
        clients.push(client);
    }
    let (last, times) = (AtomicU64::new(0), AtomicU64::new(0));
    until("they are stuck", async || {
        let metrics = larder.metrics().await;
        let moved = metrics.sum("larder_client_sent_bytes_total");
        let is_same = last.swap(moved, Ordering::Relaxed) == moved;
        times.store(if is_same { times.load(Ordering::Relaxed) + 1 } else { 0 }, Ordering::Relaxed);
        times.load(Ordering::Relaxed) >= 8
    })
    .await;
    clients
}
