//! What one client may cost. Every limit is counted when it bites.

use std::time::Duration;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::size::ByteSize;

section! {
    /// What one client may cost. A request beyond a limit is answered 413, 414 or 431 and its connection closed; a
    /// client that is too slow gets 408 or is cut off. Each limit has a counter in `/metrics`.
    pub struct Limits in "`[limits]`" {
        /// Request line and fields together.
        head_size: ByteSize = "32KiB", in "1KiB" ..= "1MiB", why "Room for cookies gone wild, still cheap to hold.";
        /// How long a head may take from its first wait to its end, however it trickles in.
        head_time: Duration = "10s", in "100ms" ..= "1h", why "A person's browser needs one round trip.";
        /// Field lines in one request; on HTTP/2 every cookie crumb counts.
        fields: usize = 100, in 8 ..= 256, why "A field costs memory even where its bytes do not.";
        /// Name and value of one field.
        field_size: ByteSize = "16KiB", in "256B" ..= "1MiB", why "The largest that servers in common use take.";
        /// The request target: path and query.
        target_size: ByteSize = "8KiB", in "256B" ..= "60KiB", why "What other servers take; a key is as long.";
        /// The longest request content.
        body_size: Option<ByteSize> = ("no limit"),
            why "What an application takes is its own affair: content is streamed, never kept.";
        /// The longest wait between two pieces of a request's content.
        body_idle: Duration = "30s", in "100ms" ..= "1h", why "A phone may change cells, a stalled client may not stay.";
        /// The longest wait between two successful writes to a client; on HTTP/2 also for a closed window.
        write_idle: Duration = "30s", in "100ms" ..= "1h", why "The same for a client that takes nothing.";
        /// The longest wait for the next request on a connection. With `"0s"`, each connection is closed behind its first answer.
        keep_alive_idle: Duration = "60s", in "0s" ..= "24h", why "Pages are read longer than that, but not followed.";
        /// The least that a client has to send or take, per second, measured over `rate_window`.
        rate_min: ByteSize = "256B", in "0B" ..= "1MiB",
            why "Stops clients that stay just within the other limits; slower than any real line.";
        /// Over how long `rate_min` is measured.
        rate_window: Duration = "30s", in "1s" ..= "1h", why "A pause of this length is forgiven.";
        /// How long a WebSocket may be silent.
        tunnel_idle: Duration = "1h", in "1s" ..= "7d", why "Applications ping every minute or so, but not all do.";
        /// How long a TLS handshake may take, from the first byte of the connection to its end, however it trickles in.
        handshake_time: Duration = "10s", in "100ms" ..= "1h", why "Two round trips and a signature; as for `head_time`.";
        /// TLS handshakes under way at once, for each worker. More connections wait in the kernel.
        handshakes: usize = 512, in 1 ..= 65536, why "Each holds memory before it is known who asks.";
        /// HTTP/2 streams at once on one connection.
        h2_streams: u32 = 128, in 1 ..= 1000, why "More than browsers open, and what RFC 9113 asks for at least: 100.";
        /// HTTP/2 streams that a client may reset beyond those that it let finish, before its connection is closed.
        h2_resets: u64 = 200, in 1 ..= 100000,
            why "A browser that leaves a page full of images stays far below, a flood of resets does not.";
        /// Purge requests under way at once, in the whole process. More are answered 429 with Retry-After.
        purges: usize = 1024, in 1 ..= 65536,
            why "A purge is done in less than a millisecond where no disk is slow, so that more would only wait.";
    }
}

impl Consistent for Limits {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        for (name, part) in [("field_size", self.field_size), ("target_size", self.target_size)] {
            let named = table.get(name).or_else(|| table.get("head_size"));
            if let Some(node) = named.filter(|_| part > self.head_size) {
                let said =
                    format!("{name} ({part}) is never reached: head_size ({}) is less", self.head_size);
                let problem = reading.problem(&node.place, &At::Key(at, name), said);
                reading.warn(problem);
            }
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
