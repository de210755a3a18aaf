//! A Redis with room for a tenth of the records, and which of the most wanted ones it keeps.
//!
//! Two of them take the same requests. What a larder's memory serves never reaches Redis; one is told of it ([`Find::note_use_at`]), and
//! the other is not. Redis counts uses by the second, so this takes a few.

use larder_testkit::dice::Dice;

use super::*;

const RECORDS: usize = 10_000;
/// The most asked for, which a larder has in memory.
const IN_MEMORY: usize = 500;
const BODY: usize = 1_000;
/// In so many steps are the requests sent, each of about a second.
const STEPS: usize = 8;
const ASKED_PER_STEP: usize = 1_000;
/// What connections take of Redis.
const CONNECTIONS: usize = 256 << 10;

/// How often each is asked for, of all requests: the second half as often as the first, and so on (Zipf's law).
fn shares() -> Vec<f64> {
    let all: f64 = (1..=RECORDS).map(|rank| 1.0 / rank as f64).sum();
    (1..=RECORDS).map(|rank| 1.0 / rank as f64 / all).collect()
}

fn drawn(dice: &mut Dice, shares: &[f64]) -> usize {
    let mut at = dice.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    shares
        .iter()
        .position(|share| {
            at -= share;
            at < 0.0
        })
        .unwrap_or(RECORDS - 1)
}

fn page(number: usize) -> CacheKey {
    let mut key = CacheKey::new("a.example", &format!("/{number}"));
    key.push_part(b"http");
    key
}

/// The part of all requests whose record is there after a while.
async fn found(is_told: bool) -> f64 {
    let fixture = Fixture::new();
    let mut redis = fixture.redis.raw();
    let names: Vec<Bytes> = (0..RECORDS).map(|number| fixture.records.names.of_key(&page(number))).collect();
    let used = |redis: &mut larder_testkit::redis::RawRedis| -> usize {
        let told = String::from_utf8(redis.ask(&[b"INFO", b"memory"]).unwrap()).unwrap();
        told.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().trim().parse().unwrap()
    };
    let body = vec![b'x'; BODY];
    let put = |redis: &mut larder_testkit::redis::RawRedis, number: usize| {
        redis.ask(&[b"SET", &names[number], &body, b"PX", b"3600000"]).unwrap()
    };
    (0..RECORDS / 10).for_each(|number| assert_eq!(put(&mut redis, number), b"+OK"));
    let room = (used(&mut redis) + CONNECTIONS).to_string();
    for (name, value) in [("maxmemory", room.as_str()), ("maxmemory-policy", "volatile-lru")] {
        assert_eq!(redis.ask(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]).unwrap(), b"+OK");
    }
    for (number, name) in names.iter().enumerate().take(IN_MEMORY) {
        fixture.records.known.note(&page(number), name, None);
    }
    let (mut dice, shares) = (Dice::new(16), shares());
    for _ in 0..STEPS {
        for _ in 0..ASKED_PER_STEP {
            let number = drawn(&mut dice, &shares);
            if number >= IN_MEMORY && redis.ask(&[b"GET", &names[number]]).is_none() {
                put(&mut redis, number);
            }
        }
        if is_told {
            let before = fixture.calls("touch");
            (0..IN_MEMORY).for_each(|number| {
                let key = page(number);
                fixture.records.note_use_at(key.base(), key.variant());
            });
            until("Redis is told", || fixture.calls("touch") == before + IN_MEMORY).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let is_there = |redis: &mut larder_testkit::redis::RawRedis, name: &[u8]| {
        redis.ask(&[b"EXISTS", name]).unwrap() == b":1"
    };
    let left: f64 = shares
        .iter()
        .zip(&names)
        .filter(|(_, name)| is_there(&mut redis, name))
        .map(|(share, _)| share)
        .sum();
    let kept = String::from_utf8(redis.ask(&[b"DBSIZE"]).unwrap()).unwrap()[1..].parse::<usize>().unwrap();
    assert!((RECORDS / 20..=RECORDS / 8).contains(&kept), "{kept} records are there");
    left
}

#[tokio::test]
async fn what_memory_serves_is_not_what_redis_evicts_first() {
    let (told, untold) = tokio::join!(found(true), found(false));
    assert!(
        told > 0.25 && told > 3.0 * untold,
        "{told:.3} of all requests, and {untold:.3} without being told"
    );
}
