//! What the listener counts. One [`Metrics`] per worker, so that no two cores write to one line of memory; whoever
//! shows them adds them up.
//!
//! Each entry is declared once, in the table below, with its name and help text.

use larder_observe::Histogram;

use crate::cell::Cell;
use crate::error::Refusal;
use crate::tls::{HandshakeFailure, HandshakeKinds};

/// Label names and values of one sample.
pub type Labels<'a> = &'a [(&'static str, &'static str)];

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $field:ident = $name:literal $({ $($label:ident = $value:literal),+ })?;)+) => {
        /// The counters of one worker.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $help])+ pub $field: Cell,)+
            refused: [Cell; Refusal::TOKENS.len()],
            handshakes_failed: [Cell; HandshakeFailure::ALL.len()],
            pub(crate) tls_handshakes: HandshakeKinds,
            /// How long handshakes took that made everything anew, from the accepted connection on.
            pub full_handshakes: Histogram,
            /// How long handshakes took that resumed a session.
            pub resumed_handshakes: Histogram,
        }

        impl Metrics {
            /// Calls `f` for every sample with its name, help text, labels and value. Samples of one name follow
            /// each other. Names that end in `_total` are counters, the others gauges.
            pub fn for_each(&self, f: &mut dyn FnMut(&'static str, &'static str, Labels<'_>, u64)) {
                $(f($name, concat!($($help),+).trim_ascii(), &[$($((stringify!($label), $value)),+)?], self.$field.value());)+
                for (cell, token) in self.refused.iter().zip(Refusal::TOKENS) {
                    f(
                        "larder_requests_refused_total",
                        "Requests that the parser refused, by reason.",
                        &[("reason", token)],
                        cell.value(),
                    );
                }
                self.tls_handshakes.for_each(|version, group, resumed, count| {
                    f(
                        "larder_tls_handshakes_total",
                        "TLS handshakes with clients, by version, group of the key exchange, and whether a session was resumed.",
                        &[("version", version), ("group", group), ("resumed", resumed)],
                        count,
                    );
                });
                for (cell, failure) in self.handshakes_failed.iter().zip(HandshakeFailure::ALL) {
                    f(
                        "larder_tls_handshake_errors_total",
                        "TLS handshakes with clients that failed, by reason.",
                        &[("reason", failure.token())],
                        cell.value(),
                    );
                }
            }

            /// Adds the values of `other` to this one, but for the durations of handshakes.
            pub fn absorb(&self, other: &Self) {
                $(self.$field.add(other.$field.value());)+
                for (mine, theirs) in self.refused.iter().zip(&other.refused) {
                    mine.add(theirs.value());
                }
                for (mine, theirs) in self.handshakes_failed.iter().zip(&other.handshakes_failed) {
                    mine.add(theirs.value());
                }
                self.tls_handshakes.absorb(&other.tls_handshakes);
            }
        }
    };
}

metrics! {
    /// Connections accepted.
    accepted = "larder_connections_accepted_total";
    /// Connections open.
    open = "larder_connections_open";
    /// Accepts that failed, for want of descriptors or otherwise.
    accept_errors = "larder_accept_errors_total";
    /// Times that accepting paused because all connection slots were taken.
    accept_paused = "larder_accept_paused_total";
    /// Times that accepting paused because as many TLS handshakes were under way as may be.
    handshakes_paused = "larder_tls_handshakes_paused_total";
    /// Requests handed to the service.
    requests_http1 = "larder_requests_accepted_total" { protocol = "http1" };
    /// Requests handed to the service.
    requests_http2 = "larder_requests_accepted_total" { protocol = "http2" };
    /// Bytes read from clients over HTTP/1, and content read over HTTP/2.
    bytes_in = "larder_client_received_bytes_total";
    /// Bytes written to clients over HTTP/1, and content written over HTTP/2.
    bytes_out = "larder_client_sent_bytes_total";
    /// Bytes of those written that the kernel took from a file, without a copy.
    bytes_from_files = "larder_client_sent_from_files_bytes_total";
    /// Interim responses sent.
    interims = "larder_interim_responses_total";
    /// Requests whose client left before the response had begun.
    client_gone = "larder_client_gone_total";
    /// Connections closed because no request came.
    idle_closed = "larder_limit_reached_total" { limit = "keep_alive_idle" };
    /// Responses cut because the client took them too slowly.
    write_stalled = "larder_limit_reached_total" { limit = "write_idle" };
    /// Connections closed because content that nobody reads was too long.
    unread_closed = "larder_limit_reached_total" { limit = "unread_content" };
    /// Tunnels closed because nothing passed.
    tunnel_idle = "larder_limit_reached_total" { limit = "tunnel_idle" };
    /// Connections closed because too many streams were reset.
    resets = "larder_limit_reached_total" { limit = "resets" };
    /// Connections closed because too many streams had to be reset for errors of their client.
    forced_resets = "larder_limit_reached_total" { limit = "h2_stream_errors" };
    /// Connections closed because too many frames did nothing by themselves.
    idle_frames = "larder_limit_reached_total" { limit = "h2_frames" };
    /// Connections closed because a field block was far too long.
    blocks_too_long = "larder_limit_reached_total" { limit = "h2_field_block" };
    /// Streams refused because as many were open as may be.
    streams_refused = "larder_limit_reached_total" { limit = "h2_streams" };
    /// Streams refused because the heads of those that were open were too large together.
    heads_refused = "larder_limit_reached_total" { limit = "h2_heads" };
    /// Connections closed for another breach of HTTP/2.
    http2_errors = "larder_http2_errors_total";
    /// Responses cut because their content broke.
    responses_cut = "larder_responses_cut_total";
    /// Handshakes in which an authority of certificates has seen its proof.
    tls_proofs = "larder_tls_proofs_total";
    /// Tunnels opened.
    tunnels = "larder_tunnels_total";
}

impl Metrics {
    /// How often `refusal` was given.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused.get(refusal.index()).map_or(0, Cell::value)
    }

    /// How often a handshake failed for this reason.
    pub fn handshakes_failed(&self, failure: HandshakeFailure) -> u64 {
        self.handshakes_failed.get(failure as usize).map_or(0, Cell::value)
    }

    pub(crate) fn count_handshake_failure(&self, failure: HandshakeFailure) {
        if let Some(cell) = self.handshakes_failed.get(failure as usize) {
            cell.add(1);
        }
    }

    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        if let Some(cell) = self.refused.get(refusal.index()) {
            cell.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_http::authority::AuthorityError;

    use super::*;

    #[test]
    fn every_sample_has_a_name_and_the_sum_of_workers_is_one() {
        let (a, b) = (Metrics::default(), Metrics::default());
        a.accepted.add(2);
        b.accepted.add(3);
        b.count_refusal(Refusal::Host(AuthorityError::Empty));
        a.absorb(&b);
        assert_eq!(a.refused(Refusal::Host(AuthorityError::Empty)), 1);
        let mut seen = Vec::new();
        a.for_each(&mut |name, help, labels, value| {
            assert!(name.starts_with("larder_") && help.ends_with('.'), "{name}: {help}");
            seen.push((name, labels.to_vec(), value));
        });
        assert!(seen.contains(&("larder_connections_accepted_total", Vec::new(), 5)));
        assert!(seen.contains(&("larder_requests_refused_total", vec![("reason", "host")], 1)));
    }
}
