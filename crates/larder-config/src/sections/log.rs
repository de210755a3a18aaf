//! The access log.

use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::path::AccessLog;
use crate::value::words::LogFormat;

section! {
    /// The access log: one line per exchange. Writing it never blocks a worker; lines that cannot be written in time
    /// are counted and dropped.
    pub struct Log in "`[log]`" {
        /// Where the lines go: `"off"`, `"stdout"`, or a file that is appended to.
        access: AccessLog = "off", why "Nobody's visits are recorded unless it is asked for.";
        /// How a line looks: `"json"`, one object per line, or `"combined"`, as Apache and nginx write it.
        format: LogFormat = "json", why "It carries what the cache did and why; `combined` has no room for it.";
    }
}

impl Consistent for Log {}
