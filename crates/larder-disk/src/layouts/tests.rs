//! The disks as a tier, in each layout, against what every tier must do.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use larder_http::body::BodyError;
use larder_http::time::{Now, WallTime};
use larder_tier::contract::{Subject, run};
use larder_tier::tier::TierCaps;
use larder_tier::{Entry, Tier, VocabularyOf};

use super::body::DiskReader;
use super::records::RecordBody;
use super::since::AWAIT_PAUSE;
use super::*;
use crate::engine::DiskSize;

/// Disks of a layout, in a folder that they are made anew in.
struct InLayout {
    layout: Layout,
    count: usize,
    folder: tempfile::TempDir,
    clock: Clock,
}

impl Subject for InLayout {
    /// Heads are bytes here.
    type Vocabulary = VocabularyOf<Vec<u8>, ()>;

    fn make(&self) -> Arc<dyn Tier<Self::Vocabulary>> {
        let disk = |number: usize| DiskSettings {
            path: self.folder.path().join(number.to_string()),
            size: DiskSize::Bytes(64 << 20),
            idle: None,
            files: Default::default(),
        };
        Disks::unopened(self.layout, (0..self.count).map(disk).collect(), 16 << 20, &self.clock)
    }

    fn head(&self, mark: u8) -> Vec<u8> {
        format!("head {mark}").into_bytes()
    }

    fn head_bytes(&self, head: &Vec<u8>) -> Vec<u8> {
        head.clone()
    }

    fn policy(&self) {}

    fn now(&self) -> Now {
        self.clock.now()
    }
}

#[test]
fn disks_are_a_tier_in_each_layout() {
    for (layout, count) in [(Layout::Single, 1), (Layout::Mirror, 2), (Layout::Stripe, 3), (Layout::Hash, 2)]
    {
        let folder = tempfile::tempdir().unwrap();
        let subject = InLayout { layout, count, folder, clock: Clock::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&subject));
    }
}

#[test]
fn a_new_cap_holds_for_bodies_that_come_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let subject = InLayout { layout: Layout::Hash, count: 2, folder, clock: Clock::default() };
    let disks = subject.make();
    let admit: Arc<Admit> = Arc::new(|_, _| Some(1));
    disks.open(&admit, true);
    let takes = |bytes: u64| Arc::clone(&disks).begin_fill(&CacheKey::new("h", "/a"), Some(bytes)).is_some();
    assert!(takes(16 << 20) && !takes((16 << 20) + 1));
    for max_object in [1 << 20, 32 << 20] {
        disks.resize(&TierCaps { bytes: 0, files: 0, max_object });
        assert_eq!(disks.max_object(), max_object);
        assert!(takes(max_object) && !takes(max_object + 1), "{max_object}");
    }
    disks.close();
}

/// More than two pieces.
const BODY_BYTES: usize = 600_000;

/// Two disks, and bodies on the one or the other.
struct Pair {
    folder: tempfile::TempDir,
    disks: [Arc<Disk>; 2],
    key: CacheKey,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = |number: usize| {
            let (path, size) = (folder.path().join(number.to_string()), DiskSize::Bytes(64 << 20));
            Disk::open(DiskSettings { path, size, idle: None, files: Default::default() }).unwrap()
        };
        let disks = [disk(0), disk(1)];
        Self { disks, folder, key: CacheKey::new("h", "/a") }
    }

    /// Writes a body to one of them alone.
    fn put(&self, disk: usize, body: &[u8]) {
        let disk = &self.disks[disk];
        let alone = Disks::new(Layout::Single, vec![Arc::clone(disk)], 16 << 20);
        let entry = Entry {
            key: &self.key,
            number: 1,
            identity: 7,
            received: WallTime(1),
            took: Duration::ZERO,
            head: &b"head".to_vec(),
            head_bytes: &|| b"head".to_vec(),
            chunks: &[Bytes::copy_from_slice(body)],
            length: body.len() as u64,
            is_in_memory: true,
            source: None,
        };
        alone.put(&entry);
    }

    /// A reader of what a mirror of both has at this moment, and the first piece of that.
    async fn begun(&self) -> (DiskReader, Vec<u8>) {
        let mirror = Disks::new(Layout::Mirror, self.disks.to_vec(), 16 << 20);
        let candidate = &mirror.candidates(&self.key)[0];
        let mut loaded = mirror.load(&self.key, candidate).await.unwrap();
        mirror.add_copies(&self.key, candidate, &mut loaded).await;
        let RecordBody::Pieces(pieces) = loaded.content else { panic!("it is small") };
        let mut reader = Arc::new(*pieces).reader(0..BODY_BYTES as u64).unwrap();
        let first = next(&mut reader).await.unwrap().unwrap();
        (reader, first.to_vec())
    }

    /// What lies on a disk cannot be read any more.
    fn damage(&self, disk: usize) {
        for file in fs::read_dir(self.folder.path().join(disk.to_string())).unwrap() {
            let path = file.unwrap().path();
            if path.extension() == Some("seg".as_ref()) {
                let file = fs::File::options().write(true).open(&path).unwrap();
                file.write_all_at(&vec![0xa5; 2 << 20], 0).unwrap();
            }
        }
    }
}

