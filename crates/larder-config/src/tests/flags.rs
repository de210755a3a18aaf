//! The command line over a file, and without one.

use super::*;
use crate::schema::TextSetting;
use crate::{ByteSize, Errors, Flags, Name, SentHost, accelerate, parse_with};

fn flags(listen: &[&str], admin: Option<&str>, memory: Option<&str>, workers: Option<&str>) -> Flags {
    Flags {
        listen: listen.iter().map(|address| (*address).to_owned()).collect(),
        admin: admin.map(str::to_owned),
        memory: memory.map(str::to_owned),
        workers: workers.map(str::to_owned),
        ..Flags::default()
    }
}

fn printed_for(result: Result<Checked, Errors>) -> String {
    result.map_err(|errors| errors.to_string()).unwrap_err()
}

#[test]
fn an_origin_alone_is_a_whole_config() {
    let config = accelerate("https://app.example", &Flags::default()).unwrap().config;
    let listening: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listening, ["127.0.0.1:8080"]);
    assert_eq!(config.admin.address, Some("127.0.0.1:8081".parse().unwrap()));
    let site = &config.sites[0];
    assert!(site.hosts.is_empty() && site.rules.is_empty() && site.root.is_none());
    let origin = config.origin(site.origin.as_ref().unwrap()).unwrap();
    assert_eq!(origin.servers[0].to_string(), "https://app.example:443");
    let store = config.store(&Name::from_text("default").unwrap()).unwrap();
    assert_eq!((store.memory, store.max_object_bytes()), (ByteSize(256 << 20), 64 << 20));
}

#[test]
fn an_origin_elsewhere_is_asked_by_its_own_name_where_only_this_machine_can_ask() {
    for (origin, listen, expected) in [
        ("https://app.example", &[][..], SentHost::Upstream),
        ("http://app.example:3000", &["127.0.0.1:80", "[::1]:80"], SentHost::Upstream),
        ("https+srv://_web._tcp.app.example", &[], SentHost::Upstream),
        // Somebody asks by a name that the application may know.
        ("https://app.example", &["0.0.0.0:80"], SentHost::Client),
        ("https://app.example", &["127.0.0.1:80", "192.0.2.1:80"], SentHost::Client),
        // It is this machine's.
        ("http://localhost:3000", &[], SentHost::Client),
        ("http://127.0.0.1:3000", &[], SentHost::Client),
        ("unix:/run/app.sock", &[], SentHost::Client),
    ] {
        let config = accelerate(origin, &flags(listen, None, None, None)).unwrap().config;
        assert_eq!(config.origins[0].1.host, expected, "{origin} {listen:?}");
    }
}

#[test]
fn domains_have_certificates_that_are_ordered_once_the_terms_are_agreed_to() {
    let of = |domains: &[&str], agrees| {
        let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
        accelerate("http://127.0.0.1:3000", &Flags { domains, agrees, ..Flags::default() })
    };
    let config = of(&["example.com", "www.example.com"], true).unwrap().config;
    let listening: Vec<_> = config.listen.iter().map(|entry| (entry.to_string(), entry.tls)).collect();
    assert_eq!(listening, [("*:80".to_owned(), false), ("*:443".to_owned(), true)]);
    let hosts: Vec<_> = config.sites[0].hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["example.com", "www.example.com"]);
    assert!(config.acme.terms_agreed && config.sites[0].tls.is_some());
    let refused = printed_for(of(&["example.com"], false));
    assert!(
        refused.starts_with("--agree-terms: nobody has agreed to the terms of Let's Encrypt"),
        "{refused}"
    );
    assert!(refused.contains("or give --agree-terms"), "{refused}");
    let refused = printed_for(of(&["*.example.com"], true));
    assert!(refused.starts_with("--domain: "), "{refused}");
}

#[test]
fn websockets_are_passed_on_where_the_flag_says_so() {
    for websocket in [false, true] {
        let flags = Flags { websocket, ..Flags::default() };
        let config = accelerate("http://127.0.0.1:3000", &flags).unwrap().config;
        assert_eq!(config.sites[0].websocket, websocket);
    }
}

#[test]
fn flags_stand_over_the_file_and_are_held_to_the_same() {
    let text = format!(
        "listen = \"127.0.0.1:1\"\nworkers = 1\n[stores.default]\nmemory = \"8MiB\"\nmax_object = \"4MiB\"\n{SITE}"
    );
    let over = |flags: &Flags| parse_with(&text, "larder.toml", Path::new(""), flags);
    let config =
        over(&flags(&["127.0.0.1:2", "[::1]:2"], Some("off"), Some("16MiB"), Some("3"))).unwrap().config;
    assert_eq!((config.listen.len(), config.admin.address, config.workers), (2, None, Some(3)));
    assert_eq!(
        (config.stores[0].1.memory, config.stores[0].1.max_object_bytes()),
        (ByteSize(16 << 20), 4 << 20)
    );
    let text = format!("[admin]\naddress = \"0.0.0.0:1\"\ntoken = \"0123456789abcdef\"\n{SITE}");
    for (flag, address) in [("127.0.0.1:2", Some("127.0.0.1:2".parse().unwrap())), ("off", None)] {
        let flags = flags(&[], Some(flag), None, None);
        let admin = parse_with(&text, "larder.toml", Path::new(""), &flags).unwrap().config.admin;
        assert_eq!((admin.address, admin.token.is_some()), (address, true), "the rest of the table holds");
    }
    assert_eq!(
        printed_for(over(&flags(&[], None, Some("2MiB"), None))),
        "larder.toml:5:14: stores.default.max_object: found \"4MiB\", expected at most memory, which is 2MiB"
    );
}

#[test]
fn errors_of_flags_name_the_flag() {
    assert_eq!(
        printed_for(accelerate(
            "127.0.0.1:3000",
            &flags(&["8080"], Some("0.0.0.0:1"), Some("1M"), Some("x"))
        )),
        "--listen: found \"8080\", expected an address to listen on such as \"127.0.0.1:8080\", \"[::1]:8080\", \"*:80\"\n  \
         hint: \"127.0.0.1:8080\" for this machine only, \"0.0.0.0:8080\" for every IPv4 address of it, \"[::]:8080\" for IPv4 and IPv6\n\
         --workers: found \"x\", expected a whole number\n\
         --origin: found \"127.0.0.1:3000\", expected a server such as \"http://127.0.0.1:3000\", \
         \"https://app.example\", \"unix:/run/app.sock\"\n  hint: did you mean \"http://127.0.0.1:3000\"?\n\
         --memory: found \"1M\", expected a size such as \"512MiB\", \"64KiB\", \"2GB\"\n  hint: did you mean \"1MiB\"?\n\
         --admin: 0.0.0.0:1 can be reached from other machines, and there is no token\n  \
         hint: set token in [admin], or listen on 127.0.0.1"
    );
}
