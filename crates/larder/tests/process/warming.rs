//! `larder warm`: what it asks for, in which order and how fast, what it reads from sitemaps, and how it ends.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use larder_testkit::origin::{Answer, Origin, PathScript};
use serde_json::Value;

use crate::support::{Process, Signal, answer_of, cacheable, config, script, within, written};

/// How a run ended, and what it wrote.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// `larder warm` with `list` on standard input.
async fn warm_list(list: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("warm").args(arguments).env_remove("LARDER_ADMIN").env_remove("LARDER_ADMIN_TOKEN");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, list) = (child.stdin.take().unwrap(), list.to_owned());
    let running = tokio::task::spawn_blocking(move || {
        // A command that ends early reads no list.
        let _ = stdin.write_all(list.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    });
    let output = within("larder warm", running).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

async fn warm(arguments: &[&str]) -> Ran {
    warm_list("", arguments).await
}

/// The same of a running larder, as JSON.
async fn warm_json(larder: &Process, list: &str, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let admin = larder.admin.to_string();
    let ran = warm_list(list, &[arguments, &["--json", "--admin", &admin]].concat()).await;
    let json = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    (ran.code, json, ran.stderr)
}

fn targets(origin: &Origin) -> Vec<String> {
    origin.log().all().into_iter().map(|seen| seen.target).collect()
}

fn urls(numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(|number| format!("http://shop.example/n/{number}\n")).collect()
}

/// An answer whose body is these bytes.
fn bytes_answer(fields: &[&str], body: &[u8]) -> Answer {
    // The testkit's strings stand for Latin-1 bytes.
    let template = body.iter().copied().map(char::from).collect();
    Answer {
        fields: fields.iter().map(|&line| line.to_owned()).collect(),
        template: Some(template),
        ..Answer::default()
    }
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn pages(host: &str, paths: &[&str]) -> String {
    let entries = paths.iter().map(|path| format!("<url><loc>http://{host}{path}</loc></url>"));
    format!("<?xml version=\"1.0\"?><urlset xmlns=\"x\">{}</urlset>", entries.collect::<String>())
}

fn index(paths: &[&str]) -> String {
    let entries = paths.iter().map(|path| format!("<sitemap><loc>http://shop.example{path}</loc></sitemap>"));
    format!("<sitemapindex>{}</sitemapindex>", entries.collect::<String>())
}

#[tokio::test]
async fn a_list_is_asked_for_in_order_each_url_once_and_later_hits() {
    let origin = Origin::simple(vec![cacheable("/n/*", 1000)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let list = urls((0..30).rev()) + &urls(5..9) + "# a comment\n\n";
    let (code, json, stderr) = warm_json(&larder, &list, &["--file", "-", "--at-once", "1"]).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let expected: Vec<_> = (0..30).rev().map(|number| format!("/n/{number}")).collect();
    assert_eq!(targets(&origin), expected);
    for (name, count) in [("urls", 30), ("asked", 30), ("stored", 30), ("hit", 0), ("body_bytes", 30_000)] {
        assert_eq!(json[name], count, "{name}: {json}");
    }
    assert_eq!(json["omitted"]["duplicates"], 4);
    assert_eq!(json["slowest"].as_array().unwrap().len(), 10);
    let seen = origin.log().last().unwrap();
    assert_eq!(seen.fields.first("accept-encoding"), Some("gzip, br"), "{seen}");
    // As visitors find it, and by the config's listener.
    let (code, json, _) = warm_json(&larder, &list, &["--file", "-"]).await;
    assert_eq!((code, &json["hit"], origin.log().count()), (Some(0), &Value::from(30), 30));
    let through = larder.addr.to_string();
    let ran = warm(&["http://shop.example/n/0", "http://shop.example/n/30", "--through", &through]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in ["2 URLs in ", "hit        1", "stored     1", "http://shop.example/n/30"] {
        assert!(ran.stdout.contains(line), "no {line:?} in {}", ran.stdout);
    }
}

#[tokio::test]
async fn no_more_than_the_limit_are_under_way_and_connections_are_kept() {
    let slow = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 10) };
    let origin = Origin::simple(vec![script("/n/*", slow)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url(), "--workers", "1"]).await;
    let list = urls(0..20);
    let arguments = ["--file", "-", "--at-once", "3", "--through", &larder.addr.to_string()];
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let running = tokio::spawn(async move {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        warm_list(&list, &arguments).await
    });
    within("three requests", origin.log().until(|log| log.in_flight() == 3)).await;
    let mut first = targets(&origin);
    first.sort();
    assert_eq!(first, ["/n/0", "/n/1", "/n/2"]);
    let connections = larder.metrics().await.sum("larder_connections_open");
    origin.gates().release("go");
    let ran = running.await.unwrap();
    assert_eq!((ran.code, origin.log().count()), (Some(0), 20), "{}", ran.stderr);
    assert_eq!(origin.log().in_flight_peak(), 3);
    assert_eq!(connections, 3);
    let accepted = larder.metrics().await.sum("larder_connections_accepted_total");
    // One asked whether larder listens.
    assert_eq!(accepted, 4);
}

#[tokio::test]
async fn a_rate_spaces_requests() {
    let origin = Origin::simple(vec![cacheable("/n/*", 10)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let through = larder.addr.to_string();
    let began = Instant::now();
    let arguments = ["--file", "-", "--rate", "20/s", "--at-once", "16", "--through", &through];
    let ran = warm_list(&urls(0..25), &arguments).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // 24 intervals of 50 ms, however slow the machine is.
    assert!(began.elapsed() >= Duration::from_millis(1200), "{:?}", began.elapsed());
    assert_eq!(origin.log().count(), 25);
}

#[tokio::test]
async fn an_index_of_compressed_sitemaps_is_read_in_order_to_the_second_depth() {
    let cached = &["Cache-Control: max-age=60"][..];
    let coded = &["Cache-Control: max-age=60", "Content-Encoding: gzip"][..];
    let origin = Origin::simple(vec![
        script(
            "/sitemap.xml",
            bytes_answer(cached, index(&["/one.gz", "/two", "/inner", "/one.gz"]).as_bytes()),
        ),
        script("/one.gz", bytes_answer(cached, &compressed(&pages("shop.example", &["/n/1", "/n/2"])))),
        script(
            "/two",
            bytes_answer(coded, &compressed(&pages("SHOP.example:80", &["/n/2", "/n/3?a=1&amp;b=2"]))),
        ),
        script("/inner", bytes_answer(cached, &compressed(&index(&["/three", "/deep"])))),
        script("/three", bytes_answer(cached, pages("shop.example", &["/n/4"]).as_bytes())),
        script("/deep", bytes_answer(cached, index(&["/never"]).as_bytes())),
        cacheable("/n/*", 10),
    ])
    .unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let sitemap = "http://shop.example/sitemap.xml";
    let (code, json, stderr) = warm_json(&larder, "", &["--sitemap", sitemap, "--at-once", "1"]).await;
    let expected = [
        "/sitemap.xml",
        "/one.gz",
        "/two",
        "/inner",
        "/three",
        "/deep",
        "/n/1",
        "/n/2",
        "/n/3?a=1&b=2",
        "/n/4",
    ];
    assert_eq!(targets(&origin), expected);
    // The index behind two others is a fault, and takes nothing from the rest.
    assert_eq!((code, &json["urls"], &json["stored"]), (Some(1), &4.into(), &4.into()), "{json}");
    assert_eq!(json["omitted"], serde_json::json!({"faults": 1, "other_site": 0, "duplicates": 1}));
    assert!(stderr.starts_with("larder: warning: http://shop.example/deep: an index behind two"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[tokio::test]
async fn a_sitemap_that_is_broken_or_of_another_host_loses_nothing_else() {
    let broken = pages("shop.example", &["/n/1", "/n/2", "/n/3"]).replace("3</loc>", "3</lok>");
    let position = broken.find("</lok>").unwrap();
    let moved = Answer::new(301, &["Location: http://www.shop.example/sitemap.xml"], "");
    let origin = Origin::simple(vec![
        script("/broken.xml", Answer::new(200, &["Cache-Control: no-store"], &broken)),
        script("/foreign.xml", Answer::new(200, &[], &pages("other.example", &["/n/7", "/n/8"]))),
        script("/moved.xml", moved),
        script("/missing.xml", Answer::new(404, &[], "")),
        script("/page.html", Answer::new(200, &[], "<!doctype html><html><p>Not found</html>")),
        cacheable("/n/*", 10),
    ])
    .unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let sitemap = |name: &str| format!("http://shop.example/{name}");
    let check = async |name: &str, urls: u64, faults: u64, other_site: u64, said: &str| {
        let (code, json, stderr) = warm_json(&larder, "", &["--sitemap", &sitemap(name)]).await;
        assert_eq!(code, Some(i32::from(faults > 0)), "{name}: {json}");
        assert_eq!((&json["urls"], &json["stored"]), (&urls.into(), &urls.into()), "{name}: {json}");
        let omitted = serde_json::json!({"faults": faults, "other_site": other_site, "duplicates": 0});
        assert_eq!(json["omitted"], omitted, "{name}");
        assert!(stderr.contains(said) && stderr.is_empty() == said.is_empty(), "{name}: {stderr}");
    };
    check("broken.xml", 2, 1, 0, &format!("/broken.xml: malformed XML at byte {position}: ")).await;
    check("foreign.xml", 0, 0, 2, "").await;
    check("moved.xml", 0, 1, 0, "301 Moved Permanently, to http://www.shop.example/sitemap.xml: redirects")
        .await;
    check("page.html", 0, 1, 0, "no sitemap: the root element is <html>").await;
    check("missing.xml", 0, 1, 0, "/missing.xml: answered 404").await;
    assert!(targets(&origin).iter().all(|target| target != "/n/7"));
}

#[tokio::test]
async fn the_exit_code_tells_failures_from_answers() {
    let scripts: Vec<PathScript> = vec![
        cacheable("/n/*", 10),
        script("/gone", Answer::new(404, &[], "")),
        script("/away", Answer::new(302, &["Location: /n/1"], "")),
        script(
            "/cookie",
            Answer::new(200, &["Set-Cookie: sid=0123456789abcdef; HttpOnly", "ETag: \"1\""], "x"),
        ),
        script("/fails", Answer::new(500, &[], "")),
    ];
    let origin = Origin::simple(scripts).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let list = "http://a/n/1\nhttp://b/n/1\nhttp://a/gone\nhttp://a/away\nhttp://a/cookie\n";
    let (code, json, _) = warm_json(&larder, list, &["--file", "-"]).await;
    assert_eq!(code, Some(0), "{json}");
    assert_eq!((&json["stored"], &json["not_stored"]["set-cookie"]), (&2.into(), &1.into()), "{json}");
    let statuses: Vec<_> =
        json["statuses"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, [302, 404], "{json}");
    assert_eq!(targets(&origin).iter().filter(|target| *target == "/n/1").count(), 2, "one for each host");
    let (code, json, _) = warm_json(&larder, "http://a/fails\nhttp://a/n/2\n", &["--file", "-"]).await;
    assert_eq!((code, &json["statuses"][0]["first"]), (Some(1), &"http://a/fails".into()), "{json}");
    assert_eq!(json["stored"], 1, "{json}");
    // A line that is no URL.
    let (code, json, stderr) = warm_json(&larder, "http://a/n/3\nn/4\n", &["--file", "-"]).await;
    assert_eq!((code, &json["stored"]), (Some(1), &1.into()));
    assert!(
        stderr.starts_with("larder: warning: standard input:2: n/4: expected http://HOST/PATH"),
        "{stderr}"
    );
    let admin = larder.admin.to_string();
    for (arguments, code, part) in [
        (&[][..], 2, "required"),
        (&["shop.example/"], 2, "expected http://HOST/PATH"),
        (&["http://a/", "--rate", "fast"], 2, "such as 50/s"),
        (&["http://a/", "--at-once", "0"], 2, "0 is not in 1..=256"),
        (&["http://a/", "-H", "Host: b"], 2, "use the URL"),
        (&["http://a/", "--through", "127.0.0.1:1"], 1, "no larder listens on 127.0.0.1:1: no connection"),
        (&["http://a/", "--admin", "127.0.0.1:1"], 1, "no larder answers at 127.0.0.1:1"),
        (&["--file", "/nowhere/urls", "--admin", &admin], 1, "/nowhere/urls: No such file"),
    ] {
        let ran = warm(arguments).await;
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part) && ran.stdout.is_empty(), "{arguments:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn no_answer_at_all_is_a_failure_with_its_reason() {
    let held = Answer { hold: Some("never".to_owned()), ..answer_of(&[], 10) };
    let origin = Origin::simple(vec![script("/held", held)]).unwrap();
    let mut larder = Process::run(&["--origin", &origin.url()]).await;
    let through = larder.addr.to_string();
    let urls = ["http://a/held", "http://a/n/1", "http://a/n/2"];
    let mut running =
        Process::start(&[&["warm"], &urls[..], &["--at-once", "1", "--through", &through]].concat());
    within("the held request", origin.log().until(|log| log.count() == 1)).await;
    larder.signal(Signal::KILL);
    larder.gone().await;
    assert_eq!(running.end().await, 1, "{:?}", running.stderr());
    let said = running.stdout().join("\n");
    // What the other two find depends on how far larder has gone.
    for line in ["no answer     3", "the connection broke"] {
        assert!(said.contains(line), "no {line:?} in {said}");
    }
}

#[tokio::test]
async fn an_interrupt_ends_with_the_counts_so_far() {
    let slow = Answer { hold: Some("never".to_owned()), ..answer_of(&[], 10) };
    let origin = Origin::simple(vec![cacheable("/n/*", 10), script("/held", slow)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let urls = ["http://a/n/1", "http://a/n/2", "http://a/held", "http://a/n/3"];
    let through = larder.addr.to_string();
    let mut running =
        Process::start(&[&["warm"], &urls[..], &["--at-once", "1", "--through", &through]].concat());
    within("the held request", origin.log().until(|log| log.count() == 3)).await;
    running.signal(Signal::INT);
    assert_eq!(running.end().await, 130, "{:?}", running.stderr());
    let said = running.stdout().join("\n");
    assert!(said.starts_with("2 of 4 URLs in ") && said.contains(", interrupted\n"), "{said}");
    assert!(said.contains("stored     2"), "{said}");
}

#[tokio::test]
async fn https_is_said_where_it_is_believed_and_refused_elsewhere() {
    let origin = Origin::simple(vec![cacheable("/n/*", 10)]).unwrap();
    let (_directory, path) = written(&config(&origin.url(), "trusted = [\"127.0.0.1\"]", ""));
    let larder = Process::run_config(&path).await;
    let (code, json, _) = warm_json(&larder, "https://shop.example/n/1\n", &["--file", "-"]).await;
    assert_eq!((code, &json["stored"]), (Some(0), &1.into()), "{json}");
    let seen = origin.log().last().unwrap();
    assert_eq!(seen.fields.first("x-forwarded-proto"), Some("https"), "{seen}");
    // The key has the scheme: what is stored for https is no hit for http.
    let (_, json, _) = warm_json(&larder, "http://shop.example/n/1\n", &["--file", "-"]).await;
    assert_eq!(json["stored"], 1, "{json}");
    let (_, json, _) =
        warm_json(&larder, "http://shop.example/n/1\n", &["--file", "-", "--scheme", "https"]).await;
    assert_eq!(json["hit"], 1, "{json}");
    let wary = Process::run(&["--origin", &origin.url()]).await;
    let admin = wary.admin.to_string();
    let ran = warm(&["https://shop.example/n/2", "--admin", &admin]).await;
    assert_eq!(ran.code, Some(1));
    let expected = "larder: error: larder would take https://shop.example/n/2 for an http URL: \
                    127.0.0.1 is not in `trusted`\n  hint: put \"127.0.0.1\" into `trusted`; or --scheme http";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    assert_eq!(origin.log().count(), 2);
    let ran = warm(&["https://shop.example/n/2", "--admin", &admin, "--scheme", "http"]).await;
    assert_eq!((ran.code, origin.log().count()), (Some(0), 3), "{}", ran.stderr);
}

#[tokio::test]
async fn fields_of_visitors_go_along_and_a_terminal_gets_one_line() {
    let vary = answer_of(&["Cache-Control: max-age=60", "Vary: Accept-Language"], 10);
    let origin = Origin::simple(vec![script("/n/*", vary)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let typed = format!(
        "{} warm http://a/n/1 http://a/n/2 -H 'Accept-Language: de' --accept-encoding br --through {}",
        env!("CARGO_BIN_EXE_larder"),
        larder.addr
    );
    let mut command = Command::new("script");
    command.args(["-qec", &typed, "/dev/null"]).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}");
    let line = shown.split("\r\x1b[K").last().unwrap_or_default();
    assert!(line.starts_with("2/2  hit 0  stored 2  "), "{shown:?}");
    let seen = origin.log().last().unwrap();
    assert_eq!(seen.fields.first("accept-language"), Some("de"), "{seen}");
    assert_eq!(seen.fields.first("accept-encoding"), Some("br"), "{seen}");
}
