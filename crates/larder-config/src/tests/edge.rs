//! Listeners, TLS and ACME: accepted values, refused ones with their places, and the places of keys.

use super::errors::check;
use super::*;
use crate::{ClientAuth, ListenAddress, SiteTls};

const BOTH: &str = "listen = [\"*:80\", { address = \"*:443\", tls = true }]\n";
const APP: &str = "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n[[site]]\norigin = \"app\"\n";
const PAIR: &str = "tls = { cert = \"site.pem\", key = \"site.key\" }\n";
const AGREED: &str = "[acme]\nterms_agreed = true\n";

/// What is printed of `text`, one line for each problem, without hints.
fn problems(text: &str) -> Vec<String> {
    printed(text).lines().filter(|line| !line.starts_with("  hint")).map(str::to_owned).collect()
}

/// The same of warnings.
fn warnings(text: &str) -> Vec<String> {
    good(text)
        .warnings
        .iter()
        .map(|one| format!("{}:{} {}: {}", one.line, one.column, one.key, one.found))
        .collect()
}

#[test]
fn a_listener_is_an_address_or_a_table() {
    let checked = good(&format!("{BOTH}{APP}{PAIR}"));
    let listening: Vec<_> =
        checked.config.listen.iter().map(|entry| (entry.address, entry.to_string(), entry.tls)).collect();
    assert_eq!(
        listening,
        [
            (ListenAddress::AnyFamily(80), "*:80".to_owned(), false),
            (ListenAddress::AnyFamily(443), "*:443".to_owned(), true)
        ]
    );
    good(&format!("listen = {{ address = \"[::]:443\", tls = true }}\n{APP}{PAIR}"));
    check(
        &format!("listen = {{ address = \"*:443\", tls = true, http3 = true }}\n{APP}{PAIR}"),
        "larder.toml:1:43: listen.http3: unknown key \"http3\"",
    );
    assert_eq!(
        problems(&format!("listen = {{ tls = true }}\n{APP}{PAIR}")),
        ["larder.toml:1:10: listen.address: missing key \"address\""]
    );
    assert_eq!(
        problems(&format!("listen = [\"*:80\",\n\"0.0.0.0:80\"]\n{APP}")),
        ["larder.toml:2:1: listen[1]: 0.0.0.0:80 is taken by *:80 (line 1)"]
    );
}

#[test]
fn sites_and_listeners_agree_on_tls() {
    assert_eq!(problems(&format!("{APP}{PAIR}")), ["larder.toml:5:7: site[0].tls: no listener speaks TLS"]);
    assert_eq!(
        problems(&format!("{BOTH}{APP}")),
        ["larder.toml:1:19: listen[1]: no site has a certificate to show at *:443"]
    );
}

#[test]
fn a_site_has_certificates_from_files_or_by_acme() {
    let files = |text: &str| good(&format!("{BOTH}{APP}{text}")).config.sites[0].tls.clone();
    assert!(matches!(files(PAIR), Some(SiteTls::Files(files)) if files.len() == 1));
    let two =
        "tls = [{ cert = \"site.pem\", key = \"site.key\" }, { cert = \"ca.pem\", key = \"site.key\" }]\n";
    assert!(matches!(files(two), Some(SiteTls::Files(files)) if files.len() == 2));
    for (tls, expected) in [
        (
            "\"acne\"",
            "site[0].tls: found \"acne\", expected \"acme\", { cert = \"FILE\", key = \"FILE\" } or a list of such tables",
        ),
        (
            "[]",
            "site[0].tls: found an empty list, expected \"acme\", { cert = \"FILE\", key = \"FILE\" } or a list of such tables",
        ),
        ("{ cert = \"site.pem\" }", "site[0].tls: missing key"),
        ("[\"acme\"]", "site[0].tls[0]: found \"acme\", expected { cert = \"FILE\", key = \"FILE\" }"),
        (
            "{ cert = \"none.pem\", key = \"site.key\" }",
            "site[0].tls.cert: found \"none.pem\", expected a file that exists",
        ),
    ] {
        let said = problems(&format!("{BOTH}{APP}tls = {tls}\n"));
        assert_eq!(said.len(), 1, "{said:?}");
        let expected = expected.replace("site[0].tls: missing key", "site[0].tls.key: missing key \"key\"");
        assert!(said[0].contains(&expected), "{said:?}");
    }
}

#[test]
fn keys_of_tls_need_what_they_speak_of() {
    let text = "client_ca = \"ca.pem\"\nhsts = \"1y\"\nredirect_https = false\n";
    assert_eq!(
        problems(&format!("{APP}{text}")),
        [
            "larder.toml:5:13: site[0].client_ca: there is no `tls` beside it",
            "larder.toml:6:8: site[0].hsts: there is no `tls` beside it",
            "larder.toml:7:18: site[0].redirect_https: there is no `tls` beside it",
        ]
    );
    let text = "client_auth = \"optional\"\nclient_crl = \"ca.pem\"\nforward_client_cert = true\n";
    assert_eq!(
        problems(&format!("{BOTH}{APP}{PAIR}{text}")),
        [
            "larder.toml:7:15: site[0].client_auth: there is no `client_ca` beside it",
            "larder.toml:8:14: site[0].client_crl: there is no `client_ca` beside it",
            "larder.toml:9:23: site[0].forward_client_cert: there is no `client_ca` beside it",
        ]
    );
    let text = "hsts = { max_age = \"364d\", preload = true }\n";
    assert_eq!(
        problems(&format!("{BOTH}{APP}{PAIR}{text}")),
        [
            "larder.toml:7:38: site[0].hsts.preload: max_age is less than a year",
            "larder.toml:7:38: site[0].hsts.preload: subdomains is not true",
        ]
    );
}

