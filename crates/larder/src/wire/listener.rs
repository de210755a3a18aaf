//! The limits of a listener, from `[limits]`, and which peers it trusts.

use std::sync::Arc;

use larder_config::Config;
use larder_http::time::Clock;
use larder_listen::TrustedPeers;
use larder_tls::server::ServerTls;

use super::trusted::is_trusted;

/// See the head of the file.
pub(crate) fn listener(
    config: &Config,
    tls: Option<Arc<ServerTls>>,
    clock: &Clock,
) -> larder_listen::Settings {
    let limits = &config.limits;
    let bytes = |size: larder_config::ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
    let defaults = larder_listen::Limits::default();
    larder_listen::Settings {
        clock: clock.clone(),
        tls,
        trusted: match config.trusted.is_empty() {
            true => TrustedPeers::default(),
            false => TrustedPeers::new(is_trusted(config)),
        },
        limits: larder_listen::Limits {
            head_bytes_max: bytes(limits.head_size),
            fields_max: limits.fields,
            field_bytes_max: bytes(limits.field_size),
            target_bytes_max: bytes(limits.target_size),
            head_time: limits.head_time,
            keep_alive_idle: limits.keep_alive_idle,
            body_idle: limits.body_idle,
            write_idle: limits.write_idle,
            rate_min: limits.rate_min.0,
            rate_window: limits.rate_window,
            body_bytes_max: limits.body_size.map(|size| size.0),
            tunnel_idle: limits.tunnel_idle,
            has_grpc: config
                .origins
                .iter()
                .any(|(_, origin)| origin.protocol != larder_config::Protocol::Http1),
            handshake_time: limits.handshake_time,
            handshakes_max: limits.handshakes,
            streams_max: limits.h2_streams,
            resets_max: limits.h2_resets,
            ..defaults
        },
    }
}
