//! What a request or a response says of its urgency (RFC 9218 4).
//!
//! In: a field Priority, or what PRIORITY_UPDATE has in its place. Out: a [`Priority`]. What cannot be read leaves things as they were.

use http::HeaderName;

/// The field that says it.
pub(super) const PRIORITY_FIELD: HeaderName = HeaderName::from_static("priority");
/// The levels of urgency.
pub(super) const URGENCIES: usize = 8;

/// How a stream is served beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Priority {
    /// From 0, the most urgent, to 7.
    pub(super) urgency: u8,
    /// Whether the client has a use for a part: then such streams take turns.
    pub(super) incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// The same with what `field` says, a dictionary (RFC 9651 3.2) of which two keys are known.
    pub(super) fn with(mut self, field: &[u8]) -> Self {
        for member in field.split(|octet| *octet == b',') {
            let member = member.trim_ascii();
            // Parameters mean nothing here.
            let member = member.split(|octet| *octet == b';').next().unwrap_or_default().trim_ascii_end();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => self.urgency = digit - b'0',
                b"i" | b"i=?1" => self.incremental = true,
                b"i=?0" => self.incremental = false,
                _ => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_are_read_and_the_rest_is_passed_over() {
        let of = |text: &str| {
            let Priority { urgency, incremental } = Priority::default().with(text.as_bytes());
            (urgency, incremental)
        };
        for (text, expected) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=7, i", (7, true)),
            ("i=?1,u=1", (1, true)),
            ("u=1;x=2 ,\ti=?0", (1, false)),
            ("u=8", (3, false)),
            ("u=-1, u=22, i=1", (3, false)),
            ("x, u=5, y=\"u=6\"", (5, false)),
            ("u=2, u=4", (4, false)),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
