//! Senders without the right to purge change nothing, and a tenant reaches the tenant's own hosts alone.
//!
//! In: every request of tests/dialects, byte for byte but for its host. First it comes from senders who may not purge: the site is
//! closed, the address is another, a proxy passed it on, or the token is wrong. larder refuses each request as its dialect expects. The
//! origin is not asked, and everything is still stored. Then a tenant sends all of them with the tenant's own token: to the own
//! host, to a name that is no site's, and with an expression for every host. What others have is still stored.

use std::path::Path;

use larder_testkit::client::{Request, Response};
use larder_testkit::origin::{Origin, PathScript};

use crate::support::{Process, answer_of, connect, within, written};

const RIGHT: &str = "a-long-secret-of-the-tenant";
const OTHERS: &str = "a-long-secret-of-somebody-else";
const LOCATION: &str = "/purge";
/// Wrong tokens of one address that are looked at within a minute.
const WRONG_TOKENS_MAX: usize = 10;
/// Requests of the data files that show a secret.
const SECRETS_MAX: u64 = 3;

/// A request of the data files.
struct Case {
    told: String,
    /// Method, target and version, then fields without Host.
    lines: Vec<String>,
    /// Status and content for one who may not purge.
    refusal: (u16, String),
    /// Where one URL is named.
    url: Option<String>,
    tags: Vec<String>,
}

impl Case {
    fn is_get(&self) -> bool {
        self.lines[0].starts_with("GET ")
    }

    /// To a host, with further lines. A target that names a host names this one.
    fn request(&self, host: &str, more: &[&str]) -> Request {
        let mut first = self.lines[0].clone();
        if let Some(at) = first.find("http://").filter(|at| first[..*at].ends_with(' ')) {
            let path = at + 7 + first[at + 7..].find('/').unwrap();
            first.replace_range(at + 7..path, host);
        }
        let mut text = format!("{first}\r\nHost: {host}\r\n");
        for line in self.lines[1..].iter().map(String::as_str).chain(more.iter().copied()) {
            text += &format!("{line}\r\n");
        }
        Request::raw(text + "\r\n")
    }
}

/// All purges of the data files; tests/dialects/README.md has the format.
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dialects");
    let mut cases: Vec<Case> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            if let Some(title) = line.strip_prefix("= ") {
                let (told, refusal) = (format!("{file}: {title}"), (405, "Not allowed".to_owned()));
                cases.push(Case { told, lines: Vec::new(), refusal, url: None, tags: Vec::new() });
            }
            let Some(case) = cases.last_mut() else { continue };
            if let Some(line) = line.strip_prefix("> ").filter(|line| !line.starts_with("Host:")) {
                case.lines.push(line.to_owned());
            } else if let Some(words) = line.strip_prefix("refuses ") {
                let (status, content) = words.split_once(' ').unwrap();
                case.refusal = (status.parse().unwrap(), content.to_owned());
            } else if let Some(url) = line.strip_prefix("  here ") {
                case.url = Some(url.to_owned()).filter(|url| !url.contains(['[', '*', '\\']));
            } else if let Some(tag) = line.strip_prefix("  tag ") {
                case.tags.push(tag.to_owned());
            } else if line.starts_with("refreshes") || line == "passes" {
                cases.pop();
            }
        }
    }
    cases
}

const CLOSED: &str = "closed.test";
const ADDRESS: &str = "address.test";
const PASSED_ON: &str = "passed-on.test";
const TENANT: &str = "tenant.test";
const OTHER: &str = "other.test";
const HOSTS: [&str; 5] = [CLOSED, ADDRESS, PASSED_ON, TENANT, OTHER];

