//! What is told of purges, as values: one that was made, and one that might be.

use serde::{Deserialize, Serialize};

use super::reason::Reason;

/// A purge that concerned what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedPurge {
    /// Names it: `larder purges ID` shows all of it.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long ago that was.
    pub age_seconds: f64,
    /// `url`, `tag`, `group`, `prefix`, `host`, `all` or `pattern`: of the name that concerned it.
    pub kind: String,
    /// `hard` or `soft`.
    pub mode: String,
    /// That name.
    pub what: String,
    /// In whose words it was asked for.
    pub dialect: String,
    /// The address that asked; null for larder itself.
    pub peer: Option<String>,
    /// What let it in.
    pub by: String,
}

/// What a purge of the URL would take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PurgeOutlook {
    /// Responses under the URL, in every store and whatever the rest of their keys; those that are gone are not counted.
    pub responses: u64,
    /// The length of their content.
    pub bytes: u64,
    /// The forms of path and query under which rules of the site key the URL: a purge takes all of them.
    pub forms: Vec<String>,
    /// The prefixes that it lies below.
    pub prefixes: Vec<String>,
    /// Who may purge at the site.
    pub access: Reason,
}
