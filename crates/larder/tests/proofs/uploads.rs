//! An upload that its client cuts never looks whole to the origin, whatever its framing and however it is cut.

use larder_testkit::client::{Content, Request};
use larder_testkit::origin::{Origin, PathScript};

use crate::support::{BOUND, Process, answer_of, connect, script, within};

#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The client ends its direction in order.
    HalfClose,
    Close,
    Reset,
}

fn scripts() -> Vec<PathScript> {
    vec![script("/up*", answer_of(&[], 5))]
}

#[tokio::test]
async fn a_cut_upload_never_reaches_the_origin_as_whole() {
    let origin = Origin::simple(scripts()).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    let before = larder.idle_usage().await;
    let sent: [(&str, &str); 5] = [
        ("Content-Length: 1000", "half of it"),
        ("Transfer-Encoding: chunked", "a\r\nhalf of it\r\n"),
        ("Transfer-Encoding: chunked", "ff\r\nhalf of a chunk"),
        ("Transfer-Encoding: chunked", "a\r\nhalf of it\r\n0\r\n"),
        ("Transfer-Encoding: chunked", "a\r\nhalf of it\r\n0"),
    ];
    let mut uploads = 0;
    for (framing, part) in sent {
        for cut in [Cut::HalfClose, Cut::Close, Cut::Reset] {
            uploads += 1;
            let target = format!("/up/{uploads}");
            let mut client = connect(larder.addr).await;
            let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n{part}");
            client.write(head.as_bytes()).await.unwrap();
            within("the origin's request", origin.log().until(|log| log.count() == uploads)).await;
            match cut {
                Cut::HalfClose => {
                    client.close_write().await.unwrap();
                    let answer = client.read_response("POST", &Default::default()).await;
                    let status = answer.map(|answer| answer.status).unwrap_or(400);
                    assert!(status == 400, "{framing} {cut:?}: {status}");
                }
                Cut::Close => drop(client),
                Cut::Reset => client.abort(),
            }
            within("its end at the origin", origin.log().until(|log| log.connections_open() == 0)).await;
            let seen = origin.log().last().unwrap();
            assert_eq!(seen.target, target);
            assert!(!seen.body_complete, "{framing} {part:?} {cut:?}: {seen}");
        }
    }
    larder.comes_back_to(&before).await;
}

#[tokio::test]
async fn whole_uploads_arrive_whole() {
    let origin = Origin::simple(scripts()).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let body = larder_testkit::seeded::bytes_of("upload", 0, 3_000_000);
    for content in [Content::Length(body.clone()), Content::Chunked(body.clone())] {
        let request = Request { content, ..Request::new("POST", "/up", "localhost") };
        let mut client = larder_testkit::client::Connection::open(larder.addr, BOUND).await.unwrap();
        let response = client.exchange(&request).await.unwrap();
        assert_eq!(response.status, 200, "{response}");
        let seen = origin.log().last().unwrap();
        assert!(seen.body_complete && seen.body == body, "{seen}");
    }
}
