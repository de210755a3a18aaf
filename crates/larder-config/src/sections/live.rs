//! What larder remembers of requests and figures, and what of it may be shown.
//!
//! In: the table `live`. Out: a [`Live`]. Where the admin address is off, nothing is remembered, whatever stands here.
//! Deliberately absent: how many requests are remembered, which is a fixed number with a fixed bound of memory.

use std::time::Duration;

use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::name::HiddenParameter;
use crate::value::size::ByteSize;
use crate::value::words::ClientAddresses;

section! {
    /// What the admin address shows of the past and of requests. It is kept in memory, and a restart forgets it.
    pub struct Live in "`[live]`" {
        /// How far back figures over time are remembered; with `"0s"` they are not remembered at all.
        history: Duration = "24h", in "0s" ..= "24h", why "A day shows the peak of yesterday beside that of today.";
        /// The memory that they may take. What finds no room is counted together.
        memory: ByteSize = "16MiB", in "1MiB" ..= "1GiB", why "Enough for some hundred sites with their rules, stores and origins.";
        /// What is shown of clients' addresses: `"masked"` (`192.0.2.0/24`, `2001:db8::/48`), `"full"` or `"off"`. The access log
        /// has its own way.
        clients: ClientAddresses = "masked", why "A network is enough to see where a flood comes from, and is no single person.";
        /// Parameters whose values are shown as `***` wherever requests are shown. A `*` at an end stands for anything, and
        /// letter case does not count. A list that is given replaces the default one.
        redact: Vec<HiddenParameter> = ["token", "password", "sig", "Signature", "AWSAccessKeyId", "X-Goog-Signature", "*_key"],
            why "Usual secrets in URLs. A request that is shown is read by more people than a request.";
    }
}

impl Consistent for Live {}
