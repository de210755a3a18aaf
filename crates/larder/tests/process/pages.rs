//! Pages whose parts lie on disks, after a start with nothing in memory.

use larder_testkit::client::{End, Response};
use larder_testkit::origin::{Answer, Origin};
use larder_testkit::seeded;

use crate::support::{
    Process, Signal, asking, cache_status, cacheable, config, connect, get, script, until, written,
};

/// More than is kept in memory on its way to a disk.
const LARGE: u64 = 700_000;

fn template(body: &str) -> Answer {
    let fields = ["Cache-Control: max-age=3600", "Surrogate-Control: content=\"ESI/1.0\""];
    Answer { body: Some(body.to_owned()), fields: fields.map(str::to_owned).to_vec(), ..Answer::default() }
}

async fn from_the_cache_alone(larder: &Process, target: &str) -> Response {
    let request = asking(target).field("Cache-Control", "only-if-cached");
    connect(larder.addr).await.exchange(&request).await.unwrap()
}

#[tokio::test]
async fn only_if_cached_recalls_the_parts_of_a_page_and_fails_for_what_is_nowhere() {
    let personal = Answer {
        body: Some("mine".to_owned()),
        fields: vec!["Cache-Control: no-store".to_owned()],
        ..Answer::default()
    };
    let origin = Origin::simple(vec![
        script("/page", template("[<esi:include src=\"/part\"/>]")),
        script("/long", template("[<esi:include src=\"/large\"/>]")),
        script(
            "/lacking",
            template("[<esi:include src=\"/part\"/><esi:include src=\"/mine\" alt=\"/part\"/>]"),
        ),
        script("/mine", personal),
        cacheable("/part", 100),
        cacheable("/large", LARGE),
    ])
    .unwrap();
    let store = "[stores.default]\nmemory = \"16MiB\"\ndisks = [{ path = \"d1\", size = \"64MiB\" }]\n";
    let (_directory, path) = written(&config(&origin.url(), "", store));
    let mut larder = Process::run_config(&path).await;
    for target in ["/page", "/long", "/lacking"] {
        assert_eq!(get(larder.addr, target).await.status, 200, "{target}");
    }
    until("the disks have all five", async || {
        let metrics = larder.metrics().await;
        let queued = metrics.sum("larder_disk_queued_objects") + metrics.sum("larder_disk_queued_bytes");
        queued == 0 && metrics.sum("larder_disk_objects") >= 5
    })
    .await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);

    let larder = Process::run_config(&path).await;
    let before = origin.log().count();
    let with = |bytes: Vec<u8>| [b"[".to_vec(), bytes, b"]".to_vec()].concat();
    until("the disk is open, and the part recalled", async || {
        let page = from_the_cache_alone(&larder, "/page").await;
        page.status == 200 && page.body == with(seeded::bytes_of("/part", 0, 100).to_vec())
    })
    .await;
    let page = from_the_cache_alone(&larder, "/page").await;
    assert!(
        cache_status(&page).starts_with("larder; hit; ") && page.fields.first("etag").is_some(),
        "{page}"
    );
    // A part that is too long for memory is stored all the same.
    let long = from_the_cache_alone(&larder, "/long").await;
    assert_eq!((long.status, &long.end), (200, &End::Complete), "{long}");
    assert!(long.body == with(seeded::bytes_of("/large", 0, LARGE).to_vec()));
    let lacking = from_the_cache_alone(&larder, "/lacking").await;
    assert_eq!((lacking.status, cache_status(&lacking)), (504, "larder; detail=only-if-cached"), "{lacking}");
    assert_eq!(origin.log().count(), before, "nothing was asked for");
}
