//! What is asked for often is sent by the kernel from a file, to fast clients and slow ones, whole and in ranges, while it is
//! invalidated and fetched again: every byte is the right one.

use larder_testkit::client::{Progress, Request};
use larder_testkit::origin::Origin;
use larder_testkit::seeded::bytes_of;

use crate::support::{Process, answer_of, asking, assert_whole, connect, get, script, within};

const BODY_BYTES: u64 = 60_000;
const CLIENTS: u64 = 4;
/// More than sockets and windows hold.
const PIPELINED: u64 = 400;
const REQUESTS: u64 = 300;
const TARGET: &str = "/hot";

async fn one_client(number: u64, addr: std::net::SocketAddr) {
    let mut connection = connect(addr).await;
    for round in 0..REQUESTS {
        let first = (number * REQUESTS + round) * 7919 % BODY_BYTES;
        let request = match round % 4 {
            0 => asking(TARGET),
            1 => asking(TARGET).field("Range", &format!("bytes={first}-")),
            2 => asking(TARGET).field("Range", &format!("bytes={first}-{}", first + 20_000)),
            _ => asking(TARGET).field("Range", &format!("bytes=-{}", BODY_BYTES - first)),
        };
        let range = match round % 4 {
            0 => 0..BODY_BYTES,
            2 => first..(first + 20_001).min(BODY_BYTES),
            _ => first..BODY_BYTES,
        };
        let response = within("an answer", connection.exchange(&request)).await.unwrap();
        let expected = bytes_of(TARGET, range.start, range.end - range.start);
        assert!(response.body == expected, "client {number}, round {round}: {response}");
        if round % 100 == 99 {
            let refreshed = Request::new("POST", TARGET, "localhost");
            within("a POST", connection.exchange(&refreshed)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_is_sent_from_a_file_is_what_was_stored() {
    let answer = answer_of(&["Cache-Control: max-age=3600", "ETag: \"v1\""], BODY_BYTES);
    let origin = Origin::simple(vec![script(TARGET, answer)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    for _ in 0..200 {
        assert_whole(&within("an answer", get(larder.addr, TARGET)).await, TARGET, BODY_BYTES);
    }
    // One that has its head and has stopped reading holds what was sent to it while all changes.
    let progress = Progress::default().pause_at(100);
    let mut slow = connect(larder.addr).await;
    for _ in 0..PIPELINED {
        slow.write(&asking(TARGET).to_http1()).await.unwrap();
    }
    let watched = progress.clone();
    let slow = tokio::spawn(async move {
        for watched in std::iter::once(watched).chain((1..PIPELINED).map(|_| Progress::default())) {
            let response = slow.read_response("GET", &watched).await.unwrap();
            assert_whole(&response, TARGET, BODY_BYTES);
        }
    });
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(one_client(number, larder.addr))).collect();
    for client in clients {
        within("a client's requests", client).await.unwrap();
    }
    assert!(!slow.is_finished());
    let sent = larder.metrics().await.sum("larder_client_sent_bytes_total");
    progress.resume();
    within("the slow one", slow).await.unwrap();
    let metrics = larder.metrics().await;
    assert!(metrics.sum("larder_client_sent_bytes_total") > sent + BODY_BYTES, "nothing was left to send");
    let from_files = metrics.sum("larder_client_sent_from_files_bytes_total");
    let all = metrics.sum("larder_client_sent_bytes_total");
    assert!(all / 4 < from_files && from_files < all, "{from_files} of {all} bytes from files");
}
