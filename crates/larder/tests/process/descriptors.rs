//! File descriptors: how many there are is found out at the start, raised as far as may be, and shared out.
//!
//! Whatever stores would like to keep open, clients have half of them, and the admin address answers.

use std::path::Path;
use std::process::Command;

use larder_testkit::client::{Connection, Progress};
use larder_testkit::origin::{Answer, Origin};

use crate::support::{
    Process, Signal, answer_of, asking, assert_whole, cacheable, config, connect, get, script, until, written,
};

// One worker: each that waits for a connection holds a place for it.

/// A larder that may have `soft` descriptors, and `hard` if it asks for them.
async fn limited(path: &Path, soft: u64, hard: u64) -> Process {
    let mut larder = begun("run", path, soft, hard);
    larder.greeted().await;
    larder
}

fn begun(verb: &str, path: &Path, soft: u64, hard: u64) -> Process {
    let mut command = Command::new("sh");
    let script = format!("ulimit -S -n {soft} && ulimit -H -n {hard} && exec \"$@\"");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_larder"), verb, "-c"]).arg(path);
    Process::spawn(command, None)
}

/// Open connections, each of which has had an answer.
async fn clients(larder: &Process, count: usize) -> Vec<Connection> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = connect(larder.addr).await;
        assert_whole(&client.exchange(&asking("/a")).await.unwrap(), "/a", 100);
        clients.push(client);
    }
    clients
}

/// A store of plain files and one on a disk with a thousand segments, in `folder`.
fn stores(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "[stores.pages]\nfiles = {{ path = \"{folder}/pages\", size = \"64MiB\" }}\n\
         [stores.large]\nmemory = \"16MiB\"\ndisks = [{{ path = \"{folder}/large\", size = \"64GiB\" }}]\n"
    )
}

fn origin() -> Origin {
    Origin::simple(vec![cacheable("/a", 100)]).unwrap()
}

async fn allowed(larder: &Process) -> u64 {
    larder.metrics().await.sum("larder_connections_max")
}

#[tokio::test]
async fn the_soft_limit_is_raised_to_the_hard_one_and_said() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "workers = 1", ""));
    let larder = limited(&path, 256, 4096).await;
    assert_eq!(larder.metrics().await.value("process_max_fds"), Some(4096.0));
    let said = larder.stdout().join("\n");
    assert!(said.contains("4096 file descriptors (raised from 256)"), "{said}");
    let clients = allowed(&larder).await;
    assert!((2048..4096).contains(&clients), "{clients}");
    assert!(said.contains(&format!("{clients} clients at once")), "{said}");
    assert!(larder.stderr().is_empty(), "{:?}", larder.stderr());
}

#[tokio::test]
async fn stores_leave_half_of_few_descriptors_to_clients_and_work() {
    let origin = origin();
    let (directory, path) = written("");
    let text = config(&origin.url(), "workers = 1", "store = \"pages\"");
    std::fs::write(&path, text + &stores(directory.path())).unwrap();
    let mut larder = limited(&path, 1024, 1024).await;
    larder.says("1024 file descriptors").await;
    let held = clients(&larder, 512).await;
    assert!(larder.metrics().await.sum("larder_connections_open") >= 512);
    assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    drop(held);
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0);
    // What a check says is the same.
    let mut check = begun("check", &path, 256, 1024);
    assert_eq!(check.end().await, 0, "{:?}", check.stderr());
    let (said, warned) = (check.stdout().join("\n"), check.stderr().join("\n"));
    assert!(said.contains("1024 file descriptors (raised from 256)"), "{said}");
    assert!(warned.contains("file descriptors") && warned.contains("LimitNOFILE"), "{warned}");
}

#[tokio::test]
async fn a_reload_that_adds_stores_shares_out_anew_or_is_refused_with_the_figure() {
    let origin = origin();
    let (directory, path) = written(&config(&origin.url(), "workers = 1", ""));
    let larder = limited(&path, 1024, 1024).await;
    let before = allowed(&larder).await;
    let held = clients(&larder, before as usize).await;
    let text = config(&origin.url(), "workers = 1", "store = \"pages\"");
    std::fs::write(&path, format!("{text}{}", stores(directory.path()))).unwrap();
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    let after = allowed(&larder).await;
    assert!((512..before).contains(&after), "{before}, then {after}");
    assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    drop(held);
    // As many as there are now, no more.
    until("the old connections are gone", async || {
        larder.metrics().await.sum("larder_connections_open") == 0
    })
    .await;
    let held = clients(&larder, after as usize).await;
    assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    drop(held);
    let many: String = (0..40)
        .map(|n| {
            let folder = directory.path().display();
            format!("[stores.s{n}]\nfiles = {{ path = \"{folder}/s{n}\", size = \"64MiB\" }}\n")
        })
        .collect();
    std::fs::write(&path, format!("{text}{}{many}", stores(directory.path()))).unwrap();
    larder.signal(Signal::HUP);
    larder.says("the old config stays in force").await;
    let said = larder.stderr().join("\n");
    assert!(said.contains("file descriptors") && said.contains("1024"), "{said}");
    assert_eq!(allowed(&larder).await, after);
    assert!(!directory.path().join("s0").exists(), "nothing of the refused config was made");
    assert_whole(&get(larder.addr, "/a").await, "/a", 100);
    for (verb, code) in [("check", 1), ("run", 1)] {
        let mut larder = begun(verb, &path, 1024, 1024);
        assert_eq!(larder.end().await, code, "{verb}: {:?}", larder.stderr());
        let refused = said.lines().find(|line| line.contains("is enough"));
        assert_eq!(larder.stderr().last().map(String::as_str), refused);
    }
}

/// Every client that there may be has a connection to the origin as well.
#[tokio::test]
async fn the_admin_address_answers_where_no_descriptor_is_left() {
    let waits = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: no-store"], 10) };
    let origin = Origin::simple(vec![script("/waits*", waits)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "workers = 1", ""));
    let larder = limited(&path, 300, 300).await;
    let allowed = allowed(&larder).await as usize;
    let mut clients = Vec::new();
    for n in 0..allowed {
        let mut client = connect(larder.addr).await;
        client.write(&asking(&format!("/waits/{n}")).to_http1()).await.unwrap();
        clients.push(client);
    }
    until("all are accepted", async || {
        get(larder.admin, "/stats").await.status == 200
            && larder.metrics().await.sum("larder_connections_open") as usize == allowed
    })
    .await;
    for _ in 0..20 {
        assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    }
    origin.gates().release("go");
    for mut client in clients {
        let response = client.read_response("GET", &Progress::default()).await.unwrap();
        assert!([200, 502, 503].contains(&response.status), "{response}");
    }
}

/// The limit falls below what is open already: nothing can be opened any more.
#[tokio::test]
async fn the_admin_address_has_descriptors_of_its_own() {
    let origin = origin();
    let (_directory, path) = written(&config(&origin.url(), "workers = 1", ""));
    let larder = limited(&path, 1024, 1024).await;
    assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    let pid = rustix::process::Pid::from_raw(i32::try_from(larder.pid).unwrap());
    let open = std::fs::read_dir(format!("/proc/{}/fd", larder.pid)).unwrap().count() as u64;
    let none = rustix::process::Rlimit { current: Some(open), maximum: Some(1024) };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, none).unwrap();
    let mut client = connect(larder.addr).await;
    client.write(&asking("/a").to_http1()).await.unwrap();
    for _ in 0..20 {
        assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    }
}
