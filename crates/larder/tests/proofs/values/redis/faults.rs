//! Servers that are down, hang, want a password, send rubbish or come late: a miss, and never another's value.

use std::time::{Duration, Instant};

use larder_testkit::origin::{Origin, PathScript};
use larder_testkit::redis::RedisServer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{Setup, config, is_from_origin, is_hit, page};
use crate::support::{Process, cacheable, get, script, until, within};

/// The default.
const TIMEOUT: Duration = Duration::from_millis(200);

fn pages() -> Vec<PathScript> {
    vec![script("/*", page(&["Cache-Control: no-store"], "from the origin"))]
}

async fn is_left_alone(larder: &Process) -> bool {
    larder.metrics().await.sum("larder_remote_server_up") == 0
}

#[tokio::test]
async fn a_server_that_hangs_costs_its_time_limit_a_few_times_and_then_nothing() {
    let setup = Setup::new(pages(), "near = \"0s\"\nkey = \"{target}\"", "").await;
    setup.set("/a", "value");
    is_hit(&setup.get("/a").await, "value");
    setup.redis.stop();
    for _ in 0..20 {
        let begun = Instant::now();
        is_from_origin(&setup.get("/b").await, "from the origin");
        assert!(begun.elapsed() < TIMEOUT + Duration::from_secs(1), "{:?}", begun.elapsed());
        if is_left_alone(&setup.larder).await {
            break;
        }
    }
    assert!(is_left_alone(&setup.larder).await);
    let begun = Instant::now();
    for _ in 0..50 {
        is_from_origin(&setup.get("/b").await, "from the origin");
    }
    assert!(begun.elapsed() < 10 * TIMEOUT, "50 of them have waited: {:?}", begun.elapsed());
    assert!(setup.lookups("skipped").await >= 50);
    setup.redis.resume();
    until("it is found again", async || setup.get("/a").await.body == b"value").await;
}

#[tokio::test]
async fn a_server_that_is_killed_costs_nothing_and_is_used_again_when_it_is_back() {
    let mut setup = Setup::new(pages(), "near = \"0s\"\nkey = \"{target}\"", "").await;
    setup.set("/a", "value");
    is_hit(&setup.get("/a").await, "value");
    setup.redis.kill();
    let begun = Instant::now();
    for _ in 0..20 {
        is_from_origin(&setup.get("/b").await, "from the origin");
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(is_left_alone(&setup.larder).await);
    setup.redis.restart();
    setup.set("/a", "new");
    until("the new one is found", async || setup.get("/a").await.body == b"new").await;
}

#[tokio::test]
async fn a_server_that_wants_a_password_is_left_alone() {
    let server = RedisServer::start_with(&["--requirepass", "s3cret"]);
    let setup = Setup::of(server, pages(), "near = \"0s\"\nkey = \"{target}\"", "").await;
    for _ in 0..10 {
        is_from_origin(&setup.get("/a").await, "from the origin");
    }
    assert!(is_left_alone(&setup.larder).await);
    let (failed, skipped) = (setup.lookups("failed").await, setup.lookups("skipped").await);
    assert!((1..=2).contains(&failed) && failed + skipped == 10, "{failed} {skipped}");
    // It wants none any more.
    let mut raw = setup.redis.raw();
    raw.ask(&[b"AUTH", b"s3cret"]);
    raw.ask(&[b"CONFIG", b"SET", b"requirepass", b""]);
    raw.set("/a", b"value");
    until("it is found", async || setup.get("/a").await.body == b"value").await;
}

/// A larder before a server that does to each connection what `serve` says.
async fn before<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(BufReader<TcpStream>) -> F + Send + Sync + 'static,
) -> (Process, Origin, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("url = \"redis://{}\"", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(BufReader::new(stream)));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin::simple(vec![cacheable("/*", 100)]).unwrap();
    let path = config(folder.path(), &url, &origin.url(), "near = \"0s\"\nkey = \"{target}\"", "");
    (Process::run_config(&path).await, origin, folder)
}

/// The words of the next command.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let words = line(stream).await?.strip_prefix('*')?.parse::<usize>().ok()?;
    let mut command = Vec::new();
    for _ in 0..words {
        line(stream).await?;
        command.push(line(stream).await?);
    }
    Some(command)
}

/// The next line without its end.
async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

#[tokio::test]
async fn rubbish_and_errors_are_misses() {
    for reply in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "*2\r\n$5\r\nother\r\n:-1\r\n",
        ":-1\r\n$5\r\nother\r\n",
        "$5\r\nother\r\n$5\r\nother\r\n",
        // One reply more than was asked for.
        "$-1\r\n:-2\r\n$5\r\nother\r\n:-1\r\n",
        "$99999999999\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n-LOADING\r\n",
        "-MOVED 3999 127.0.0.1:6381\r\n-MOVED 3999 127.0.0.1:6381\r\n",
        "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n",
        "-WRONGTYPE Operation against a key\r\n:-1\r\n",
        "",
    ] {
        let (larder, _origin, _folder) = before(move |mut stream| async move {
            while let Some(command) = command(&mut stream).await {
                let answer = match command[0].as_str() {
                    "PING" => "+PONG\r\n",
                    "GET" => reply,
                    _ => continue,
                };
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
        while let Some(command) = command(&mut stream).await {
            match command[0].as_str() {
                "PING" => stream.get_mut().write_all(b"+PONG\r\n").await.unwrap(),
                "GET" => waiting.push(command[1].clone()),
                _ => {}
            }
            // Every second look is answered, both of them then: the first is late.
            if waiting.len() == 2 {
                for key in waiting.drain(..) {
                    let value = format!("${}\r\n{key}\r\n:60000\r\n", key.len());
                    if stream.get_mut().write_all(value.as_bytes()).await.is_err() {
                        return;
                    }
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
