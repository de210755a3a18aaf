//! What a site and `[defaults]` can say about purges, and a rule cannot: a purge is judged before the rules are.

use crate::schema::Consistent;
use crate::schema::section::section;
use crate::sections::purge::PurgeSetting;
use crate::sections::tags::TagFields;

section! {
    /// Purges, by which the operator or the application invalidates what is stored. These keys belong in a site and in
    /// `[defaults]`. Each is taken whole from the site, else from `[defaults]`. A rule cannot have them, because larder judges
    /// a purge before it looks at rules.
    pub struct Purging in "`[defaults]` and `[[site]]`: purges" {
        /// Which requests may purge, as a table. With `"closed"` no request may, not even one from this machine. With `"pass"`, purge
        /// requests go to the origin like any method that larder does not know.
        purge: Option<PurgeSetting> = ("`\"closed\"`"), why "A stranger who may purge makes the origin do all the work. A proxy in front can make every client come from loopback, so that loopback is no exception.";
        /// Fields of responses that carry tags, by which a purge can name them: a list of names, or a table. `[]` is none.
        /// `"default"` stands for the names below.
        tags: Option<TagFields> = ("`[\"default\"]`: the names below"), why "Applications that tag their pages do so in one of these fields, whichever cache they were written for.";
    }
}

impl Consistent for Purging {}

impl Default for Purging {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
