//! Whatever clients ask a representation for, whole or in ranges, and however parts are stored, joined, completed, refreshed
//! and evicted meanwhile: every byte is the right one in the right place.

use larder_testkit::client::{Connection, Request, Response};
use larder_testkit::multipart;
use larder_testkit::origin::{Answer, Origin};
use larder_testkit::seeded::bytes_of;

use crate::support::{answer_of, asking, config, connect, script, within, written};

const BYTES: u64 = 300_000;
const CLIENTS: u64 = 6;
const REQUESTS: u64 = 150;
/// More than the store holds.
const BODIES: u64 = 40;
/// A quarter of it is more than all clients read at once. Beyond that a client that a busy machine keeps from reading is cut.
const MEMORY: u64 = 8 << 20;

/// A die that falls the same way in every run; the seed is in each message.
struct Dice {
    seed: String,
    thrown: u64,
}

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.thrown += 1;
        let bytes = bytes_of(&self.seed, self.thrown * 8, 8);
        u64::from_le_bytes(bytes.as_ref().try_into().unwrap()) % bound
    }

    fn one_of(&mut self, choices: &[u64]) -> u64 {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    /// A range-spec, and the positions that it means.
    fn spec(&mut self) -> (String, std::ops::Range<u64>) {
        match self.below(4) {
            0 => {
                let length = self.one_of(&[1, 10, 5_000, 70_000]);
                (format!("-{length}"), BYTES - length..BYTES)
            }
            1 => {
                let first = self.below(BYTES);
                (format!("{first}-"), first..BYTES)
            }
            _ => {
                let first = self.one_of(&[0, 1, 100_000, 150_000, 200_000]) + self.below(1_000);
                let last = first + self.one_of(&[0, 1, 99, 50_000, 120_000, BYTES]);
                (format!("{first}-{last}"), first..(last + 1).min(BYTES))
            }
        }
    }
}

fn content_range(text: Option<&str>) -> std::ops::Range<u64> {
    let said = text.and_then(|text| text.strip_prefix("bytes ")?.strip_suffix(&format!("/{BYTES}")));
    let (first, last) = said.and_then(|said| said.split_once('-')).unwrap_or_else(|| panic!("{text:?}"));
    first.parse().unwrap()..last.parse::<u64>().unwrap() + 1
}

fn check(response: &Response, target: &str, asked: &[std::ops::Range<u64>], told: &str) {
    let right = |range: &std::ops::Range<u64>, body: &[u8]| {
        assert!(
            body == bytes_of(target, range.start, range.end - range.start),
            "other bytes: {told}: {response}"
        );
    };
    let content_type = response.fields.first("content-type");
    match response.status {
        200 => right(&(0..BYTES), &response.body),
        206 if content_type.is_some_and(|kind| kind.starts_with("multipart/")) => {
            let parts =
                multipart::parts(content_type, &response.body).unwrap_or_else(|e| panic!("{e}: {told}"));
            let said: Vec<_> =
                parts.iter().map(|part| content_range(part.fields.first("content-range"))).collect();
            said.iter().zip(&parts).for_each(|(range, part)| right(range, &part.body));
            for range in asked {
                let has_it = said.iter().any(|said| said.start <= range.start && range.end <= said.end);
                assert!(has_it, "{range:?} is not among {said:?}: {told}");
            }
        }
        206 => {
            let said = content_range(response.fields.first("content-range"));
            right(&said, &response.body);
            if let [only] = asked {
                assert_eq!(said, *only, "{told}: {response}");
            }
        }
        _ => panic!("{told}: {response}"),
    }
}

async fn one_client(number: u64, addr: std::net::SocketAddr) {
    let mut dice = Dice { seed: format!("client {number}"), thrown: 0 };
    let mut connection: Connection = connect(addr).await;
    for round in 0..REQUESTS {
        let target = format!("/body?{}", dice.below(BODIES));
        let count = dice.one_of(&[0, 1, 1, 1, 1, 2, 3]);
        let (specs, asked): (Vec<_>, Vec<_>) = (0..count).map(|_| dice.spec()).unzip();
        let mut request: Request = asking(&target);
        if count > 0 {
            request = request.field("Range", &format!("bytes={}", specs.join(", ")));
        }
        let told = format!("client {number}, request {round}, {target}, {specs:?}");
        let response = connection.exchange(&request).await.unwrap_or_else(|error| panic!("{error}: {told}"));
        check(&response, &target, &asked, &told);
    }
}

/// Six clients, half the lifetime of a stored part long enough for hits and short enough for refreshes, and a store that
/// holds a few of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_of_every_range_is_the_right_one() {
    let fields =
        ["Cache-Control: max-age=1, stale-while-revalidate=1", "ETag: \"v1\"", "Content-Type: text/plain"];
    let answer = Answer { ranges: true, ..answer_of(&fields, BYTES) };
    let origin = Origin::simple(vec![script("/body*", answer)]).unwrap();
    let store = format!("[stores.default]\nmemory = {MEMORY}\nmax_object = \"512KiB\"\n");
    let (_directory, path) = written(&(config(&origin.url(), "", "") + &store));
    let larder = crate::support::Process::run_config(&path).await;
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(one_client(number, larder.addr))).collect();
    for client in clients {
        within("a client's requests", client).await.unwrap();
    }
    let metrics = larder.metrics().await;
    let asked = metrics.sum("larder_cache_lookups_total");
    assert_eq!(asked, CLIENTS * REQUESTS);
    let origin_asked = origin.log().count();
    assert!(origin_asked < asked, "{origin_asked} origin requests for {asked}: nothing was reused");
    assert!(metrics.sum("larder_cache_bytes") <= MEMORY);
    assert!(metrics.sum("larder_cache_evictions_total") > 0, "all bodies had room");
    assert_eq!(metrics.sum("larder_slow_readers_total"), 0);
}