struct Stage {
    larder: Process,
    origin: Origin,
    /// On each host: what the requests name.
    targets: Vec<String>,
    cases: Vec<Case>,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let cases = cases();
        let tags: Vec<String> = cases.iter().flat_map(|case| case.tags.clone()).collect();
        let mut targets: Vec<String> = cases.iter().filter_map(|case| case.url.clone()).collect();
        targets.extend(["/", "/news/second", "/storage/a", "/blog/a", "/sitemap.xml"].map(str::to_owned));
        targets.sort();
        targets.dedup();
        let tags = format!("Surrogate-Key: {}", tags.join(" "));
        let answer = answer_of(&["Cache-Control: max-age=3600", "Content-Type: text/html", &tags], 100);
        let origin = Origin::simple(vec![PathScript::new("/*", [answer])]).unwrap();
        let site =
            |host: &str, purge: &str| format!("[[site]]\nhosts = [{host:?}]\norigin = \"app\"\n{purge}\n");
        let place = format!("location = {LOCATION:?}");
        let text = [
            format!(
                "workers = 2\nlisten = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\n[origins.app]\nservers = [{:?}]\n",
                origin.url()
            ),
            site(CLOSED, ""),
            site(ADDRESS, &format!("purge = {{ from = [\"192.0.2.1\", \"2001:db8::/32\"], {place} }}")),
            site(PASSED_ON, &format!("purge = {{ from = [\"127.0.0.1\"], {place} }}")),
            site(TENANT, &format!("purge = {{ token = {RIGHT:?}, {place} }}")),
            site(OTHER, &format!("purge = {{ token = {OTHERS:?}, {place} }}")),
        ];
        let (folder, path) = written(&text.concat());
        let larder = Process::run_config(&path).await;
        let stage = Self { larder, origin, targets, cases, _folder: folder };
        for host in HOSTS {
            stage.fill(host).await;
            assert!(stage.is_all_there(host).await, "{host}");
        }
        stage
    }

    async fn fill(&self, host: &str) {
        let mut connection = connect(self.larder.addr).await;
        for target in &self.targets {
            let answer = connection.exchange(&Request::new("GET", target, host)).await.unwrap();
            assert_eq!(answer.status, 200, "{host}{target}: {answer}");
        }
    }

    /// Without a request to the origin.
    async fn is_there(&self, host: &str, target: &str) -> bool {
        let request = Request::new("GET", target, host).field("Cache-Control", "only-if-cached");
        self.send(&request).await.status == 200
    }

    async fn is_all_there(&self, host: &str) -> bool {
        let mut connection = connect(self.larder.addr).await;
        for target in &self.targets {
            let request = Request::new("GET", target, host).field("Cache-Control", "only-if-cached");
            if connection.exchange(&request).await.unwrap().status != 200 {
                return false;
            }
        }
        true
    }

    async fn send(&self, request: &Request) -> Response {
        within("an answer", connect(self.larder.addr).await.exchange(request)).await.unwrap()
    }

    /// How many requests were refused, and for this reason.
    async fn refused(&self, reason: &str) -> (u64, u64) {
        let (metrics, family) = (self.larder.metrics().await, "larder_purges_refused_total");
        let of_reason = metrics.value(&format!("{family}{{reason=\"{reason}\"}}"));
        (metrics.sum(family), of_reason.unwrap_or(0.0) as u64)
    }

    /// Every request is refused for this reason, and nothing comes of it. Of the first so many, what the dialect expects; later ones
    /// may be too many.
    async fn nobody(&self, host: &str, more: &[&str], reason: &str, looked_at: usize) {
        let ((all, of_reason), asked) = (self.refused(reason).await, self.origin.log().count());
        // Where there is no location, a GET is no purge.
        let purges: Vec<&Case> = self.cases.iter().filter(|case| host != CLOSED || !case.is_get()).collect();
        for (number, case) in purges.iter().enumerate() {
            let answer = self.send(&case.request(host, more)).await;
            let told = format!("{} at {host} with {more:?}: {answer}", case.told);
            let is_refused =
                answer.status == case.refusal.0 && answer.body.starts_with(case.refusal.1.as_bytes());
            let is_as_expected = match number {
                number if number >= looked_at => answer.status == 429,
                // Wrong tokens that were shown before count as well.
                number if looked_at != ALL && number + SECRETS_MAX as usize >= looked_at => {
                    is_refused || answer.status == 429
                }
                _ => is_refused,
            };
            assert!(is_as_expected, "{told}");
            assert_eq!(self.origin.log().count(), asked, "the origin was asked: {told}");
            for target in ["/"].into_iter().chain(case.url.as_deref()) {
                assert!(self.is_there(host, target).await, "{target} is gone: {told}");
            }
        }
        let (all_now, of_reason_now) = self.refused(reason).await;
        assert_eq!(all_now, all + purges.len() as u64);
        // Some requests show a secret of their own, which is a wrong one.
        let looked_at = looked_at.min(purges.len()) as u64;
        assert!((looked_at - SECRETS_MAX..=looked_at).contains(&(of_reason_now - of_reason)), "{reason}");
        assert!(self.is_all_there(host).await, "{host} with {more:?}");
        assert_eq!(self.origin.log().count(), asked);
    }

    /// Every request is let in, and what others have is there all the same. What the sender has is there anew for each.
    async fn tenant(&self, host: &str, more: &[&str]) {
        let token = format!("Authorization: Bearer {RIGHT}");
        let lines = [&[token.as_str()][..], more].concat();
        let mut gone = 0;
        // A GET names a site by its host, or none.
        let purges: Vec<&Case> = self.cases.iter().filter(|case| host == TENANT || !case.is_get()).collect();
        for case in &purges {
            self.fill(TENANT).await;
            let answer = self.send(&case.request(host, &lines)).await;
            let told = format!("{} at {host} with {more:?}: {answer}", case.told);
            assert!([200, 204, 400, 404].contains(&answer.status), "{told}");
            for other in HOSTS.into_iter().filter(|other| *other != TENANT) {
                assert!(self.is_there(other, "/").await, "/ at {other} is gone: {told}");
                if let Some(url) = &case.url {
                    assert!(self.is_there(other, url).await, "{url} at {other} is gone: {told}");
                }
            }
            gone += usize::from(!self.is_all_there(TENANT).await);
        }
        assert!(gone * 2 > purges.len(), "of {}, {gone} have purged something", purges.len());
        for other in HOSTS.into_iter().filter(|other| *other != TENANT) {
            assert!(self.is_all_there(other).await, "{other}");
        }
    }
}

