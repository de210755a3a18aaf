//! Which server has a key, where there are several.
//!
//! In: servers with weights, and a key. Out: the server's place in the list. The keys are written by applications, so each placement is
//! the one of a client of the field, bit by bit:
//!
//! - `ketama`: libmemcached with `ketama_weighted`. That is pylibmc's option of this name, PHP's `OPT_LIBKETAMA_COMPATIBLE`, and libketama.
//! - `consistent`: libmemcached with consistent distribution alone. That is pylibmc's `ketama` and PHP's `DISTRIBUTION_CONSISTENT`.
//! - `nginx`: `hash KEY consistent` in nginx, which is Cache::Memcached::Fast with `ketama_points => 160`.
//!
//! A server that fails keeps its keys: elsewhere old values might wait for them. With one server there is no ring.

use std::path::Path;

use super::md5::md5;
use super::settings::{Placement, RemoteServer};
use crate::address::{Address, DEFAULT_PORT};

/// Points on a circle of 32 bits, each with a server.
#[derive(Clone, Debug)]
pub struct Ring {
    placement: Placement,
    /// Sorted. Empty with one server.
    points: Vec<(u32, u16)>,
}

impl Ring {
    /// The ring of `servers`. Their order does not matter but where two points coincide.
    pub fn new(placement: Placement, servers: &[RemoteServer]) -> Self {
        let mut points = Vec::new();
        if servers.len() > 1 {
            let is_weighted =
                placement == Placement::Ketama || servers.iter().any(|server| server.weight > 1);
            let weights = servers.iter().map(|server| server.weight).sum();
            for (server, place) in servers.iter().zip(0..) {
                match placement {
                    Placement::Nginx => nginx(server, place, &mut points),
                    Placement::Ketama | Placement::Consistent if is_weighted => {
                        weighted(server, place, weights, servers.len(), &mut points);
                    }
                    Placement::Ketama | Placement::Consistent => plain(server, place, &mut points),
                }
            }
            points.sort_unstable();
        }
        Self { placement, points }
    }

    /// The only server has every key.
    pub(crate) fn of_one() -> Self {
        Self { placement: Placement::default(), points: Vec::new() }
    }

    /// The place of the server that has `key`.
    pub fn place(&self, key: &[u8]) -> usize {
        if self.points.is_empty() {
            return 0;
        }
        let hash = match self.placement {
            Placement::Ketama => md5_word(key, 0),
            Placement::Consistent => one_at_a_time(key),
            Placement::Nginx => crc32fast::hash(key),
        };
        let at = self.points.partition_point(|(point, _)| *point < hash);
        self.points.get(at).or(self.points.first()).map_or(0, |(_, place)| usize::from(*place))
    }
}

/// The name of a server in libmemcached's points: without its port where that is memcached's own.
fn name(address: &Address) -> String {
    match address {
        Address::Tcp { host, port: DEFAULT_PORT } => host.clone(),
        Address::Tcp { host, port } => format!("{host}:{port}"),
        Address::Unix(path) => format!("{}:0", path.display()),
    }
}

/// Points by the share of weights, four of each digest (libmemcached's `update_continuum`).
fn weighted(server: &RemoteServer, place: u16, weights: u32, servers: usize, points: &mut Vec<(u32, u16)>) {
    // In single precision, as there: one point more or less would move keys.
    let share = server.weight as f32 / weights as f32;
    let exact = f64::from(share * 160.0 / 4.0 * servers as f32) + 0.000_000_000_1;
    let digests = (exact as f32).floor() as u32;
    for number in 0..digests {
        let digested = format!("{}-{number}", name(&server.address));
        points.extend((0..4).map(|part| (md5_word(digested.as_bytes(), part), place)));
    }
}

/// A hundred points for each server.
fn plain(server: &RemoteServer, place: u16, points: &mut Vec<(u32, u16)>) {
    let name = name(&server.address);
    points.extend((0..100).map(|number| (one_at_a_time(format!("{name}-{number}").as_bytes()), place)));
}

/// 160 points for each unit of weight; each goes into the next one (nginx's `ngx_http_upstream_init_chash`).
fn nginx(server: &RemoteServer, place: u16, points: &mut Vec<(u32, u16)>) {
    let mut base = crc32fast::Hasher::new();
    match &server.address {
        Address::Tcp { host, port } => {
            let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            base.update(format!("{host}\0{port}").as_bytes());
        }
        Address::Unix(path) => {
            base.update(bytes_of(path));
            base.update(b"\0");
        }
    }
    let mut point = 0_u32;
    for _ in 0..server.weight.saturating_mul(160) {
        let mut hasher = base.clone();
        hasher.update(&point.to_le_bytes());
        point = hasher.finalize();
        points.push((point, place));
    }
}

fn bytes_of(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

/// Four bytes of a digest as a number, the lowest first.
fn md5_word(text: &[u8], part: usize) -> u32 {
    let digest = md5(text);
    let bytes = digest.chunks_exact(4).nth(part).unwrap_or_default();
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// Jenkins's hash, as libhashkit has it: it reads bytes as signed, so those from 0x80 on count as negative.
fn one_at_a_time(text: &[u8]) -> u32 {
    let mut hash = 0_u32;
    for byte in text {
        hash = hash.wrapping_add(i32::from(*byte as i8) as u32);
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

#[cfg(test)]
mod tests;
