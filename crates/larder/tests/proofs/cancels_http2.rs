//! HTTP/2 streams that their client resets, at every stage, fifty each on one connection: nothing is left of them, and
//! the connection goes on.

use larder_testkit::origin::{Answer, Hold, Origin};
use tokio::net::TcpStream;

use crate::support::{Process, answer_of, cacheable, config, script, until, within, written};

const TIMES: u64 = 50;
const BODY_BYTES: u64 = 200_000;

fn asking(target: &str) -> http::Request<()> {
    http::Request::get(format!("http://localhost{target}")).body(()).unwrap()
}

#[tokio::test]
async fn streams_that_are_reset_leave_nothing() {
    let held =
        Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], BODY_BYTES) };
    let half = |fields: &str| Answer {
        holds: vec![Hold { at: 30_000, gate: "go".to_owned() }],
        ..answer_of(&[fields], BODY_BYTES)
    };
    let origin = Origin::simple(vec![
        script("/head/*", held),
        script("/stored/*", half("Cache-Control: max-age=60")),
        script("/private/*", half("Cache-Control: private")),
        cacheable("/plain", 10),
    ])
    .unwrap();
    let (_directory, path) = written(&config(&origin.url(), "workers = 2", ""));
    let larder = Process::run_config(&path).await;
    let before = larder.idle_usage().await;

    let stream = TcpStream::connect(larder.addr).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    for stage in ["head", "stored", "private"] {
        for n in 0..TIMES {
            let target = format!("/{stage}/{n}");
            client = within("a free stream", client.ready()).await.unwrap();
            let (response, mut sent) = client.send_request(asking(&target), true).unwrap();
            if stage == "head" {
                let asked =
                    |log: &larder_testkit::origin::Log| log.all().iter().any(|seen| seen.target == target);
                within("the origin's request", origin.log().until(asked)).await;
                sent.send_reset(h2::Reason::CANCEL);
            } else {
                let mut body = within("a head", response).await.unwrap().into_body();
                let first = within("a part of the body", body.data()).await.unwrap().unwrap();
                assert!(!first.is_empty());
                sent.send_reset(h2::Reason::CANCEL);
            }
        }
        if stage == "private" {
            let gone = async || !origin.log().all().is_empty() && origin.log().in_flight() <= 2 * TIMES;
            until("what is of no use to others has ended", gone).await;
        }
    }
    // The connection has outlived all of them.
    client = within("a free stream", client.ready()).await.unwrap();
    let (response, _) = client.send_request(asking("/plain"), true).unwrap();
    assert_eq!(within("an answer", response).await.unwrap().status(), 200);
    origin.gates().release("go");
    drop(client);
    connection.abort();
    larder.comes_back_to(&before).await;
    assert_eq!(origin.log().count(), 3 * TIMES + 1, "{:?}", origin.log().complaints());
}
