//! Bodies in LZ4 by choice: they take less of the memory of Redis, and larders with and without the choice share.

use super::{Larder, Scene, is_hit};

/// The bytes that a record and its pieces take in Redis.
fn memory(scene: &Scene, names: &[String]) -> u64 {
    let usage = |name: &String| {
        let said = scene.ask(&["MEMORY", "USAGE", name, "SAMPLES", "0"]).unwrap();
        said.trim_start_matches(':').parse::<u64>().unwrap()
    };
    names.iter().map(usage).sum()
}

/// Fetches by one larder, and gives what its record takes.
async fn taken(scene: &Scene, larder: &Larder, target: &str) -> u64 {
    let before = scene.names();
    scene.fetched_by(larder, target).await;
    let names: Vec<String> = scene.names().into_iter().filter(|name| !before.contains(name)).collect();
    memory(scene, &names)
}

#[tokio::test]
async fn records_take_less_memory_and_larders_with_and_without_the_choice_share() {
    let mut scene = Scene::new();
    let plain = scene.larder("web-1").await;
    scene.said.push_str(", compress = \"lz4\"");
    let packed = scene.larder("web-2").await;
    // In the record itself, in one piece, and in several.
    for (number, length) in [500, 20_000, 262_144, 262_145, 700_000, 1_500_000].into_iter().enumerate() {
        let targets = ["plain", "packed"].map(|name| format!("/{name}/{number}/repeat-{length}"));
        let of_plain = taken(&scene, &plain, &targets[0]).await;
        let of_packed = taken(&scene, &packed, &targets[1]).await;
        assert!(of_packed * 2 < of_plain || length == 500, "{length}: {of_packed} of {of_plain}");
        println!("{length} bytes: {of_plain} bytes of memory, compressed {of_packed}");
        let (first, second) = (plain.get(&targets[1]).await, packed.get(&targets[0]).await);
        for (response, target) in [(first, &targets[1]), (second, &targets[0])] {
            assert!(is_hit(&response) && response.body.len() == length, "{target}: {response}");
        }
        assert_eq!(plain.get(&targets[1]).await.body, packed.get(&targets[1]).await.body);
        assert_eq!(scene.asked(&targets[0]) + scene.asked(&targets[1]), 2);
    }
    let saved = "larder_records_saved_bytes_total{store=\"default\"}";
    assert!(packed.process.metrics().await.value(saved).is_some_and(|bytes| bytes > 1_000_000.0));
    assert_eq!(plain.process.metrics().await.value(saved), None);
    // What has a coding already, and types that do not shrink, are left as they are.
    for target in ["/coded/repeat-20000", "/picture/repeat-20000"] {
        assert!(taken(&scene, &packed, target).await > 20_000, "{target}");
        assert!(is_hit(&plain.get(target).await), "{target}");
    }
}

#[tokio::test]
async fn a_compressed_body_or_piece_that_was_changed_is_a_miss() {
    let mut scene = Scene::new();
    scene.said.push_str(", compress = \"lz4\"");
    let (first, second) = scene.two().await;
    for (target, name) in [("/x/repeat-20000", ":r:"), ("/y/repeat-700000", ":b:")] {
        let before = scene.names();
        let fetched = scene.fetched_by(&first, target).await;
        let new = scene.names().into_iter().find(|new| new.contains(name) && !before.contains(new)).unwrap();
        let value = scene.redis.raw().ask(&[b"GET", new.as_bytes()]).unwrap();
        let refused = second.refused("damaged").await;
        let mut changed = value.clone();
        let middle = changed.len() - 40;
        changed[middle] ^= 0x55;
        scene.redis.raw().set(&new, &changed);
        let answered = second.get(target).await;
        assert!(!is_hit(&answered) && answered.body == fetched.body, "{target}");
        assert!(second.refused("damaged").await > refused, "{target}");
    }
}
