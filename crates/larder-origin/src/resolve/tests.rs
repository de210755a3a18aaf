//! Look-ups against a name server that says what the test tells it.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::sockets::nameserver::{A, AAAA, Data, NameServer, REFUSED, Reply, SERVFAIL, SRV};

const SERVICE: &str = "_web._tcp.app.example";

/// Looks names up at `servers` only.
fn names(servers: &[SocketAddr]) -> Names {
    Names::new(&ResolveSettings { name_servers: servers.to_vec(), ..ResolveSettings::default() })
}

/// What `address` is now: `host place priority weight` each, or the error's kind.
async fn look_up(names: &Names, address: &str) -> Result<Vec<String>, io::ErrorKind> {
    let address = ServerAddress::parse(address).unwrap();
    match names.look_up(&address).await {
        Ok(targets) => Ok(targets
            .iter()
            .map(|ResolvedTarget { place, host, priority, weight }| {
                format!("{host} {place} {priority} {weight}")
            })
            .collect()),
        Err(OriginError::Dns(error)) => Err(error.kind()),
        Err(error) => panic!("{error:?}"),
    }
}

fn lines(lines: &[&str]) -> Result<Vec<String>, io::ErrorKind> {
    Ok(lines.iter().map(|line| (*line).to_owned()).collect())
}

#[tokio::test]
async fn what_is_no_name_is_never_looked_up() {
    let names = names(&[SocketAddr::from(([127, 0, 0, 1], 1))]);
    let cases = [
        ("http://192.0.2.1:8080", "192.0.2.1 192.0.2.1:8080 0 1"),
        ("https://[2001:db8::1]", "2001:db8::1 [2001:db8::1]:443 0 1"),
        ("unix:/run/app.sock", " unix:/run/app.sock 0 1"),
    ];
    for (address, expected) in cases {
        assert_eq!(look_up(&names, address).await, lines(&[expected]), "{address}");
    }
}

#[tokio::test]
async fn without_name_servers_the_system_is_asked() {
    let found = look_up(&names(&[]), "http://localhost:8080").await.unwrap();
    assert!(found.contains(&"localhost 127.0.0.1:8080 0 1".to_owned()), "{found:?}");
    assert!(look_up(&names(&[]), "http://no-such-host.invalid").await.is_err());
}

#[tokio::test]
async fn all_addresses_of_a_name_are_used_once_in_one_order() {
    let server = NameServer::start().await;
    let names = names(&[server.address]);
    server.hosts(
        "app.example",
        &[[127, 0, 0, 3], [127, 0, 0, 1], [127, 0, 0, 3], [0, 0, 0, 0], [224, 0, 0, 1]],
    );
    server.set("app.example", AAAA, Reply::Records(vec![Data::Aaaa(Ipv6Addr::UNSPECIFIED)]));
    let expected = lines(&["app.example 127.0.0.1:80 0 1", "app.example 127.0.0.3:80 0 1"]);
    assert_eq!(look_up(&names, "http://app.example").await, expected);
    server.hosts("app.example", &[[127, 0, 0, 1], [127, 0, 0, 3]]);
    assert_eq!(look_up(&names, "http://app.example").await, expected, "a rotated answer is the same");
    let many: Vec<_> = (1..=40).rev().map(|last| [127, 0, 0, last]).collect();
    server.hosts("app.example", &many);
    let found = look_up(&names, "http://app.example").await.unwrap();
    assert_eq!((found.len(), found[15].as_str()), (16, "app.example 127.0.0.16:80 0 1"));
    server.set("app.example", A, Reply::Records(vec![Data::Cname("b.example"), Data::A([127, 0, 0, 9])]));
    assert_eq!(look_up(&names, "http://app.example").await, lines(&["app.example 127.0.0.9:80 0 1"]));
}

