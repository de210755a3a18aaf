//! A million of small objects: stored, found again, and how long a start takes. Run by hand, in release.
//!
//! `cargo test --release -p larder-disk --lib engine::tests::speed -- --ignored --nocapture`; the folder is made beside
//! `TMPDIR`.

use super::*;

const OBJECTS: u64 = 1_000_000;

#[test]
#[ignore = "takes a gigabyte and some seconds; figures mean something in release only"]
fn a_million_objects_of_1_kb() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 4 << 30);
    let content = bytes_of(1, 1000);
    let head = bytes_of(2, 200);
    let began = Instant::now();
    let mut refused = 0_u64;
    for k in 0..OBJECTS {
        let put =
            || Object { head: head.clone(), ..object_of(k, RecordContent::Inline(vec![content.clone()])) };
        while disk.put(put()) == Err(Refused::QueueFull) {
            refused += 1;
            std::thread::park_timeout(Duration::from_micros(100));
        }
    }
    wait_long(|| disk.shared.queue.bytes() == 0);
    let took = began.elapsed();
    let usage = disk.usage();
    println!("stored at {:.0}/s, queue full {refused} times", OBJECTS as f64 / took.as_secs_f64());
    println!(
        "{} bytes on the disk and {} in the index per object, {} segments",
        usage.allocated_bytes / OBJECTS,
        usage.index_bytes / OBJECTS,
        usage.segments
    );
    let began = Instant::now();
    for k in 0..OBJECTS {
        let at = disk.address(&key(k * 7919 % OBJECTS));
        let found = read(&disk, disk.find(&at)[0]).unwrap();
        assert!(found.is_of(&key(k * 7919 % OBJECTS)));
    }
    println!("read at {:.0}/s", OBJECTS as f64 / began.elapsed().as_secs_f64());
    disk.kill();
    drop(disk);
    let began = Instant::now();
    let disk = open(folder.path(), 4 << 30);
    println!("opened after a kill in {:?}, {} objects", began.elapsed(), disk.usage().objects);
    disk.close();
    drop(disk);
    let began = Instant::now();
    let disk = open(folder.path(), 4 << 30);
    println!("opened after closing in {:?}, {} objects", began.elapsed(), disk.usage().objects);
    println!("{} bytes in the index per object", disk.usage().index_bytes / OBJECTS);
}

fn object_of(k: u64, content: RecordContent) -> Object {
    Object { number: 1, stored_at: WallTime(1), identity: 0, key: key(k), head: Bytes::new(), content }
}

fn wait_long(mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(300);
    while !until() {
        assert!(Instant::now() < end, "waited for too long");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}
