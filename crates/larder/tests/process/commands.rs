//! The command line: how commands are named and find their larder, what they print where, and rates.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use larder_testkit::origin::{Answer, Origin};
use serde_json::Value;

use crate::process::keeping::{run, said, stored, text};
use crate::support::{
    Process, Signal, answer_of, asking, cacheable, config, connect, get, script, until, with_admin, within,
    written,
};

/// A command that is asked for its status and standard error.
async fn ends(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments).env_remove("LARDER_ADMIN").env_remove("LARDER_ADMIN_TOKEN");
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    let output: Output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), shown(&output.stdout), shown(&output.stderr))
}

#[tokio::test]
async fn rates_tell_hits_and_collapsed_requests_apart() {
    let slow = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 10) };
    let origin = Origin::simple(vec![script("/slow", slow), cacheable("/a", 10)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "1"]).await;
    stored(&larder, "/a").await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_larder"))
        .args(["stats", "--every", "100ms", "--json", "--admin", &larder.admin.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The first line says that an interval has begun.
    let mut lines =
        tokio::task::spawn_blocking(move || (lines.next().unwrap().unwrap(), lines).1).await.unwrap();
    for _ in 0..7 {
        get(larder.addr, "/a").await;
    }
    let asked = (0..3).map(|_| {
        tokio::spawn(
            async move { connect(larder.addr).await.exchange(&asking("/slow")).await.unwrap().status },
        )
    });
    let asked: Vec<_> = asked.collect();
    until("two follow the third", async || larder.metrics().await.sum("larder_flights_waiting") >= 2).await;
    origin.gates().release("go");
    for one in asked {
        assert_eq!(one.await.unwrap(), 200);
    }
    let summed = tokio::task::spawn_blocking(move || {
        let names = ["requests", "saved", "hits", "collapsed", "origin_requests"];
        let mut sums = [0.0; 5];
        for line in lines.by_ref().take(100) {
            let rates: Value = serde_json::from_str(&line.unwrap()).unwrap();
            for (sum, name) in sums.iter_mut().zip(names) {
                *sum += rates[name].as_f64().unwrap() * rates["seconds"].as_f64().unwrap();
            }
            if sums.map(f64::round) == [10.0, 9.0, 7.0, 2.0, 1.0] {
                return Ok(());
            }
        }
        Err(sums)
    });
    assert_eq!(within("the rates", summed).await.unwrap(), Ok(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let told = text(&larder, &["stats", "--every", "100ms", "--count", "2"]).await;
    assert!(told.contains("SAVED/S") && told.contains("COLLAPSED/S"), "{told}");
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(told.lines().all(|line| line.chars().count() < 80), "{told}");
    let told = text(&larder, &["stats"]).await;
    for line in ["answered", "saved", "  hits", "  collapsed", "to origins"] {
        assert!(told.lines().any(|told| told.starts_with(line)), "no {line:?} in:\n{told}");
    }
    let (code, _, stderr) = ends(&["stats", "--every", "1"], &[]).await;
    assert!(code == Some(2) && stderr.contains("add a unit"), "{stderr}");
}

/// Arguments, the environment, the exit code, and what stands on standard error.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], i32, &'a str);

#[tokio::test]
async fn a_larder_is_found_by_url_by_environment_and_by_its_config_file() {
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    let secret = "s3cret-and-long-enough";
    let text = with_admin(&config(&origin.url(), "", ""), &format!("token = \"{secret}\""));
    let (directory, path) = written(&text);
    let larder = Process::run_config(&path).await;
    stored(&larder, "/a").await;
    // The port that it took, as if the file had named it.
    let admin = larder.admin.to_string();
    std::fs::write(&path, text.replace("{ address = \"127.0.0.1:0\"", &format!("{{ address = \"{admin}\"")))
        .unwrap();
    let (path, url) = (path.to_str().unwrap(), format!("http://{admin}/"));
    let off = directory.path().join("off.toml");
    std::fs::write(&off, "admin = false\n[[site]]\nroot = \".\"\n").unwrap();
    let broken = directory.path().join("broken.toml");
    std::fs::write(&broken, "workres = 2\n").unwrap();
    let (off, broken) = (off.to_str().unwrap(), broken.to_str().unwrap());
    let token = ("LARDER_ADMIN_TOKEN", secret);
    let cases: [Case<'_>; 12] = [
        (&["ls", "--admin", &url, "--token", secret], &[], 0, ""),
        (&["ls"], &[("LARDER_ADMIN", &url), token], 0, ""),
        (&["ls"], &[("LARDER_ADMIN", &admin), token], 0, ""),
        (&["ls", "-c", path], &[("LARDER_ADMIN", "127.0.0.1:1")], 0, ""),
        (&["stats", "-c", path], &[], 0, ""),
        (&["get", "http://localhost/a", "-c", path], &[], 0, ""),
        (&["explain", "http://localhost/a", "--admin", &url], &[token], 0, ""),
        (&["ls", "--admin", &admin], &[("LARDER_ADMIN", "127.0.0.1:1")], 1, "wants its admin token"),
        (&["ls", "-c", off], &[], 1, "admin = false"),
        (&["ls", "-c", broken], &[], 3, "broken.toml:1:1: workres: unknown key"),
        (&["ls", "--admin", "https://127.0.0.1:8081"], &[], 2, "speaks http, not https"),
        (&["ls"], &[("LARDER_ADMIN", "http://a/b")], 2, "LARDER_ADMIN=http://a/b: expected an address"),
    ];
    for (arguments, variables, code, part) in cases {
        let (ended, _, stderr) = ends(arguments, variables).await;
        assert_eq!(ended, Some(code), "{arguments:?} {variables:?}: {stderr}");
        assert!(stderr.contains(part) && stderr.is_empty() == part.is_empty(), "{arguments:?}: {stderr}");
    }
}

#[tokio::test]
async fn commands_are_found_by_help_and_by_what_they_are_called_elsewhere() {
    let (_directory, path) = written("[[site]]\nroot = \".\"\n");
    let path = path.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 14] = [
        (&["help"], 0, "Usage: larder"),
        (&["help", "rm"], 0, "Usage: larder rm"),
        (&["check", path], 0, ": ok"),
        (&["check"], 2, "FILE"),
        (&["check", path, "-c", path], 2, "cannot be used with"),
        (&["run"], 2, "--origin <URL>"),
        (&["run", path, "--origin", "http://127.0.0.1:1"], 2, "cannot be used with"),
        (&["chekc"], 2, "'check'"),
        (&["statss"], 2, "'stats'"),
        (&["run", "http://127.0.0.1:3000"], 2, "for an app: --origin http://127.0.0.1:3000"),
        (&["purge"], 2, "--tag"),
        (&["certs", "renew", "a.example", "--wait", "18446744073709551615"], 2, "not in 1..=86400"),
        (&["serve"], 2, "larder run"),
        (&["http://127.0.0.1:3000"], 2, "larder run --origin http://127.0.0.1:3000"),
    ];
    for (arguments, code, part) in cases {
        let (ended, stdout, stderr) = ends(arguments, &[]).await;
        assert_eq!(ended, Some(code), "{arguments:?}: {stderr}");
        assert!(format!("{stdout}{stderr}").contains(part), "{arguments:?}: {stdout}{stderr}");
        assert_eq!(stderr.is_empty(), code == 0, "{arguments:?}: {stderr}");
    }
    let origin = Origin::simple(vec![cacheable("/a", 10)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "", ""));
    let mut larder = Process::start(&["run", path.to_str().unwrap()]);
    larder.greeted().await;
    assert_eq!(get(larder.addr, "/a").await.status, 200);
    larder.signal(Signal::HUP);
    larder.says("larder: reloaded").await;
}

#[tokio::test]
async fn a_star_lists_by_prefix_and_removes_nothing_without_saying_so() {
    let origin = Origin::simple(["/n/1", "/n/2", "/m"].map(|path| cacheable(path, 10)).to_vec()).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    for target in ["/n/1", "/n/2", "/m"] {
        stored(&larder, target).await;
    }
    for (prefix, count) in
        [("http://localhost/n/*", 2), ("localhost*", 3), ("local*", 3), ("*", 3), ("https://*", 0)]
    {
        let told = text(&larder, &["ls", "--urls", prefix]).await;
        assert_eq!(told.lines().count(), count, "{prefix}: {told}");
        assert!(told.lines().all(|line| line.starts_with("http://localhost/")), "{told}");
    }
    let admin = larder.admin.to_string();
    let output = run(&["rm", "http://localhost/n/*", "http://localhost/m", "--admin", &admin]).await;
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output.stdout), "1 response removed: http://localhost/m\n");
    let stderr = said(&output.stderr);
    assert!(
        stderr.contains("\n  hint: with the same options, larder ls --urls 'http://localhost/n/*' | xargs"),
        "{stderr}"
    );
    // What it proposes does it.
    let script = format!(
        "{larder} ls --urls 'http://localhost/n/*' | xargs -r -d '\\n' {larder} rm",
        larder = env!("CARGO_BIN_EXE_larder")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("LARDER_ADMIN", &admin);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(said(&output.stdout).matches("1 response removed").count(), 2, "{}", said(&output.stderr));
    assert_eq!(text(&larder, &["ls"]).await, "");
}

#[tokio::test]
async fn a_body_that_is_not_text_is_kept_from_a_terminal_and_goes_elsewhere() {
    let typed = |path, body: &str| script(path, Answer::new(200, &["Cache-Control: max-age=3600"], body));
    let origin = Origin::simple(vec![typed("/text", "plain\n"), typed("/steers", "a\u{1b}[2J")]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let terminal = async |arguments: &str| {
        let typed = format!("{} {arguments} --admin {}", env!("CARGO_BIN_EXE_larder"), larder.admin);
        let mut command = Command::new("script");
        command.args(["-qec", &typed, "/dev/null"]).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        (output.status.code(), said(&output.stdout))
    };
    for target in ["/text", "/steers"] {
        stored(&larder, target).await;
    }
    assert_eq!(terminal("get http://localhost/text").await, (Some(0), "plain\r\n".to_owned()));
    let (code, shown) = terminal("get http://localhost/steers").await;
    assert!(code == Some(1) && shown.contains("not text") && !shown.contains('\u{1b}'), "{shown:?}");
    let (code, shown) = terminal("get -o - http://localhost/steers").await;
    assert_eq!((code, shown.as_str()), (Some(0), "a\u{1b}[2J"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("body");
    let (code, shown) = terminal(&format!("get http://localhost/steers -o {}", file.display())).await;
    assert_eq!((code, std::fs::read(&file).unwrap()), (Some(0), b"a\x1b[2J".to_vec()), "{shown}");
    // A pipe is no terminal.
    assert_eq!(text(&larder, &["get", "http://localhost/steers"]).await, "a\u{1b}[2J");
}

#[tokio::test]
async fn a_port_that_needs_a_privilege_is_said_with_what_gives_it() {
    let mut command = Command::new("unshare");
    let larder = env!("CARGO_BIN_EXE_larder");
    let script = format!(
        "ip link set lo up && exec setpriv --bounding-set=-net_bind_service {larder} run --origin http://127.0.0.1:3000 \
         --listen 127.0.0.1:80 --admin 127.0.0.1:8081"
    );
    let may =
        Command::new("unshare").args(["-rn", "setpriv", "--bounding-set=-net_bind_service", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine gives no network namespaces");
        return;
    }
    command.args(["-rn", "sh", "-c", &script]);
    let mut larder = Process::spawn(command, None);
    assert_eq!(larder.end().await, 1, "{:?}", larder.stderr());
    let said = larder.stderr().join("\n");
    assert!(said.starts_with("larder: error: cannot listen on 127.0.0.1:80: Permission denied"), "{said}");
    assert!(said.contains("hint: ports below 1024 need") && said.contains("setcap"), "{said}");
}