#[tokio::test]
async fn an_answer_that_is_no_good_is_passed_over() {
    let (bad, good) = (NameServer::start().await, NameServer::start().await);
    let both = || names(&[bad.address, good.address]);
    good.hosts("app.example", &[[127, 0, 0, 1]]);
    let found = lines(&["app.example 127.0.0.1:80 0 1"]);
    for reply in [Reply::Code(SERVFAIL), Reply::Code(REFUSED), Reply::Silence] {
        let names = both();
        bad.set("app.example", A, reply.clone());
        bad.set("app.example", AAAA, reply.clone());
        assert_eq!(look_up(&names, "http://app.example").await, found, "{reply:?}");
    }
    let names = both();
    bad.set("app.example", A, Reply::AfterForeign(vec![Data::A([127, 0, 0, 4])]));
    bad.set("app.example", AAAA, Reply::Records(Vec::new()));
    let own = lines(&["app.example 127.0.0.4:80 0 1"]);
    assert_eq!(look_up(&names, "http://app.example").await, own, "another's number is not an answer");
    bad.set("app.example", A, Reply::OverTcp(vec![Data::A([127, 0, 0, 5])]));
    let long = lines(&["app.example 127.0.0.5:80 0 1"]);
    assert_eq!(look_up(&names, "http://app.example").await, long, "cut short, so asked again over TCP");
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    assert_eq!(look_up(&self::names(&[closed, good.address]), "http://app.example").await, found);
}

#[tokio::test]
async fn a_name_server_that_is_silent_costs_its_time_once() {
    let (dead, good) = (NameServer::start().await, NameServer::start().await);
    let names = names(&[dead.address, good.address]);
    dead.set(SERVICE, SRV, Reply::Silence);
    good.set(SERVICE, SRV, Reply::Records(vec![Data::Srv(0, 1, 80, "b.example")]));
    good.hosts("b.example", &[[127, 0, 0, 1]]);
    let found = lines(&["app.example 127.0.0.1:80 0 1"]);
    let url = format!("http+srv://{SERVICE}");
    assert_eq!(look_up(&names, &url).await, found);
    assert_eq!(look_up(&names, &url).await, found);
    assert_eq!((dead.asked(SERVICE, SRV), dead.asked("b.example", A)), (1, 0));
    // Where the other falls silent, it is the first one's turn again.
    good.set(SERVICE, SRV, Reply::Silence);
    dead.set(SERVICE, SRV, Reply::Records(vec![Data::Srv(0, 1, 81, "b.example")]));
    dead.hosts("b.example", &[[127, 0, 0, 1]]);
    assert_eq!(look_up(&names, &url).await, lines(&["app.example 127.0.0.1:81 0 1"]));
}

#[tokio::test]
async fn what_does_not_exist_and_what_nobody_knows_are_told_apart() {
    let server = NameServer::start().await;
    let names = names(&[server.address]);
    server.hosts("empty.example", &[]);
    server.set("broken.example", A, Reply::Code(SERVFAIL));
    server.set("broken.example", AAAA, Reply::Code(SERVFAIL));
    server.set("half.example", AAAA, Reply::Code(SERVFAIL));
    for (host, expected) in [
        ("no-such.example", io::ErrorKind::NotFound),
        ("empty.example", io::ErrorKind::NotFound),
        ("broken.example", io::ErrorKind::InvalidData),
        ("half.example", io::ErrorKind::InvalidData),
    ] {
        assert_eq!(look_up(&names, &format!("http://{host}")).await, Err(expected), "{host}");
    }
}

#[tokio::test]
async fn a_family_whose_question_fails_keeps_its_addresses() {
    let server = NameServer::start().await;
    let names = names(&[server.address]);
    server.hosts("app.example", &[[127, 0, 0, 1]]);
    server.set("app.example", AAAA, Reply::Records(vec![Data::Aaaa(Ipv6Addr::LOCALHOST)]));
    let mut both = vec!["app.example 127.0.0.1:80 0 1"];
    if system::has_route(&SocketAddr::from((Ipv6Addr::LOCALHOST, 80))) {
        both.push("app.example [::1]:80 0 1");
    }
    assert_eq!(look_up(&names, "http://app.example").await, lines(&both));
    server.set("app.example", AAAA, Reply::Code(SERVFAIL));
    assert_eq!(look_up(&names, "http://app.example").await, lines(&both));
    server.set("app.example", AAAA, Reply::Records(Vec::new()));
    assert_eq!(look_up(&names, "http://app.example").await, lines(&both[..1]));
    server.set("app.example", AAAA, Reply::Code(SERVFAIL));
    assert_eq!(
        look_up(&names, "http://app.example").await,
        lines(&both[..1]),
        "that there are none is known too"
    );
}

