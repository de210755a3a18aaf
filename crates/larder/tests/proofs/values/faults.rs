//! Servers that are down, hang, send rubbish or come late: a miss within the time limit, then none, and never another's value.

use std::time::{Duration, Instant};

use larder_testkit::origin::{Origin, PathScript};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{Setup, config, is_from_origin, is_hit, page};
use crate::support::{Process, cacheable, get, script, until, within};

/// The default.
const TIMEOUT: Duration = Duration::from_millis(200);

fn pages() -> Vec<PathScript> {
    vec![script("/*", page(&["Cache-Control: no-store"], "from the origin"))]
}

#[tokio::test]
async fn a_server_that_hangs_costs_its_time_limit_a_few_times_and_then_nothing() {
    let setup = Setup::new(pages(), "near = \"0s\"", "").await;
    setup.set("/a", "value");
    is_hit(&setup.get("/a").await, "value");
    setup.memcached.stop();
    let is_left_alone = async || setup.larder.metrics().await.sum("larder_remote_server_up") == 0;
    for _ in 0..20 {
        let begun = Instant::now();
        is_from_origin(&setup.get("/b").await, "from the origin");
        assert!(begun.elapsed() < TIMEOUT + Duration::from_secs(1), "{:?}", begun.elapsed());
        if is_left_alone().await {
            break;
        }
    }
    assert!(is_left_alone().await);
    let begun = Instant::now();
    for _ in 0..50 {
        is_from_origin(&setup.get("/b").await, "from the origin");
    }
    assert!(begun.elapsed() < 10 * TIMEOUT, "50 of them have waited: {:?}", begun.elapsed());
    assert!(setup.lookups("skipped").await >= 50);
    // A copy that is stale stays, and stands in for an origin that is dead.
    setup.memcached.resume();
    until("it is found again", async || setup.get("/a").await.body == b"value").await;
}

#[tokio::test]
async fn with_server_and_origin_down_the_last_copy_stands_in() {
    let mut setup = Setup::new(pages(), "near = \"0s\"", "").await;
    setup.set("/a", "value");
    is_hit(&setup.get("/a").await, "value");
    setup.memcached.kill();
    setup.origin.stop().await;
    let answer = setup.get("/a").await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"value"[..]), "{answer}");
    assert_eq!(setup.get("/never").await.status, 502);
    // With the server back its value goes before the stale copy, and the origin is not missed.
    setup.memcached.restart();
    setup.set("/a", "new");
    until("the new one is found", async || setup.get("/a").await.body == b"new").await;
}

/// A larder before a server that does to each connection what `serve` says.
async fn before<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(BufReader<TcpStream>) -> F + Send + Sync + 'static,
) -> (Process, Origin, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(BufReader::new(stream)));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable("/*", 100)]).unwrap();
    let path = config(folder.path(), &address, &origin.url(), "near = \"0s\"", "");
    (Process::run_config(&path).await, origin, folder)
}

/// The next line without its end.
async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

#[tokio::test]
async fn rubbish_and_a_value_of_another_key_are_misses() {
    for reply in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "VA 5 k/another f0 t60\r\nother\r\n",
        "VA 5 f0 t60\r\nother\r\n",
        "VALUE /a 0 5\r\nother\r\nEND\r\n",
        "VA 99999999999 k/a f0 t60\r\n",
        "EN\r\nEN\r\nVA 5 k/a f0 t60\r\nother\r\n",
        "",
    ] {
        let (larder, _origin, _folder) = before(move |mut stream| async move {
            while let Some(line) = line(&mut stream).await {
                let answer = if line == "mn" { "MN\r\n" } else { reply };
                if stream.get_mut().write_all(answer.as_bytes()).await.is_err() || answer.is_empty() {
                    return;
                }
            }
        })
        .await;
        for target in ["/b", "/c"] {
            let answer = within(reply, get(larder.addr, target)).await;
            assert_ne!(answer.body, b"other", "{reply:?}: {answer}");
            assert_eq!((answer.status, answer.body.len()), (200, 100), "{reply:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_comes_late_is_for_nobody() {
    let (larder, origin, _folder) = before(|mut stream| async move {
        let mut waiting: Vec<String> = Vec::new();
        while let Some(line) = line(&mut stream).await {
            if line == "mn" {
                stream.get_mut().write_all(b"MN\r\n").await.unwrap();
                continue;
            }
            waiting.push(line.split(' ').nth(1).unwrap().to_owned());
            // Every second look is answered, both of them then: the first is late.
            if waiting.len() == 2 {
                for key in waiting.drain(..) {
                    let value = format!("VA {} k{key} f0 t60\r\n{key}\r\n", key.len());
                    stream.get_mut().write_all(value.as_bytes()).await.unwrap();
                }
            }
        }
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let late = within("the first", get(larder.addr, "/late")).await;
    assert_eq!(late.body.len(), 100, "{late}");
    // Of two workers the one or the other; each has a connection of its own.
    for number in 0..20 {
        let target = format!("/{number}");
        let answer = within("a later one", get(larder.addr, &target)).await;
        assert!(answer.body == target.as_bytes() || answer.body.len() == 100, "{target}: {answer}");
    }
    assert!(origin.log().count() > 0);
}
