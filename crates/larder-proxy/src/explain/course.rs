//! What an explanation and each part of a page have: field lines, and what happens to a request.

use serde::{Deserialize, Serialize};

/// A field line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// In lower case.
    pub name: String,
    /// What is not ASCII is escaped.
    pub value: String,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// Answered from what is stored.
    Hit,
    /// Answered from what is stored, which is refreshed behind.
    Refresh,
    /// The origin is asked whether what is stored still holds.
    Validate,
    /// The origin is asked for the rest of what is stored in part.
    Complete,
    /// The origin is asked, and its answer may be stored.
    Fetch,
    /// Passed to the origin and back.
    Pass,
    /// Answered by a static file, or a redirect to a directory of them.
    File,
    /// Refused by larder itself.
    Refuse,
}