#[tokio::test]
async fn a_service_is_its_targets_by_priority_with_their_weights() {
    let server = NameServer::start().await;
    let names = names(&[server.address]);
    let service = "https+srv://_web._tcp.app.example";
    for (host, last) in [("a.example", 1), ("b.example", 2), ("c.example", 3)] {
        server.hosts(host, &[[127, 0, 0, last]]);
    }
    server.service(
        "_web._tcp.app.example",
        &[(20, 0, 8003, "c.example"), (10, 0, 8002, "b.example"), (10, 5, 8001, "A.example")],
    );
    let expected = [
        "app.example 127.0.0.1:8001 10 5",
        "app.example 127.0.0.2:8002 10 0",
        "app.example 127.0.0.3:8003 20 0",
    ];
    assert_eq!(look_up(&names, service).await, lines(&expected));

    server.set("b.example", A, Reply::Code(SERVFAIL));
    server.set("b.example", AAAA, Reply::Code(SERVFAIL));
    assert_eq!(look_up(&names, service).await, lines(&expected), "a target that fails keeps its addresses");
    server.forget("b.example");
    let without = [expected[0], expected[2]];
    assert_eq!(look_up(&names, service).await, lines(&without), "a target that is gone does not");

    server.service("_web._tcp.app.example", &[(10, 5, 8001, "a.example"), (20, 9, 8001, "a.example")]);
    assert_eq!(look_up(&names, service).await, lines(&expected[..1]), "one place counts once, as the better");
    for not_offered in [(0, 0, 80, ""), (0, 0, 0, "a.example")] {
        server.service("_web._tcp.app.example", &[not_offered]);
        assert_eq!(look_up(&names, service).await, Err(io::ErrorKind::NotFound), "{not_offered:?}");
    }
    server.service("_web._tcp.app.example", &[(0, 0, 80, "no-such.example")]);
    assert_eq!(look_up(&names, service).await, Err(io::ErrorKind::NotFound));
    server.set("_web._tcp.app.example", SRV, Reply::Code(SERVFAIL));
    assert_eq!(look_up(&names, service).await, Err(io::ErrorKind::InvalidData));
    server.forget("_web._tcp.app.example");
    assert_eq!(look_up(&names, service).await, Err(io::ErrorKind::NotFound));
}

#[tokio::test]
async fn a_service_of_any_size_stays_within_the_bounds() {
    let server = NameServer::start().await;
    let names = names(&[server.address]);
    let many: Vec<_> = (0..20).map(|last| [127, 0, 1, last]).collect();
    server.hosts("a.example", &many);
    let targets = (0..200).map(|n| Data::Srv(0, n, 1000 + n, "a.example")).collect();
    server.set("_web._tcp.app.example", SRV, Reply::OverTcp(targets));
    let found = look_up(&names, "http+srv://_web._tcp.app.example").await.unwrap();
    assert_eq!((found.len(), found[0].as_str()), (128, "app.example 127.0.1.0:1199 0 199"));
    assert_eq!(server.asked("a.example", A), 32);
}

#[test]
fn the_domain_of_a_service_is_what_its_labels_leave() {
    for (service, domain) in [
        ("_web._tcp.app.example", "app.example"),
        ("_tcp.app.example.", "app.example"),
        ("app.example", "app.example"),
        ("a._tcp.example", "a._tcp.example"),
        ("_tcp", "_tcp"),
    ] {
        assert_eq!(domain_of(service), domain);
    }
}