/// The next bytes of a body, unless that was all.
async fn next(reader: &mut DiskReader) -> Option<Result<Bytes, BodyError>> {
    let frame = poll_fn(|cx| Pin::new(&mut *reader).poll_frame(cx)).await?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

fn body(seed: u8) -> Vec<u8> {
    (0..BODY_BYTES).map(|at| (at % 251) as u8 ^ seed).collect()
}

#[tokio::test]
async fn a_reader_goes_on_with_a_copy_that_was_written_after_it_had_begun() {
    let pair = Pair::new();
    pair.put(0, &body(0));
    assert!(pair.disks[0].settle());
    let (mut reader, mut read) = pair.begun().await;
    pair.disks[1].hold_back(true);
    pair.put(1, &body(0));
    pair.damage(0);
    // The other disk is behind by some tries.
    let other = Arc::clone(&pair.disks[1]);
    let writes = tokio::spawn(async move {
        tokio::time::sleep(5 * AWAIT_PAUSE).await;
        other.hold_back(false);
    });
    while let Some(bytes) = next(&mut reader).await {
        read.extend_from_slice(&bytes.expect("the client was cut"));
    }
    assert!(read == body(0));
    writes.await.unwrap();
}

#[tokio::test]
async fn no_reader_begins_where_only_a_disk_has_the_body_that_may_not_be_readable() {
    let pair = Pair::new();
    (0..2).for_each(|disk| pair.put(disk, &body(0)));
    assert!(pair.disks.iter().all(|disk| disk.settle()));
    let mirror = Disks::new(Layout::Mirror, pair.disks.to_vec(), 16 << 20);
    let loaded = async |disk: usize| {
        let candidates = mirror.candidates(&pair.key);
        let candidate = candidates.iter().find(|candidate| candidate.disk == disk).unwrap();
        let mut loaded = mirror.load(&pair.key, candidate).await?;
        mirror.add_copies(&pair.key, candidate, &mut loaded).await;
        match loaded.content {
            RecordBody::Pieces(pieces) => Ok::<_, engine::ReadError>(Arc::new(*pieces)),
            RecordBody::Inline(_) => panic!("it is small"),
        }
    };
    let all = 0..BODY_BYTES as u64;
    let (both, [first, _]) = (loaded(0).await.unwrap(), &pair.disks);
    first.doubt();
    // One that may be readable again is not forgotten.
    assert!(!loaded(0).await.err().unwrap().is_lasting());
    // The other has it. It is asked first.
    pair.damage(0);
    let mut reader = both.reader(all.clone()).unwrap();
    assert!(next(&mut reader).await.unwrap().is_ok());
    assert!(both.is_there() && first.usage().damaged == 0);
    let other = loaded(1).await.unwrap();
    pair.disks[1].doubt();
    for pieces in [both, other] {
        assert!(pieces.reader(all.clone()).is_none());
        assert!(!pieces.is_there() && pieces.has_moved());
    }
    // A read that had to be waited for went well.
    assert!(pair.disks[1].read(mirror.candidates(&pair.key)[1].place).await.is_ok());
    assert!(loaded(1).await.unwrap().reader(all).is_some());
}

#[tokio::test]
async fn a_reader_never_goes_on_with_another_body() {
    for other in [body(1), [&body(0)[..BODY_BYTES - 1], b"x"].concat(), body(0)[..BODY_BYTES - 1].to_vec()] {
        let pair = Pair::new();
        pair.put(0, &body(0));
        assert!(pair.disks[0].settle());
        let (mut reader, _) = pair.begun().await;
        pair.put(1, &other);
        assert!(pair.disks[1].settle());
        pair.damage(0);
        assert!(next(&mut reader).await.unwrap().is_err());
    }
}
