//! Limits of the system: no further thread, no larger file. Both are errors that cost hits, never the end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use larder_testkit::origin::Origin;
use rustix::process::getuid;

use crate::support::{Process, Signal, assert_whole, cacheable, config, get, until, written};

/// Nobody else's, so that its processes are this test's.
const USER: &str = "61234";

/// A number of threads that the process may not exceed counts for users without privileges only.
#[tokio::test]
async fn without_a_further_thread_files_are_served_and_signals_heeded() {
    if !getuid().is_root() {
        println!("skipped: another user takes root");
        return;
    }
    let origin = Origin::simple(vec![cacheable("/a*", 1000)]).unwrap();
    let (directory, path) = written("");
    let folder = directory.path();
    let public = folder.join("public");
    std::fs::create_dir(&public).unwrap();
    std::fs::write(public.join("page.txt"), "a page").unwrap();
    let site = format!("root = \"{}\"\nstore = \"pages\"", public.display());
    let stores =
        format!("[stores.pages]\nfiles = {{ path = \"{}/pages\", size = \"64MiB\" }}\n", folder.display());
    std::fs::write(&path, config(&origin.url(), "workers = 2", &site) + &stores).unwrap();
    let larder = folder.join("larder");
    std::fs::copy(env!("CARGO_BIN_EXE_larder"), &larder).unwrap();
    for open in [folder, &larder] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(&larder);
    command.args(["run", "-c"]).arg(&path);
    let mut larder = Process::spawn(command, None);
    larder.greeted().await;
    let pid = larder.pid.to_string();
    let mut lower = Command::new("setpriv");
    lower.args([
        "--reuid",
        USER,
        "--regid",
        USER,
        "--clear-groups",
        "--",
        "prlimit",
        "--pid",
        &pid,
        "--nproc=1:1",
    ]);
    assert!(lower.status().unwrap().success());
    let page = get(larder.addr, "/page.txt").await;
    assert_eq!((page.status, &page.body[..]), (200, &b"a page"[..]), "{page}");
    for n in 0..20 {
        let target = format!("/a/{n}");
        assert_whole(&get(larder.addr, &target).await, &target, 1000);
        assert_eq!(get(larder.addr, "/page.txt").await.status, 200);
    }
    assert_eq!(get(larder.admin, "/objects").await.status, 200);
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
    assert!(larder.stderr().iter().all(|line| !line.contains("panicked")), "{:?}", larder.stderr());
}

fn limited(path: &Path, file_size_bytes: u64) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={file_size_bytes}")).arg("--").arg(env!("CARGO_BIN_EXE_larder"));
    command.args(["run", "-c"]).arg(path);
    command
}

#[tokio::test]
async fn beyond_a_limit_on_the_size_of_files_nothing_ends_and_what_is_lost_is_counted() {
    let origin = Origin::simple(vec![cacheable("/*", 600_000)]).unwrap();
    let (directory, path) = written("");
    let folder = directory.path().display();
    let site = "store = \"disk\"\n[[site.rule]]\npath = \"/files/*\"\nstore = \"pages\"";
    let stores = format!(
        "[stores.disk]\nmemory = \"8MiB\"\ndisks = [{{ path = \"{folder}/disk\", size = \"64MiB\" }}]\n\
         [stores.pages]\nmemory = \"8MiB\"\nfiles = {{ path = \"{folder}/pages\", size = \"64MiB\" }}\n\
         [log]\naccess = \"{folder}/access.log\"\n"
    );
    std::fs::write(&path, config(&origin.url(), "workers = 1", site) + &stores).unwrap();
    let mut larder = Process::spawn(limited(&path, 256 * 1024), None);
    larder.greeted().await;
    for n in 0..4 {
        for target in [format!("/{n}"), format!("/files/{n}"), format!("/{n}")] {
            assert_whole(&get(larder.addr, &target).await, &target, 600_000);
        }
    }
    until("what the disk could not write is counted", async || {
        larder.metrics().await.sum("larder_disk_write_errors_total") > 0
    })
    .await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
}
