//! What is not as larder has written it is a miss, is counted, and is never an answer.

use super::{Larder, Scene, is_hit, state};
use crate::support::until;

/// Fetches by the first, changes what lies in Redis, and asks the second: it has to ask the origin.
async fn is_a_miss(
    scene: &Scene,
    (first, second): (&Larder, &Larder),
    target: &str,
    reason: &str,
    change: impl Fn(&str),
) {
    let before = scene.names();
    let fetched = scene.fetched_by(first, target).await;
    let refused = second.refused(reason).await;
    let new: Vec<String> = scene.names().into_iter().filter(|name| !before.contains(name)).collect();
    assert!(!new.is_empty(), "{target} has no record");
    new.iter().for_each(|name| change(name));
    let asked = scene.asked(target);
    let answered = second.get(target).await;
    assert!(!is_hit(&answered), "{target}: {answered}");
    assert!(answered.body == fetched.body, "{target}: another body");
    assert_eq!((scene.asked(target), second.refused(reason).await), (asked + 1, refused + 1), "{target}");
}

#[tokio::test]
async fn bytes_that_were_changed_are_noticed_wherever_they_are() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let flip = |at: i64| {
        let redis = &scene.redis;
        move |name: &str| {
            let mut value = redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
            let at = usize::try_from(at.rem_euclid(value.len() as i64)).unwrap();
            value[at] ^= 0x10;
            redis.raw().set(name, &value);
        }
    };
    for (number, at) in [0, 6, 12, 40, 100, -1].into_iter().enumerate() {
        is_a_miss(&scene, (&first, &second), &format!("/flip-{}", 5000 + number), "damaged", flip(at)).await;
    }
    is_a_miss(&scene, (&first, &second), "/format", "format", |name| {
        let mut value = scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
        value[4] = 1;
        scene.redis.raw().set(name, &value);
    })
    .await;
    // A piece of a long body, cut, changed, or gone.
    let of_piece = |act: fn(&Scene, &str)| {
        let scene = &scene;
        move |name: &str| {
            if name.contains(":b:") && name.ends_with(":1") {
                act(scene, name);
            }
        }
    };
    is_a_miss(
        &scene,
        (&first, &second),
        "/cut-700000",
        "damaged",
        of_piece(|scene, name| {
            let value = scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
            scene.redis.raw().set(name, &value[..value.len() - 1]);
        }),
    )
    .await;
    is_a_miss(
        &scene,
        (&first, &second),
        "/gone-700000",
        "incomplete",
        of_piece(|scene, name| {
            scene.redis.raw().delete(name);
        }),
    )
    .await;
}

#[tokio::test]
async fn the_record_of_another_url_is_not_an_answer() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    scene.fetched_by(&first, "/other").await;
    let other = scene.names().remove(0);
    is_a_miss(&scene, (&first, &second), "/mine", "other-key", |name| {
        let value = scene.redis.raw().ask(&[b"GET", other.as_bytes()]).unwrap();
        scene.redis.raw().set(name, &value);
    })
    .await;
}

/// As after the clock of the server was set back by an hour.
#[tokio::test]
async fn a_record_from_the_future_is_not_used() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    is_a_miss(&scene, (&first, &second), "/future", "clock", |name| {
        let mut value = scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap();
        // Behind the frame, the two levels of the key, the log and the number of its entry.
        let length = |at: usize| u32::from_le_bytes(value[at..at + 4].try_into().unwrap()) as usize;
        let variant = 14 + length(10);
        let at = variant + 4 + length(variant) + 24;
        let received = u64::from_le_bytes(value[at..at + 8].try_into().unwrap()) + 3_600_000;
        value[at..at + 8].copy_from_slice(&received.to_le_bytes());
        let sum = crc32fast::hash(&value[10..]) ^ 0x0101_0101;
        value[6..10].copy_from_slice(&sum.to_le_bytes());
        scene.redis.raw().set(name, &value);
    })
    .await;
}

#[tokio::test]
async fn whatever_others_put_there_is_a_miss_and_never_the_end() {
    let scene = Scene::new();
    let (first, second) = scene.two().await;
    let mut number = 0;
    for puts in [
        vec!["SET", "NAME", ""],
        vec!["SET", "NAME", "lrdr"],
        vec!["SET", "NAME", "hello, this is somebody else's value under the same name"],
        vec!["LPUSH", "NAME", "a", "b"],
        vec!["HSET", "NAME", "v", "1"],
        vec!["ZADD", "NAME", "1", "a"],
    ] {
        number += 1;
        let target = format!("/foreign-{}", 4000 + number);
        scene.fetched_by(&first, &target).await;
        let name = scene.names().into_iter().find(|name| {
            let value = scene.redis.raw().ask(&[b"GET", name.as_bytes()]).unwrap_or_default();
            value.windows(target.len()).any(|part| part == target.as_bytes())
        });
        let name = name.unwrap();
        scene.redis.raw().delete(&name);
        let command: Vec<&str> =
            puts.iter().map(|word| if *word == "NAME" { name.as_str() } else { word }).collect();
        scene.ask(&command);
        let answered = second.get(&target).await;
        assert!(!is_hit(&answered) && state(&answered) == 1, "{puts:?}: {answered}");
        scene.redis.raw().delete(&name);
    }
    // 100 MiB under the name of a record: more than a reply may have.
    scene.fetched_by(&first, "/huge").await;
    let names = scene.names();
    let huge = vec![b'x'; 100 << 20];
    for name in names {
        scene.redis.raw().set(&name, &huge);
    }
    assert_eq!(state(&second.get("/huge").await), 1);
    scene.ask(&["FLUSHALL"]);
    until("it shares again", async || {
        let target = format!("/again-{}", scene.change());
        first.get(&target).await;
        is_hit(&second.get(&target).await)
    })
    .await;
}
