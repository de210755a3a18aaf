//! Changes to the fields of a request or a response on its way.

use http::{HeaderName, HeaderValue};

use crate::schema::Consistent;
use crate::schema::section::section;

section! {
    /// Changes to fields: of the request before the cache looks at it, or of the response on its way to the client. First
    /// fields are removed, then set.
    pub struct FieldEdits in "`request` and `response`" {
        /// Fields and the one value that each shall have, in place of all that it had.
        set: Vec<(HeaderName, HeaderValue)>, why "Messages go on as they came.";
        /// Fields to take out.
        remove: Vec<HeaderName>, why "Messages go on as they came.";
    }
}

impl Consistent for FieldEdits {}

impl FieldEdits {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }
}

impl Default for FieldEdits {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
