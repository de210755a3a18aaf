//! A larder without sockets: its stores, its purges, and what a request and a fetch of it are made of.
//!
//! In: what lies behind memory. Out: the same after a restart, or after a crash, which leaves what lay there at that moment.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use larder_cache::purge::Mode;
use larder_disk::engine::{DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_files::{FileStore, FilesSettings};
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::{Peer, RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_observe::RouteId;
use larder_store::{CacheKey, MemoryStoreSettings, Store, StoredResponse, TargetUri};

use super::super::{Candidates, FetchTask};
use super::map::{Purge, Url};
use crate::asked::Asker;
use crate::fetch::ClientHop;
use crate::invalidation::{self, How, InvalidationKind, UnderWay, Writing};
use crate::key;
use crate::purges::{Dialect, Order, Sender};
use crate::settings::{Access, RuleSettings, SiteSettings};
use crate::testing_proxy::proxy_of;
use crate::worker::Worker;

const MEMORY_BYTES: u64 = 4 << 20;
const BEHIND_BYTES: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// What lies behind memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    Nothing,
    Disk,
    Files,
}

pub(super) struct World {
    behind: Behind,
    pub(super) clock: Clock,
    pub(super) worker: Arc<Worker>,
    pub(super) settings: Arc<RuleSettings>,
    store: Arc<Store>,
    files: Option<Arc<FileStore>>,
    folder: tempfile::TempDir,
}

impl World {
    pub(super) fn new(behind: Behind) -> Self {
        Self::open(behind, tempfile::tempdir().unwrap(), Clock::default())
    }

    fn open(behind: Behind, folder: tempfile::TempDir, clock: Clock) -> Self {
        let (store, files) = open(behind, &folder.path().join("store"), &clock);
        let settings = Arc::new(crate::testing::rule(&store));
        let site = SiteSettings {
            name: "all".into(),
            route: RouteId::default(),
            hosts: Vec::new(),
            origin: None,
            root: None,
            websocket: false,
            tls: None,
            purge: Access::Closed,
            rules: Vec::new(),
            otherwise: Arc::clone(&settings),
        };
        let (proxy, plan) = proxy_of(site, Vec::new(), std::slice::from_ref(&store), &clock);
        let worker = Arc::new(Worker::new(&proxy, 0, plan).unwrap());
        Self { behind, clock, worker, settings, store, files, folder }
    }

    fn again(&mut self, folder: tempfile::TempDir) {
        let clock = self.clock.clone();
        let before = std::mem::replace(self, Self::new(Behind::Nothing));
        let behind = before.behind;
        before.store.close();
        drop(before);
        *self = Self::open(behind, folder, clock);
    }

    /// Ends in good order, and starts again.
    pub(super) fn restart(&mut self) {
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        self.again(folder);
    }

    /// Starts again on what lies there at this moment.
    pub(super) fn crash(&mut self) {
        if self.behind != Behind::Disk {
            // A copy of a file is not the file that was stored.
            return self.restart();
        }
        let copied = tempfile::tempdir().unwrap();
        copy_disk(&self.folder.path().join("store"), &copied.path().join("store"));
        self.again(copied);
    }

    pub(super) fn request(&self, url: Url) -> RequestHead {
        let authority = Authority::parse(Bytes::from_static(url.host.as_bytes()), Scheme::Http).unwrap();
        let target = Target::parse(Bytes::from_static(url.target.as_bytes())).unwrap();
        RequestHead { authority, target, ..crate::testing::request("/") }
    }

    pub(super) fn key(&self, url: Url) -> CacheKey {
        key::key(&self.request(url), &self.settings.key, None, b"")
    }

    pub(super) fn task(&self, offered: Candidates) -> FetchTask {
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let peer = Peer::clear(nobody, nobody);
        let hop = ClientHop {
            peer,
            is_waiting: true,
            trusted: false,
            takes_trailers: false,
            via: true,
            assembles: true,
        };
        FetchTask {
            worker: Arc::clone(&self.worker),
            worker_plan: self.worker.worker_plan.load_full(),
            settings: Arc::clone(&self.settings),
            origin: 0,
            hash: None,
            asker: Asker { hop, server: None, client: IpAddr::V4(Ipv4Addr::LOCALHOST) },
            content: Bytes::new(),
            before: offered.selected.clone(),
            since: offered.since,
            offered,
            seldom: false,
            completing: None,
            is_behind: false,
            may_wait_elsewhere: false,
        }
    }

    /// What memory has under a key, parts included.
    pub(super) fn stored(&self, key: &CacheKey) -> Vec<Arc<StoredResponse>> {
        let now = self.clock.now().monotonic;
        let keys = [key.clone(), key.of_parts()];
        keys.iter().flat_map(|key| self.store.responses(key, now).0).collect()
    }

    pub(super) async fn purge(&self, purge: &Purge) {
        let order = Order {
            selectors: vec![purge.selector()],
            mode: if purge.is_soft { Mode::Soft } else { Mode::Hard },
            scope: purge.scope(),
            here: Vec::new(),
            takes_patterns: true,
            wait: None,
        };
        let sender = Sender { dialect: Dialect::Api, peer: None, by: "admin" };
        self.worker.purge(&order, sender).await.unwrap();
    }

    /// An unsafe request to a URL was answered.
    pub(super) async fn post(&self, url: Url) {
        let (proxy, now) = (&self.worker.proxy, self.clock.now());
        let (stores, flights, head) = (proxy.begin_invalidation(), &proxy.flights, self.request(url));
        let under_way = UnderWay {
            any: &|key| flights.any_of_base(key, None),
            tell: &|key, number, how| flights.invalidate(key, number, how, None),
        };
        let (kind, how) = (InvalidationKind::UnsafeMethod, How::Validate(Some(now.monotonic)));
        let under = (head.authority.as_str(), std::slice::from_ref(&head.target));
        invalidation::invalidate(&proxy.invalidations, &stores, under, (kind, how, now), &under_way);
        Writing::of(&stores).wait().await;
    }

    /// Waits until what is on its way to plain files, or to be removed, is done: in the order in which it is asked for.
    pub(super) fn settle(&self) {
        let Some(files) = &self.files else { return };
        let none = TargetUri { scheme: Scheme::Http, authority: "none.test", path: "/", query: None };
        assert!(!files.remove(&none).unwrap());
    }

    pub(super) fn sweep(&self) {
        self.worker.proxy.sweep_memory(&[Arc::downgrade(&self.store)]);
    }
}

fn open(behind: Behind, folder: &Path, clock: &Clock) -> (Arc<Store>, Option<Arc<FileStore>>) {
    let memory = MemoryStoreSettings { memory: MEMORY_BYTES, max_object: 1 << 20 };
    match behind {
        Behind::Nothing => (Store::in_memory(&memory), None),
        Behind::Disk => {
            let settings = DiskSettings {
                path: folder.to_owned(),
                size: DiskSize::Bytes(BEHIND_BYTES),
                idle: None,
                files: Default::default(),
            };
            let disks = Disks::unopened(Layout::Single, vec![settings], 1 << 20, clock);
            (Store::new(&memory, Some(disks)), None)
        }
        Behind::Files => {
            let files =
                FileStore::open_with(&FilesSettings::new(folder, BEHIND_BYTES), clock.clone()).unwrap();
            let until = Instant::now() + PATIENCE;
            while !files.usage().is_counted {
                assert!(Instant::now() < until, "{:?}", files.usage());
                std::thread::yield_now();
            }
            (Store::new(&memory, Some(Arc::clone(&files))), Some(files))
        }
    }
}

/// The journal first: it is ahead of everything else. Then segments from the last to the first, as they are given up.
fn copy_disk(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let is_journal = |path: &std::path::PathBuf| path.extension() == Some("journal".as_ref());
    let (journals, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_journal);
    for path in journals.iter().chain(others.iter().rev()) {
        let _ = std::fs::copy(path, to.join(path.file_name().unwrap()));
    }
}

/// All bytes of a stored body.
pub(super) async fn content(stored: &Arc<StoredResponse>) -> Vec<u8> {
    match stored.body.content(0..stored.body.length()).unwrap() {
        Body::Empty => Vec::new(),
        Body::Full(bytes) => bytes.to_vec(),
        Body::Pieces { owner, range } => {
            owner.pieces().concat()[range.start as usize..range.end as usize].to_vec()
        }
        Body::Stream { mut stream, .. } => {
            let mut all = Vec::new();
            while let Some(frame) = std::future::poll_fn(|cx| Pin::as_mut(&mut stream).poll_frame(cx)).await {
                all.extend_from_slice(&frame.unwrap().into_data().unwrap());
            }
            all
        }
    }
}