#[test]
fn a_site_resolves_what_it_does_not_say() {
    let site = |text: &str| good(&format!("{BOTH}{APP}{text}")).config.sites[0].clone();
    assert_eq!((site(PAIR).https_port(), site(PAIR).client_auth()), (Some(443), None));
    for (text, port) in [("true", Some(443)), ("false", None), ("{ port = 8443 }", Some(8443))] {
        assert_eq!(site(&format!("{PAIR}redirect_https = {text}\n")).https_port(), port, "{text}");
    }
    assert_eq!(site(&format!("{PAIR}client_ca = \"ca.pem\"\n")).client_auth(), Some(ClientAuth::Require));
}

#[test]
fn acme_needs_names_and_agreement() {
    let said = problems(&format!("{BOTH}{APP}tls = \"acme\"\n"));
    assert_eq!(
        said,
        [
            "larder.toml:6:7: site[0].tls: the site has no `hosts`, and a certificate is for names",
            "larder.toml:6:7: site[0].tls: nobody has agreed to the terms of Let's Encrypt, which larder would order certificates from",
        ]
    );
    let hosts = "hosts = [\"a.example\", \"*.a.example\", \"192.0.2.1\"]\n";
    let said = problems(&format!("{BOTH}{AGREED}{APP}{hosts}tls = \"acme\"\n"));
    assert_eq!(
        said,
        [
            "larder.toml:8:23: site[0].hosts[1]: \"*.a.example\" cannot have a certificate by ACME here",
            "larder.toml:8:38: site[0].hosts[2]: \"192.0.2.1\" is an address, and clients ask for certificates by names alone (RFC 6066 3)",
        ]
    );
    let own = "[acme]\ndirectory = \"https://ca.example/dir\"\nterms_agreed = false\n";
    let said = problems(&format!("{BOTH}{own}{APP}hosts = \"a.example\"\ntls = \"acme\"\n"));
    assert_eq!(
        said,
        [
            "larder.toml:4:16: acme.terms_agreed: nobody has agreed to the terms of ca.example, which larder would order certificates from",
        ]
    );
}

#[test]
fn challenges_need_their_ports() {
    let site = format!("{APP}hosts = \"a.example\"\ntls = \"acme\"\n");
    let only = |port: &str| format!("listen = {{ address = \"*:{port}\", tls = true }}\n");
    assert_eq!(warnings(&format!("{BOTH}{AGREED}{site}")), Vec::<String>::new());
    let http = "1:10 listen: HTTP-01 cannot work: no listener is in clear text on port 80";
    let alpn = "1:10 listen: TLS-ALPN-01 cannot work: no listener speaks TLS on port 443";
    assert_eq!(warnings(&format!("{}{AGREED}{site}", only("443"))), [http]);
    let listen = "listen = [\"*:80\", { address = \"*:8443\", tls = true }]\n";
    assert_eq!(warnings(&format!("{listen}{AGREED}{site}")), [alpn]);
    // As in a container, whose ports are mapped.
    let said = warnings(&format!("{}{AGREED}{site}", only("8443")));
    assert!(
        said.len() == 1 && said[0].contains("TLS-ALPN-01 cannot work") && said[0].contains("HTTP-01 cannot"),
        "{said:?}"
    );
    let own = format!("{}{AGREED}directory = \"https://127.0.0.1:14000/dir\"\n{site}", only("8443"));
    assert_eq!(warnings(&own), [alpn, http]);
}

#[test]
fn acme_alone_is_checked_too() {
    assert_eq!(warnings(&format!("{AGREED}{APP}")), ["1:1 acme: no site has certificates by ACME"]);
    for (line, expected) in [
        ("ca_file = \"ca.pem\"", "acme.ca_file: it is not used"),
        ("challenges = []", "acme.challenges: found an empty list, expected at least one challenge"),
        ("challenges = [\"http-01\", \"http-01\"]", "acme.challenges[1]: \"http-01\" is there twice"),
        ("external_account = { id = \"a\" }", "acme.external_account.key_file: missing key \"key_file\""),
        ("external_account = { key_file = \"acme.key\" }", "acme.external_account.id: missing key \"id\""),
    ] {
        let said = problems(&format!("[acme]\n{line}\n{APP}"));
        assert!(said.len() == 1 && said[0].ends_with(expected), "{line}: {said:?}");
    }
}

#[test]
fn the_place_of_a_key_is_known_afterwards() {
    let two =
        "tls = [{ cert = \"site.pem\", key = \"site.key\" },\n  { cert = \"ca.pem\", key = \"site.key\" }]\n";
    let checked = good(&format!("{BOTH}{APP}{two}"));
    assert_eq!(checked.place("site[0].tls[1].cert"), Some((7, 12)));
    assert_eq!(checked.place("site[0].tls[2].cert"), None);
    let problem = checked.problem("site[0].tls[1].key", "it is of another certificate").hint("x");
    assert_eq!(
        problem.to_string(),
        "larder.toml:7:28: site[0].tls[1].key: it is of another certificate\n  hint: x"
    );
    let checked = good(&format!("{BOTH}{APP}{PAIR}"));
    assert_eq!(checked.place("site[0].tls[0].cert"), Some((6, 16)), "one stands for a list of one");
    assert_eq!(checked.problem("site[0].tls[0].cert", "x").key, "site[0].tls.cert");
    assert_eq!(checked.place("tls.tickets"), None);
    let absent = checked.problem("site[0].hsts", "x");
    assert_eq!((absent.line, absent.column, absent.key.as_str()), (4, 1, "site[0].hsts"));
}
