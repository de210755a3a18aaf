//! Keys where real clients have put them: `placed/` has the tables, and says how they were made.

#![allow(clippy::unwrap_used)]

use super::*;

/// Compares with a table: `servers ADDRESS=WEIGHT ...`, then `PLACE KEY` in each line.
fn check(placement: Placement, table: &str) {
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let servers = lines.next().and_then(|line| line.strip_prefix("servers ")).unwrap();
    let servers: Vec<RemoteServer> = servers
        .split(' ')
        .map(|server| {
            let (address, weight) = server.rsplit_once('=').unwrap();
            RemoteServer { address: Address::parse(address).unwrap(), weight: weight.parse().unwrap() }
        })
        .collect();
    let ring = Ring::new(placement, &servers);
    let mut keys = 0;
    for line in lines {
        let (place, key) = line.split_once(' ').unwrap();
        assert_eq!(ring.place(key.as_bytes()), place.parse::<usize>().unwrap(), "{placement:?}: {key}");
        keys += 1;
    }
    assert!(keys > 100, "{keys} keys");
}

#[test]
fn keys_lie_where_libmemcached_with_ketama_weighted_puts_them() {
    check(Placement::Ketama, include_str!("placed/ketama-three"));
    check(Placement::Ketama, include_str!("placed/ketama-two"));
    check(Placement::Ketama, include_str!("placed/ketama-weights"));
}

#[test]
fn keys_lie_where_libmemcached_with_consistent_distribution_puts_them() {
    check(Placement::Consistent, include_str!("placed/consistent-three"));
    check(Placement::Consistent, include_str!("placed/consistent-two"));
    check(Placement::Consistent, include_str!("placed/consistent-weights"));
}

#[test]
fn keys_lie_where_nginx_puts_them() {
    check(Placement::Nginx, include_str!("placed/nginx-three"));
    check(Placement::Nginx, include_str!("placed/nginx-two"));
    check(Placement::Nginx, include_str!("placed/nginx-weights"));
    check(Placement::Nginx, include_str!("placed/nginx-unix"));
}

#[test]
fn with_one_server_there_is_no_ring() {
    let servers = [RemoteServer { address: Address::parse("127.0.0.1").unwrap(), weight: 7 }];
    for placement in [Placement::Ketama, Placement::Consistent, Placement::Nginx] {
        let ring = Ring::new(placement, &servers);
        assert!(ring.points.is_empty());
        assert_eq!(ring.place(b"/any"), 0);
    }
}

#[test]
fn a_server_that_is_added_takes_keys_and_moves_no_others() {
    let server = |n| RemoteServer { address: Address::parse(&format!("10.0.0.{n}")).unwrap(), weight: 1 };
    for placement in [Placement::Ketama, Placement::Consistent, Placement::Nginx] {
        let four: Vec<_> = (1..=4).map(server).collect();
        let (three, four) = (Ring::new(placement, &four[..3]), Ring::new(placement, &four));
        let mut moved = 0;
        for n in 0..10_000 {
            let key = format!("/page/{n}");
            let (before, after) = (three.place(key.as_bytes()), four.place(key.as_bytes()));
            assert!(after == before || after == 3, "{key}");
            moved += u32::from(after == 3);
        }
        assert!((1500..3500).contains(&moved), "{placement:?}: {moved} of 10000");
    }
}
