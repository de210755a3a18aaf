//! An origin: its servers, how one of them is chosen, and what it may cost to ask them.

use std::time::Duration;

use crate::reading::At;
use crate::schema::section::section;
use crate::sections::ejection::Ejection;
use crate::sections::health::Health;
use crate::sections::retry::Retry;
use crate::sections::server::ServerEntry;
use crate::value::certified::CertifiedName;
use crate::value::hash_by::HashBy;
use crate::value::name::CookieName;
use crate::value::name_server::NameServer;
use crate::value::path::ExistingFile;
use crate::value::sent_host::SentHost;
use crate::value::words::{Balance, Protocol};

section! {
    /// Where responses come from. NAME is what sites call it. All limits hold for the whole process, however many workers
    /// and sites use the origin.
    pub struct Origin in "`[origins.NAME]`" {
        /// The servers. All have to answer alike. A name that stands for several addresses is as many servers, each with
        /// the weight that is said here.
        servers: Vec<ServerEntry> = required, why "There is nothing to guess from.";
        /// Which server a request goes to. `"round-robin"`: one after the other; `"least-requests"`: of two that chance
        /// picks, the one with fewer requests in flight; `"hash"`: the one that a part of the request stands for, the same
        /// after a restart, and where a server goes only its requests move. Weights count in each.
        balance: Balance = "round-robin", why "It needs no knowledge of the servers, and none of the requests.";
        /// The part of the request that stands for a server, with `balance = "hash"`.
        hash_by: Option<HashBy> = ("`\"url\"`"), why "Each server then caches its own part of the pages, if it caches at all.";
        /// The cookie by which larder leads a client back to the server that it had before. larder sets it in answers of
        /// the origin, not in those from the cache, and takes it out of requests before the cache and the origin see them.
        /// It goes before `balance`; a server that cannot be asked loses its clients to others.
        sticky: Option<CookieName> = ("none"), why "Applications should not need it; those that keep sessions in memory do.";
        /// How long TCP and TLS may take together, per server tried. The first look-up of its name has as long again.
        connect_timeout: Duration = "3s", in "1ms" ..= "10m", why "Leaves room for one lost packet (resent after 1 s).";
        /// How long a server may take from the end of the request to the end of its response's head.
        first_byte_timeout: Duration = "60s", in "1ms" ..= "24h", why "Applications have slow pages; what other proxies wait.";
        /// The longest wait between two pieces of a response's content.
        between_bytes_timeout: Duration = "30s", in "1ms" ..= "24h", why "A server that began has no reason to stall.";
        /// How long all may take, from the start of a request, with its time in the queue, to the end of the response's
        /// content. It does not hold for WebSockets.
        total_timeout: Option<Duration> = ("none"), in "1ms" ..= "7d", why "A long download is no fault, nor is a stream of events.";
        /// How long an unused connection is kept.
        idle: Duration = "4s", in "0s" ..= "1h",
            why "Below the 5 s after which common application servers close theirs, so that larder closes first.";
        /// Unused connections kept per worker and server.
        max_idle: usize = 32, in 0 ..= 10000, why "Enough for bursts, few enough for small servers.";
        /// Connections open at once, unused ones and tunnels included.
        max_connections: usize = 8192, in 1 ..= 1000000, why "Above what an origin serves, below common limits of descriptors.";
        /// Requests in flight at once, each until its response has ended; WebSockets are not counted. More wait in the queue.
        max_in_flight: Option<usize> = ("none"), in 1 ..= 100000, why "Only the operator knows how many the application bears.";
        /// Requests that may wait for `max_in_flight`. More are answered 503 with Retry-After, or from what is stored.
        queue: usize = 1000, in 0 ..= 100000, why "Longer than that, waiting ends in `queue_timeout` for most.";
        /// How long a request may wait in the queue, before it is answered likewise.
        queue_timeout: Duration = "5s", in "1ms" ..= "10m", why "Few people wait longer for a page.";
        /// When a request that failed on one server is sent to another.
        retry: Option<Retry> = ("none: one server gives the answer"), why "A request that arrived may have had its effect, even a GET.";
        /// How long a server that fails is left alone.
        ejection: Ejection, why "A server that is down should not cost each request a try.";
        /// How slowly a server that is new or well again takes its whole part of the load: from a tenth, steadily.
        slow_start: Duration = "0s", in "0s" ..= "1h", why "For applications with caches to warm; most need none.";
        /// Ask servers whether they are well, beside the requests of clients.
        health: Option<Health> = ("none"), why "Failures of real requests tell enough, unless one is one too many.";
        /// How often names are looked up anew. Nobody waits for it; where it fails, the last answer stays.
        resolve_every: Duration = "30s", in "1s" ..= "24h", why "What most names of moving servers are given.";
        /// Name servers to ask in place of the system's.
        name_servers: Vec<NameServer> = ("the system's"), why "The system knows the names of its network.";
        /// Which Host the servers are asked with. `"client"`: what the client asked for; `"upstream"`: the name of the server as
        /// `servers` has it, as nginx does it; or the host that is given. `X-Forwarded-Host` is the client's in each case, and so is
        /// the host in the cache key.
        host: SentHost = "client", why "Applications make links from it, and serve several sites by it.";
        /// What to speak. `"h2"` is HTTP/2, in clear text by prior knowledge; `"auto"` is what an `https` server chooses, and
        /// HTTP/1.1 in clear text.
        protocol: Protocol = "http/1.1", why "Every server knows it, and a connection each keeps slow answers from each other.";
        /// Begin each connection with the client's address (PROXY protocol, version 2). Such a connection serves one request.
        proxy_protocol: bool = false, why "A server that does not expect it takes it for garbage.";
        /// Send a Via field. Without one this origin cannot tell that a proxy asks, not even one in front of larder, and a
        /// loop that leads through it is not noticed.
        via: bool = true, why "HTTP asks it of proxies (RFC 9110 7.6.3). nginx compresses nothing behind a Via, unless `gzip_proxied` says otherwise.";
        /// Trust the certificates in this file (PEM) in place of the system's authorities, for `https` servers. An authority vouches
        /// for what it has signed; any other certificate for itself alone, so that a server's own certificate is pinned.
        ca_file: Option<ExistingFile>, why "The system's authorities are right for public names.";
        /// The certificate chain (PEM) that larder shows to `https` servers that want one; with `client_key`.
        client_cert: Option<ExistingFile>, why "Few servers ask for one.";
        /// Its private key (PEM).
        client_key: Option<ExistingFile>, why "As for `client_cert`.";
        /// The name that `https` servers are asked for (SNI) and that their certificate has to be for.
        server_name: Option<CertifiedName> = ("the host in the server's URL; for SRV records, their domain"), why "Right, unless servers are named by address.";
    }
}

impl Origin {
    /// The part of the request that chooses the server; `None` where none does.
    pub fn chosen_by(&self) -> Option<HashBy> {
        (self.balance == Balance::Hash).then(|| self.hash_by.clone().unwrap_or_default())
    }
}

/// An item of a list, or the value that stands for a list of one.
pub(crate) fn item<'a>(list: &'a At<'a>, index: Option<usize>) -> At<'a> {
    index.map_or(*list, |index| At::Item(list, index))
}
