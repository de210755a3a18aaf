//! Disks that are not there when larder starts, and come back while it runs.
//!
//! A disk goes by a folder in its place that cannot be one, which holds for root as well. Meanwhile everything is served, and figures, log and purges say that the disk is absent. When it is back it is used; what it
//! held is found as far as nothing was invalidated, and of what was purged or changed meanwhile nothing older is ever served.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::Ordering;

use super::Site;
use super::catalogue::Catalogue;
use super::load::{Load, find_all, read_all};
use super::origin::Origin;
use crate::support::{Process, Signal, until};

/// Some 7 MB, which fit on one disk.
const FEW_RESOURCES: usize = 12;
const RESOURCES: usize = 40;
const CLIENTS: u64 = 4;
/// Answers while a disk is absent, and after it has come back.
const ANSWERS: u64 = 150;

/// A site whose first disk is a link, to a folder that is a disk or to one that cannot be one.
struct Shelf {
    site: Site,
    folder: PathBuf,
}

impl Shelf {
    fn new(origin: &Origin, layout: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().to_owned();
        std::fs::create_dir(folder.join("there")).unwrap();
        // Where the file should be that says which disk it is.
        std::fs::create_dir_all(folder.join("away/larder")).unwrap();
        let other = (layout != "single").then(|| folder.join("other"));
        let disks = std::iter::once(folder.join("disk")).chain(other).collect();
        std::os::unix::fs::symlink("there", folder.join("disk")).unwrap();
        Self { site: Site::of(&origin.url(), layout, disks, temporary), folder }
    }

    /// At once: larder may look at any moment.
    fn link(&self, to: &str) {
        let new = self.folder.join("new");
        std::os::unix::fs::symlink(to, &new).unwrap();
        std::fs::rename(new, self.folder.join("disk")).unwrap();
    }

    fn take_away(&self) {
        self.link("away");
    }

    fn bring_back(&self) {
        self.link("there");
    }

    /// A larder that has stored everything, and has ended in good order.
    async fn fill(&self, catalogue: &Catalogue) {
        let mut larder = Process::run_config(&self.site.config).await;
        read_all(larder.addr, catalogue).await;
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0);
    }
}

async fn run(larder: &Process, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).args(["--admin", &larder.admin.to_string()]);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What `larder stats` says of a disk: the end of its line, and the same in JSON.
async fn state(larder: &Process, disk: &Path) -> (String, String) {
    let name = disk.to_str().unwrap();
    let said = text(&run(larder, &["stats"]).await.stdout);
    let line = said.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name} in {said}"));
    let stats: serde_json::Value =
        serde_json::from_slice(&run(larder, &["stats", "--json"]).await.stdout).unwrap();
    let tiers = stats["stores"][0]["tiers"].as_array().unwrap();
    let tier = tiers.iter().find(|tier| tier["disk"] == name).unwrap();
    let mut words = line.split_whitespace();
    let told = words.find(|word| ["ok", "absent", "failing", "no-room"].contains(word));
    (told.unwrap().to_owned(), tier["state"].as_str().unwrap().to_owned())
}

