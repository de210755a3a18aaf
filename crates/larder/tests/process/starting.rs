//! Starting, checking a config, and refusing to start: what is said, and with which exit code.

use std::process::Command;
use std::time::{Duration, Instant};

use larder_testkit::front;
use larder_testkit::origin::{Answer, Origin, PathScript};

use crate::support::{
    Process, Signal, asking, assert_whole, cache_status, cacheable, config, connect, get, script, until,
    within, written,
};

#[tokio::test]
async fn run_says_where_it_is_and_what_it_fronts_and_serves() {
    let origin = Origin::simple(vec![cacheable("/a", 1000)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "2", "--memory", "8MiB"]).await;
    let said = larder.stdout().join("\n");
    assert!(said.contains(&format!("every host -> {}", origin.url())), "{said}");
    assert!(said.contains("2 workers"), "{said}");
    let miss = get(larder.addr, "/a").await;
    assert_whole(&miss, "/a", 1000);
    assert!(cache_status(&miss).contains("fwd=uri-miss"), "{miss}");
    until("it is stored", async || cache_status(&get(larder.addr, "/a").await).contains("; hit")).await;
    assert_eq!(origin.log().count(), 1, "{}", origin.log());
    let metrics = larder.metrics().await;
    let max = metrics.value("larder_cache_max_bytes{store=\"default\",tier=\"memory\"}");
    assert_eq!(max, Some(8.0 * 1024.0 * 1024.0));
    assert_eq!(get(larder.admin, "/healthz").await.status, 200);
    assert!(larder.stderr().is_empty(), "{:?}", larder.stderr());
}

#[tokio::test]
async fn an_origin_behind_a_unix_socket_answers_502_until_it_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.sock");
    let larder = Process::run(&["--origin", &format!("unix:{}", path.display())]).await;
    let asked = Instant::now();
    let refused = get(larder.addr, "/a").await;
    assert_eq!(refused.status, 502, "{refused}");
    assert!(cache_status(&refused).contains("detail="), "{refused}");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let unix = Answer::new(200, &["Cache-Control: max-age=60"], "unix!");
    let origin = Origin::simple(vec![script("/a", unix)]).unwrap();
    front::unix(&origin, &path).unwrap();
    let answered = get(larder.addr, "/a").await;
    assert_eq!((answered.status, &answered.body[..]), (200, &b"unix!"[..]), "{answered}");
    until("it is stored", async || cache_status(&get(larder.addr, "/a").await).contains("; hit")).await;
    assert_eq!(origin.log().count(), 1, "{}", origin.log());
}

