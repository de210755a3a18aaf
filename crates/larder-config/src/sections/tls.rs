//! TLS towards clients: what holds for every listener that speaks it. Certificates belong to sites.

use std::time::Duration;

use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::path::ExistingFile;
use crate::value::words::TlsVersion;

section! {
    /// TLS towards clients, on every listener with `tls = true`. Certificates stand in sites, or come by `[acme]`.
    pub struct Tls in "`[tls]`" {
        /// The oldest version of TLS that is spoken. There is no key for cipher suites: of TLS 1.2 only those with forward secrecy
        /// and authenticated encryption are there.
        min_version: TlsVersion = "1.2", why "Clients of the last ten years speak it. `\"1.3\"` shuts out a few old ones.";
        /// How long a client may resume a session by a ticket. Keys are replaced after half of that time. `"0s"` turns tickets off.
        tickets: Duration = "12h", in "0s" ..= "7d", why "A resumed handshake costs no signature; what a stolen key opens is soon over.";
        /// A file with the keys of tickets, for several larders that resume each other's sessions: lines of 32 bytes in hexadecimal.
        /// The first encrypts, all decrypt. It is read again each minute.
        ticket_keys: Option<ExistingFile>, why "A larder alone makes keys that never leave its memory.";
        /// How long before its end a certificate is warned about; a sixth of its lifetime where that is less.
        expiry_warning: Duration = "14d", in "0s" ..= "365d", why "Time for two people to be on holiday.";
    }
}

impl Consistent for Tls {}

impl Default for Tls {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