fn both(word: &str) -> (String, String) {
    (word.to_owned(), word.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_absent_at_the_start_is_used_when_it_comes_and_what_was_purged_is_gone() {
    let origin = Origin::start(Catalogue::new(FEW_RESOURCES));
    let catalogue = &origin.catalogue;
    let shelf = Shelf::new(&origin, "single");
    shelf.fill(catalogue).await;
    shelf.take_away();
    let disk = &shelf.site.disks[0];
    let mut larder = Process::run_config(&shelf.site.config).await;
    larder.says("goes on without").await;
    // Everything is served, and nothing of what the disk has.
    let before = origin.gets();
    read_all(larder.addr, catalogue).await;
    assert!(origin.gets() >= before + FEW_RESOURCES as u64);
    assert_eq!(larder.metrics().await.sum("larder_disk_failing"), 1);
    assert_eq!(state(&larder, disk).await, both("absent"));

    // What is purged is gone, and the purge says that the disk did not confirm it.
    let purged = catalogue.resources[0];
    let version = catalogue.change(purged);
    let url = purged.url();
    let output = run(&larder, &["rm", &url]).await;
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("is absent"), "{:?} {said}", output.status);
    catalogue.acknowledge(purged, version, "larder rm");
    assert!(!find_all(larder.addr, catalogue).await.contains(&purged), "it is gone from memory");

    shelf.bring_back();
    larder.says("what it held was given up").await;
    assert!(!find_all(larder.addr, catalogue).await.contains(&purged), "older than the purge");
    assert_eq!(larder.metrics().await.sum("larder_disk_failing"), 0);
    assert_eq!(state(&larder, disk).await, both("ok"));
    // From now on it is a disk like others.
    let version = catalogue.change(purged);
    let output = run(&larder, &["rm", &url]).await;
    assert!(output.status.success(), "{output:?}");
    catalogue.acknowledge(purged, version, "larder rm");
    read_all(larder.addr, catalogue).await;
    for resource in &catalogue.resources {
        // What memory had since before the disk came is fetched again, and goes to the disk now.
        run(&larder, &["rm", &resource.url()]).await;
    }
    read_all(larder.addr, catalogue).await;
    let is_written = async || larder.metrics().await.sum("larder_disk_queued_bytes") == 0;
    until("it is on the disk", is_written).await;
    larder.signal(Signal::KILL);
    larder.gone().await;
    let larder = Process::run_config(&shelf.site.config).await;
    let before = origin.gets();
    let found = find_all(larder.addr, catalogue).await;
    assert!(found.len() > FEW_RESOURCES / 2 && origin.gets() == before, "{found:?}");
    // Left out once, back once.
    assert_eq!(larder.stderr().iter().filter(|line| line.contains("goes on without")).count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_absent_disk_holds_is_found_when_it_is_back() {
    for layout in super::LAYOUTS {
        let origin = Origin::start(Catalogue::new(FEW_RESOURCES));
        let catalogue = &origin.catalogue;
        let shelf = Shelf::new(&origin, layout);
        shelf.fill(catalogue).await;
        shelf.take_away();
        // It ends in good order without its disk.
        let mut larder = Process::run_config(&shelf.site.config).await;
        larder.signal(Signal::TERM);
        assert_eq!(larder.end().await, 0);
        let larder = Process::run_config(&shelf.site.config).await;
        match layout {
            "single" => assert!(find_all(larder.addr, catalogue).await.is_empty()),
            "mirror" => assert_eq!(find_all(larder.addr, catalogue).await, catalogue.resources),
            "hash" => assert!(find_all(larder.addr, catalogue).await.len() < FEW_RESOURCES),
            // What is asked for while some of its pieces are away is given up.
            _ => {}
        }
        shelf.bring_back();
        larder.says("disk again").await;
        let before = origin.gets();
        assert_eq!(find_all(larder.addr, catalogue).await, catalogue.resources, "{layout}");
        assert_eq!(origin.gets(), before);
        let told = |text: &str| larder.stderr().iter().filter(|line| line.contains(text)).count();
        assert_eq!(
            (told("goes on without"), told("again;"), told("given up")),
            (1, 0, 0),
            "{:?}",
            larder.stderr()
        );
    }
}

/// Under load all the time, with POSTs that invalidate: whatever a disk has missed, no answer is wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_comes_back_under_load_costs_nobody_an_answer() {
    for layout in super::LAYOUTS {
        let seed = super::seed();
        println!("{layout}: LARDER_SEED={seed}");
        let origin = Origin::start(Catalogue::new(RESOURCES));
        let shelf = Shelf::new(&origin, layout);
        shelf.fill(&origin.catalogue).await;
        shelf.take_away();
        let larder = Process::run_config(&shelf.site.config).await;
        let load = Load::new(&larder, &origin.catalogue);
        let clients = load.begin(CLIENTS, &format!("{seed} {layout}"));
        let serves = async |more: u64| {
            let enough = load.tally.answers.load(Ordering::Relaxed) + more;
            until("clients are served", async || {
                assert!(!clients.iter().any(tokio::task::JoinHandle::is_finished), "a client has ended");
                load.tally.answers.load(Ordering::Relaxed) >= enough
            })
            .await;
        };
        serves(ANSWERS).await;
        shelf.bring_back();
        larder.says("disk again").await;
        let disk =
            format!("larder_disk_written_objects_total{{store=\"default\",disk={:?}}}", shelf.site.disks[0]);
        let is_used = async || larder.metrics().await.value(&disk) > Some(0.0);
        until("it is written to", is_used).await;
        serves(ANSWERS).await;
        load.is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.await.unwrap();
        }
        println!("{:?}", load.tally);
        assert!(larder.is_running());
    }
}
