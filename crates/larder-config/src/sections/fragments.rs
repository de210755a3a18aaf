//! How pages are put together from templates and fragments, and what one page may cost.

use std::time::Duration;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::duration::print_duration;
use crate::value::host::HostPattern;
use crate::value::size::ByteSize;
use crate::value::words::OnError;

section! {
    /// How larder puts pages together from templates and fragments, and what one page may cost. The settings of the template's
    /// rule hold for the whole page.
    pub struct Fragments in "`fragments`" {
        /// How long a page waits for one fragment, from the moment that larder asks for it. The fetch goes on without the page.
        timeout: Duration = "10s", in "1ms" ..= "10m", why "A visitor seldom waits longer for a page. The limits of the origin hold for its fetch.";
        /// How long a page waits for all its fragments together.
        page_timeout: Duration = "60s", in "1ms" ..= "1h", why "Fragments within fragments wait one after the other.";
        /// Levels of fragments within fragments.
        depth: usize = 10, in 1 ..= 100, why "Pages have two or three. More is nearly always a fragment that includes itself under another URL.";
        /// Includes that a page runs, on all levels. One that stands there twice counts twice, and is asked for once.
        count: usize = 1000, in 1 ..= 100000, why "One request of a visitor must not become any number of requests to the origin.";
        /// Fetches of one page that are under way at the same time. More wait.
        at_once: usize = 16, in 1 ..= 1000, why "One page must not take every connection to an origin.";
        /// How long a page may become. One that becomes longer is cut.
        page_size: ByteSize = "64MiB", in "1KiB" ..= "1024TiB", why "A template that includes a long fragment many times would have no end.";
        /// What becomes of a page with a failed fragment for which an ESI template names nothing instead. `"fail"`: 502, or where the
        /// page has begun, the connection is cut. `"omit"`: nothing stands in its place. In SSI the error text stands there in both.
        on_error: OnError = "fail", why "A page that lacks a part looks whole, and may lack what matters most.";
        /// Write nothing where SSI would write its error text.
        silent: bool = false, why "The text shows the author where a fault is. `config errmsg` in a template replaces it.";
        /// Insert the content of a 4xx or 5xx where SSI includes it.
        error_bodies: bool = false, why "The text of an error is no part of a page. nginx inserts it.";
        /// Hosts that fragments may come from beside the page's own. larder must have a site for each.
        hosts: Vec<HostPattern> = [], why "Text from visitors can stand in a template. It must not be able to choose a host.";
    }
}

impl Consistent for Fragments {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let Some(node) = table.get("timeout").filter(|_| self.timeout > self.page_timeout) else { return };
        let [timeout, page] = [self.timeout, self.page_timeout].map(print_duration);
        let said = format!("timeout ({timeout}) is never reached: page_timeout ({page}) is less");
        let problem = reading.problem(&node.place, &At::Key(at, "timeout"), said);
        reading.warn(problem);
    }
}

impl Default for Fragments {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