const ALL: usize = usize::MAX;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_purges_without_right_and_a_tenant_reaches_the_tenants_hosts_alone() {
    let stage = Stage::new().await;
    assert!(stage.cases.len() > 60, "{}", stage.cases.len());
    stage.nobody(CLOSED, &[], "not-allowed", ALL).await;
    stage.nobody(CLOSED, &[&format!("Authorization: Bearer {RIGHT}")], "not-allowed", ALL).await;
    stage.nobody(ADDRESS, &[], "not-allowed", ALL).await;
    stage.nobody(ADDRESS, &["X-Forwarded-For: 192.0.2.1"], "not-allowed", ALL).await;
    for passed_on in ["Via: 1.1 front", "Forwarded: for=127.0.0.1", "X-Real-IP: 127.0.0.1"] {
        stage.nobody(PASSED_ON, &[passed_on], "forwarded", ALL).await;
    }
    stage.nobody(PASSED_ON, &["X-Forwarded-For: 127.0.0.1"], "forwarded", ALL).await;
    stage.nobody(TENANT, &[], "not-allowed", ALL).await;
    stage.tenant(TENANT, &[]).await;
    // By its address alone it would be let in elsewhere, were it not passed on.
    stage.tenant("cache.internal:6081", &["Via: 1.1 front"]).await;
    stage.tenant(TENANT, &["X-Host: .*", "X-Url: .*"]).await;
    stage.tenant(TENANT, &["X-Host: ^(other|closed|tenant)[.]test$"]).await;
    stage.fill(TENANT).await;
    // Another tenant's token is a wrong one.
    let others = format!("Authorization: Bearer {RIGHT}");
    stage.nobody(OTHER, &[&others], "token", WRONG_TOKENS_MAX).await;
    assert!(stage.refused("too-many-tokens").await.1 > 0);
    // The right one is looked at all the same, and what is purged is seen to go.
    let all = Request::new("BAN", "/", OTHER).field("Authorization", &format!("Bearer {OTHERS}"));
    assert_eq!(stage.send(&all).await.status, 200);
    for host in HOSTS {
        assert_eq!(stage.is_there(host, "/").await, host != OTHER, "{host}");
    }
}
