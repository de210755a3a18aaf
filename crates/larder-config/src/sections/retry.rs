//! When a request that failed on one server is sent to another.

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::percent::Percent;
use crate::value::retry_on::RetryOn;

section! {
    /// When a request that failed on one server is sent to another, although the first may have acted on it. Only methods
    /// that may be repeated are (RFC 9110 9.2.2), only with content that larder can send again, and only before anything
    /// of an answer has gone on. Without this table a request is sent again only where nothing of it was written, or where
    /// it is a GET or HEAD on a kept connection that closed without a byte of an answer.
    pub struct Retry in "`[origins.NAME.retry]`" {
        /// How many other servers are tried at most.
        servers: u32 = 1, in 1 ..= 10, why "What two servers cannot answer, a third seldom can.";
        /// What a request is tried again for.
        on: Vec<RetryOn> = ["error", "timeout"], why "A status is an answer: somebody has to say which ones are not.";
        /// How many requests may be sent again, for each hundred that are sent. Ten are saved for quiet times, and there at
        /// the start.
        budget: Percent = "20%", in "1%" ..= "100%",
            why "Where everything fails, retries would double the load on servers that cannot bear it.";
    }
}

impl Consistent for Retry {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        if let Some(node) = table.get("on")
            && matches!(&node.value, Value::List(items) if items.is_empty())
        {
            let hint = Some("leave `retry` out to try no other server".to_owned());
            reading.refuse_value(node, &At::Key(at, "on"), "at least one reason", hint);
        }
    }
}
