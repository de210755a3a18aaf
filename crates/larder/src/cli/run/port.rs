//! What helps where a port may not be listened on.
//!
//! In: why larder did not start or reload. Out: a hint, where the port is one that the system keeps for privileged processes. From
//! which port on anybody may listen is a setting of the network namespace, 1024 on most machines and 0 in many containers.

use std::io::ErrorKind;

use larder_listen::ListenError;

use crate::server::ServerError;

/// The first port that needs no privilege.
const UNPRIVILEGED: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

pub(super) fn hint(error: &ServerError) -> Option<String> {
    let ServerError::Listen(ListenError::Bind { address, source }) = error else { return None };
    let first = std::fs::read_to_string(UNPRIVILEGED).ok();
    let first = first.and_then(|text| text.trim().parse().ok()).unwrap_or(1024);
    if source.kind() != ErrorKind::PermissionDenied || address.port() >= first {
        return None;
    }
    let this =
        std::env::current_exe().map_or_else(|_| "larder".to_owned(), |path| path.display().to_string());
    Some(format!(
        "  hint: ports below {first} need the capability CAP_NET_BIND_SERVICE: as a service AmbientCapabilities=CAP_NET_BIND_SERVICE; \
         by hand: sudo setcap cap_net_bind_service=+ep {this}"
    ))
}
