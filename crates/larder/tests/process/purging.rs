//! `larder purge` with what follows on it: `--warm`, `--wait`, and how it ends where either cannot be done.

use std::process::Command;

use larder_testkit::client::Request;
use larder_testkit::origin::{Answer, Origin};
use serde_json::Value;

use crate::support::{
    Process, answer_of, cache_status, cacheable, connect, get, script, until, within, written,
};

/// How a command ended, and what it wrote.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn purge(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("purge").args(arguments).env_remove("LARDER_ADMIN").env_remove("LARDER_ADMIN_TOKEN");
    let running = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = within("larder purge", running).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[tokio::test]
async fn what_was_purged_is_asked_for_once_the_purge_holds() {
    let origin = Origin::simple(vec![cacheable("/n/*", 10)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let (admin, host) = (larder.admin.to_string(), larder.addr.to_string());
    let is_hit = async |path: &str| cache_status(&get(larder.addr, path).await).contains("; hit");
    let [one, two, tagged] = ["/n/1", "/n/2", "/n/3"].map(|path| format!("http://localhost{path}"));
    until("all is stored", async || is_hit("/n/1").await && is_hit("/n/2").await && is_hit("/n/3").await)
        .await;
    assert_eq!(origin.log().count(), 3);
    let ran = purge(&[&one, &two, "--wait", "10s", "--warm", "--admin", &admin]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("purged 2 names: url localhost/n/1, url localhost/n/2; 2 responses"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("2 URLs in ") && ran.stdout.contains("stored     2"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
    assert_eq!(origin.log().count(), 5);
    assert!(is_hit("/n/1").await && is_hit("/n/2").await && is_hit("/n/3").await);
    assert_eq!(origin.log().count(), 5, "no visitor had to wait");
    // Of a tag and a prefix nobody knows what they concern.
    let arguments = [&*one, "--tag", "a", "--prefix", "/n/", "--warm", "--json", "--through", &host];
    let ran = purge(&[&arguments[..], &["--admin", &admin]].concat()).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr, "larder: only the URLs are warmed, not what tags and prefixes concern\n");
    let mut objects =
        serde_json::Deserializer::from_str(&ran.stdout).into_iter::<Value>().map(Result::unwrap);
    let (receipt, warmed) = (objects.next().unwrap(), objects.next().unwrap());
    assert_eq!((&receipt["predicates"], &receipt["held"]), (&3.into(), &true.into()), "{receipt}");
    assert_eq!((&warmed["warmed"]["stored"], objects.next()), (&1.into(), None), "{warmed}");
    assert!(is_hit("/n/1").await);
    assert!(!is_hit("/n/3").await, "{tagged} was below the prefix");
}

#[tokio::test]
async fn what_cannot_be_warmed_is_not_purged_either() {
    let origin = Origin::simple(vec![
        cacheable("/n/*", 10),
        script("/fails", Answer { status: Some(503), ..answer_of(&[], 5) }),
    ])
    .unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let admin = larder.admin.to_string();
    let is_hit = async || cache_status(&get(larder.addr, "/n/1").await).contains("; hit");
    until("it is stored", is_hit).await;
    let nothing = "  nothing was purged\n";
    for (arguments, code, parts) in [
        (
            &["--tag", "a", "--host", "localhost", "--warm"][..],
            2,
            &["none is named: no URL follows from tags and hosts", "larder warm --sitemap", nothing][..],
        ),
        (&["--all", "--warm"], 2, &["none is named: no URL follows from --all", nothing]),
        (
            &["http://localhost/n/1", "--warm", "--through", "127.0.0.1:1"],
            1,
            &["no larder listens on 127.0.0.1:1", nothing],
        ),
        (
            &["https://localhost/n/1", "--warm"],
            1,
            &["127.0.0.1 is not in `trusted`", "http:// in the URL", nothing],
        ),
        (&["http://bücher.example/", "--warm"], 2, &["http://bücher.example/: malformed host", nothing]),
        (&["http://localhost/n/1", "--wait", "0s"], 2, &["a time above 0 and at most 60s, such as 10s"]),
        (&["http://localhost/n/1", "--wait", "2m"], 2, &["a time above 0 and at most 60s, such as 10s"]),
        (&["http://localhost/n/1", "--through", "127.0.0.1:1"], 2, &["--warm"]),
    ] {
        let ran = purge(&[arguments, &["--admin", &admin]].concat()).await;
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{arguments:?}: no {part:?} in {}", ran.stderr);
        }
        assert!(ran.stdout.is_empty() && is_hit().await, "{arguments:?}: {}", ran.stdout);
    }
    // The purge holds; the page fails.
    let ran = purge(&["http://localhost/fails", "--warm", "--admin", &admin]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("0 responses removed") && ran.stdout.contains("503"), "{}", ran.stdout);
}

#[tokio::test]
async fn progress_is_a_line_every_few_seconds_where_there_is_no_terminal() {
    let held = Answer { hold: Some("go".to_owned()), ..answer_of(&["Cache-Control: max-age=60"], 10) };
    let origin = Origin::simple(vec![cacheable("/n/*", 10), script("/held", held)]).unwrap();
    let larder = Process::run(&["--origin", &origin.url()]).await;
    let (through, admin) = (larder.addr.to_string(), larder.admin.to_string());
    let urls = ["http://a/n/1", "http://a/held"];
    let mut running = Process::start(
        &[&["purge"], &urls[..], &["--warm", "--through", &through, "--admin", &admin]].concat(),
    );
    running.says("1/2  hit 0  stored 1  ").await;
    origin.gates().release("go");
    assert_eq!(running.end().await, 0, "{:?}", running.stderr());
    let said = running.stderr();
    assert!(said.iter().all(|line| !line.contains('\r') && !line.contains('\u{1b}')), "{said:?}");
    assert!(running.stdout().join("\n").contains("2 URLs in "), "{:?}", running.stdout());
}

#[tokio::test]
async fn the_example_purges_as_its_guide_says() {
    let tagged = ["Cache-Control: max-age=3600, stale-while-revalidate=30", "X-Tags: product-17"];
    let edit = answer_of(&["Larder-Purge: \"tag:product-17\""], 5);
    let origin = Origin::simple(vec![script("/a", answer_of(&tagged, 10)), script("/edit", edit)]).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/purging.toml");
    let mut text = std::fs::read_to_string(example).unwrap();
    let url = origin.url();
    for (there, here) in [
        ("\"127.0.0.1:8080\"", "\"127.0.0.1:0\""),
        ("\"127.0.0.1:8081\"", "\"127.0.0.1:0\""),
        ("http://127.0.0.1:3000", &*url),
        ("http://127.0.0.1:3001", &*url),
    ] {
        assert!(text.contains(there), "no {there} in the example");
        text = text.replace(there, here);
    }
    let (_directory, path) = written(&text);
    let larder = Process::run_config(&path).await;
    let ask = async |method: &str, target: &str, host: &str, field: Option<(&str, &str)>| {
        let request = Request::new(method, target, host);
        let request = match field {
            Some((name, value)) => request.field(name, value),
            None => request,
        };
        connect(larder.addr).await.exchange(&request).await.unwrap()
    };
    let is_hit = async |host: &str| cache_status(&ask("GET", "/a", host, None).await).contains("; hit");
    until("both are stored", async || is_hit("shop.example").await && is_hit("blog.example").await).await;
    let token = Some(("Authorization", "Bearer 5f2c81d09b7ae3465f2c81d0"));
    let refused = ask("PURGE", "/a", "blog.example", None).await;
    assert_eq!((refused.status, &*refused.reason), (405, "Not allowed"));
    // From here, the shop's field alone is not enough.
    let key = Some(("X-Purge-Key", "5f2c81d09b7ae346"));
    assert_eq!(ask("PURGE", "/a", "shop.example", key).await.status, 405);
    assert!(is_hit("blog.example").await && is_hit("shop.example").await);
    let purged = ask("GET", "/purge/a", "blog.example", token).await;
    assert_eq!((purged.status, &*purged.reason), (200, "Purged"));
    assert!(!is_hit("blog.example").await, "nginx' manner");
    let edited = ask("POST", "/edit", "shop.example", None).await;
    assert_eq!((edited.status, edited.fields.first("larder-purge")), (200, None));
    let soft = ask("GET", "/a", "shop.example", None).await;
    assert!(
        cache_status(&soft).contains("hit") && cache_status(&soft).ends_with("detail=soft-purged"),
        "{soft}"
    );
}
