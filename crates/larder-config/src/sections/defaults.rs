//! What holds for every site that does not say otherwise.

use crate::schema::Consistent;
use crate::schema::section::section;
use crate::sections::purging::Purging;
use crate::sections::settings::Settings;

section! {
    /// What holds for every site and rule that does not say otherwise.
    pub struct Defaults in "`[defaults]`" {
        flatten settings: Settings, "Settings of requests.";
        flatten purging: Purging, "Settings of purges.";
    }
}

impl Consistent for Defaults {}
