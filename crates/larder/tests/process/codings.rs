//! Content codings of what lies on a disk: after a restart each is still for those alone who take it.

use larder_testkit::client::Response;
use larder_testkit::origin::{Answer, Origin, PathScript};

use super::keeping::lines;
use crate::support::{Process, Signal, asking, cache_status, config, connect, until, written};

async fn ask(larder: &Process, target: &str, accepted: Option<&str>) -> Response {
    let request = asking(target);
    let request = match accepted {
        Some(accepted) => request.field("Accept-Encoding", accepted),
        None => request,
    };
    connect(larder.addr).await.exchange(&request).await.unwrap()
}

fn answer(when: &[&str], fields: &[&str], body: &str) -> Answer {
    let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
    Answer { when: lines(when), fields: lines(fields), body: Some(body.to_owned()), ..Answer::default() }
}

fn page(path: &str, answer: Vec<Answer>) -> PathScript {
    PathScript::new(path, answer)
}

#[tokio::test]
async fn after_a_restart_a_coding_is_for_those_who_take_it() {
    const FRESH: &str = "Cache-Control: max-age=3600";
    const GZIP: &str = "Content-Encoding: gzip";
    let origin = Origin::simple(vec![
        page(
            "/page",
            vec![answer(&["accept-encoding"], &[FRESH, GZIP], "gzip"), answer(&[], &[FRESH], "plain")],
        ),
        page("/Packages.gz", vec![answer(&[], &[FRESH, GZIP], "gzip")]),
    ])
    .unwrap();
    let store = "[stores.default]\nmemory = \"16MiB\"\ndisks = [{ path = \"d1\", size = \"64MiB\" }]\n";
    let (_directory, path) = written(&config(&origin.url(), "", store));
    let mut larder = Process::run_config(&path).await;
    assert_eq!(ask(&larder, "/page", Some("gzip")).await.body, b"gzip");
    assert_eq!(ask(&larder, "/Packages.gz", None).await.body, b"gzip");
    until("both are on the disk", async || {
        let metrics = larder.metrics().await;
        let queued = metrics.sum("larder_disk_queued_objects") + metrics.sum("larder_disk_queued_bytes");
        queued == 0 && lines(&larder, &["ls"]).await.len() == 2
    })
    .await;
    larder.signal(Signal::TERM);
    until("it is gone", async || !larder.is_running()).await;
    larder = Process::run_config(&path).await;

    let requests = origin.log().count();
    let found = ask(&larder, "/page", Some("br, x-gzip;q=0.5")).await;
    assert!(found.body == b"gzip" && cache_status(&found).contains("; hit"), "{found}");
    let found = ask(&larder, "/Packages.gz", None).await;
    assert!(found.body == b"gzip" && cache_status(&found).contains("; hit"), "{found}");
    assert_eq!(origin.log().count(), requests);
    let found = ask(&larder, "/page", None).await;
    assert!(found.body == b"plain" && cache_status(&found).contains("fwd=vary-miss"), "{found}");
    assert_eq!(origin.log().count(), requests + 1);
}