#[tokio::test]
async fn an_origin_that_does_not_resolve_is_a_warning_and_502_until_it_does() {
    // A mount namespace of its own gives larder a hosts file that the test may change, and no name server.
    let may = Command::new("unshare").args(["-rm", "mount", "--bind", "/etc/hosts", "/etc/hosts"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine gives no mount namespaces");
        return;
    }
    let origin = Origin::simple(vec![cacheable("/a", 100)]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    std::fs::write(file("hosts"), "127.0.0.1 localhost\n").unwrap();
    std::fs::write(file("resolv.conf"), "").unwrap();
    let mut command = Command::new("unshare");
    let script =
        "mount --bind \"$1\" /etc/hosts && mount --bind \"$2\" /etc/resolv.conf && shift 2 && exec \"$@\"";
    command.args(["-rm", "sh", "-c", script, "sh"]);
    command.args([file("hosts"), file("resolv.conf")]).arg(env!("CARGO_BIN_EXE_larder"));
    let url = format!("http://app.test:{}", origin.addr().port());
    command.args(["run", "--origin", &url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let mut larder = Process::spawn(command, None);
    larder.greeted().await;
    larder.says("does not resolve").await;
    let warning = larder.stderr().join("\n");
    assert!(warning.contains("app.test") && warning.starts_with("larder: warning:"), "{warning}");
    let refused = get(larder.addr, "/a").await;
    assert_eq!(refused.status, 502, "{refused}");
    assert!(cache_status(&refused).contains("detail=dns"), "{refused}");
    std::fs::write(file("hosts"), "127.0.0.1 localhost app.test\n").unwrap();
    until("the name resolves", async || get(larder.addr, "/a").await.status == 200).await;
}

/// Six things are wrong in it.
const BAD: &str = "listen = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\nworkres = 2\n\
    [origins.app]\nservers = [\"ftp://x\"]\nconnect_timeout = 3\n\
    [[site]]\norgin = \"app\"\n[[site.rule]]\nttl = \"ten\"\n";

/// For each: its place, and what has to stand in that line and the hint after it.
const COMPLAINTS: [(&str, &[&str]); 5] = [
    (":3:1: workres:", &["unknown key \"workres\"", "hint: did you mean \"workers\"?"]),
    (":5:12: origins.app.servers[0]:", &["found \"ftp://x\"", "expected a server", "http://127.0.0.1:3000"]),
    (":6:19: origins.app.connect_timeout:", &["found 3", "expected a duration"]),
    (":8:1: site[0].orgin:", &["unknown key \"orgin\"", "hint: did you mean \"origin\"?"]),
    (":10:7: site[0].rule[0].ttl:", &["found \"ten\"", "expected a duration"]),
];

#[track_caller]
fn assert_complaints(stderr: &[String], file: &str) {
    for (place, parts) in COMPLAINTS {
        let at = stderr.iter().position(|line| line.starts_with(&format!("{file}{place}")));
        let at = at.unwrap_or_else(|| panic!("nothing about {place} in {stderr:#?}"));
        let said = stderr[at..stderr.len().min(at + 2)].join("\n");
        for part in parts {
            assert!(said.contains(part), "{place}: no {part:?} in {said}");
        }
    }
}

#[tokio::test]
async fn check_prints_every_error_at_once_and_run_prints_the_same_and_does_not_start() {
    let (_directory, path) = written(BAD);
    let path = path.to_str().unwrap();
    let mut check = Process::start(&["check", "-c", path]);
    assert_eq!(check.end().await, 3);
    assert_complaints(&check.stderr(), path);
    assert!(check.stdout().is_empty(), "{:?}", check.stdout());
    let mut run = Process::start(&["run", "-c", path]);
    assert_eq!(run.end().await, 3);
    assert_eq!(run.stderr(), check.stderr());
    assert!(run.stdout().is_empty(), "it says that it listens: {:?}", run.stdout());
}

#[tokio::test]
async fn exit_codes_tell_a_good_config_a_bad_one_and_a_wrong_command_line_apart() {
    let (directory, good) = written(&config("http://127.0.0.1:1", "", ""));
    let missing = directory.path().join("none.toml");
    let rootless = directory.path().join("root.toml");
    std::fs::write(&rootless, "[[site]]\nroot = \"/nonexistent/larder\"\n").unwrap();
    let [good, missing, rootless] = [&good, &missing, &rootless].map(|path| path.to_str().unwrap());
    let cases: [(&[&str], i32, &str); 11] = [
        (&["check", "-c", good], 0, ""),
        (&["check", "-c", missing], 3, "none.toml: cannot be read"),
        (&["run", "-c", missing], 3, "none.toml: cannot be read"),
        (&["check", "-c", rootless], 3, "root.toml:2:8: site[0].root: found \"/nonexistent/larder\""),
        (&["run", "-c", rootless], 3, "root.toml:2:8: site[0].root: found \"/nonexistent/larder\""),
        (&["run", "--origin", "gopher://x"], 3, "--origin"),
        (&["run", "--origin", "http://127.0.0.1:1", "--memory", "much"], 3, "--memory"),
        (&["run", "--origin", "http://127.0.0.1:1", "--listen", "here"], 3, "--listen"),
        (&["run"], 2, "--origin"),
        (&["run", "-c", good, "--origin", "http://127.0.0.1:1"], 2, "cannot be used with"),
        (&["chekc"], 2, "check"),
    ];
    for (arguments, code, part) in cases {
        let mut larder = Process::start(arguments);
        assert_eq!(larder.end().await, code, "{arguments:?}: {:?}", larder.stderr());
        let said = larder.stderr().join("\n");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert_eq!(said.is_empty(), code == 0, "{arguments:?}: {said}");
    }
    let mut checked = Process::start(&["check", "-c", good]);
    assert_eq!(checked.end().await, 0);
    let said = checked.stdout();
    assert_eq!((said.len(), &*said[0]), (2, &*format!("{good}: ok")));
    assert!(said[1].contains(" file descriptors"), "{said:?}");
}

#[tokio::test]
async fn a_port_in_use_is_one_clear_line() {
    let origin = Origin::simple(Vec::<PathScript>::new()).unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // Another larder shares its port among its own workers, but not with anybody else.
    let first = Process::run(&["--origin", &origin.url(), "--workers", "2"]).await;
    let taken = [other.local_addr().unwrap(), first.addr, first.admin];
    for (listen, admin) in taken
        .iter()
        .map(|t| (t.to_string(), "127.0.0.1:0".to_owned()))
        .chain(taken.iter().map(|t| ("127.0.0.1:0".to_owned(), t.to_string())))
    {
        let arguments = ["run", "--origin", &origin.url(), "--listen", &listen, "--admin", &admin];
        let mut second = Process::start(&arguments);
        assert_eq!(second.end().await, 1, "{arguments:?}: {:?}", second.stderr());
        let used = if listen.ends_with(":0") { &admin } else { &listen };
        assert_eq!(second.stderr(), [format!("larder: error: {used} is in use")]);
        assert!(second.stdout().is_empty(), "{:?}", second.stdout());
    }
    assert_eq!(get(first.admin, "/healthz").await.status, 200);
}

#[tokio::test]
async fn a_signal_right_after_the_start_ends_in_good_order() {
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut larder = Process::run(&["--origin", &origin.url()]).await;
        let mut idle = connect(larder.addr).await;
        assert_eq!(idle.exchange(&asking("/a")).await.unwrap().status, 200);
        larder.signal(signal);
        assert!(within("the idle connection", idle.ends_within(Duration::from_secs(5))).await.unwrap());
        assert_eq!(larder.end().await, 0, "{signal:?}");
    }
}

/// In a network of its own, whose name server never answers.
#[tokio::test]
async fn a_resolver_that_does_not_answer_holds_neither_start_nor_end_up() {
    let network = "ip link set lo up && ip tuntap add t0 mode tun && ip addr add 192.0.2.1/24 dev t0 \
        && ip link set t0 up && mount --bind \"$1\" /etc/resolv.conf";
    let directory = tempfile::tempdir().unwrap();
    let resolver = directory.path().join("resolv.conf");
    std::fs::write(&resolver, "nameserver 192.0.2.53\n").unwrap();
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rmn", "sh", "-c", script, "sh"]).arg(&resolver);
        command
    };
    if !inside(network).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine gives no network namespaces with a tun device");
        return;
    }
    let mut command = inside(&format!("{network} && shift && exec \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_larder"));
    let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    command.args(["run", "--origin", "http://app.test:1"]).args(free);
    let mut larder = Process::spawn(command, None);
    let started = Instant::now();
    larder.greeted().await;
    larder.signal(Signal::TERM);
    assert_eq!(larder.end().await, 0, "{:?}", larder.stderr());
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

/// Each compiles to less than a megabyte, all together to more than sixteen.
#[tokio::test]
async fn patterns_that_are_too_much_together_are_an_error_with_a_place_in_check_and_in_run() {
    let rule = |n: usize| format!("[[site.rule]]\npath_regex = ['^/{n}/\\w{{18}}$']\nttl = \"1s\"\n");
    let rules: String = (0..24).map(rule).collect();
    let (_directory, path) = written(&config("http://127.0.0.1:1", "", &rules));
    let path = path.to_str().unwrap();
    let mut check = Process::start(&["check", "-c", path]);
    assert_eq!(check.end().await, 3, "{:?} {:?}", check.stdout(), check.stderr());
    let said = check.stderr();
    assert!(said[0].starts_with(&format!("{path}:")) && said[0].contains("path_regex"), "{said:?}");
    assert!(said[0].contains("together"), "{said:?}");
    let mut run = Process::start(&["run", "-c", path]);
    assert_eq!(run.end().await, 3);
    assert_eq!(run.stderr(), said);
}

/// What no line of the config is to blame for: a certificate that is none.
#[tokio::test]
async fn what_run_cannot_build_check_refuses_too() {
    let (directory, path) = written("");
    std::fs::write(directory.path().join("ca.pem"), "-----BEGIN CERTIFICATE-----\nnone\n").unwrap();
    let text = config("https://127.0.0.1:1", "", "").replace("idle =", "ca_file = \"ca.pem\"\nidle =");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let mut run = Process::start(&["run", "-c", path]);
    assert_eq!(run.end().await, 1, "{:?}", run.stderr());
    let mut check = Process::start(&["check", "-c", path]);
    assert_eq!(check.end().await, 1, "{:?}", check.stderr());
    assert_eq!(run.stderr(), check.stderr());
}
