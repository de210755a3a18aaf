//! How long something may be used without hearing from who allows it.

use std::time::Duration;

use crate::schema::{Text, TextSetting};
use crate::value::duration;

/// The word for one without an end.
const NONE: &str = "none";
/// The shortest: a few renewals, of which there is one a second.
const LEAST: Duration = Duration::from_secs(3);
/// The longest with an end.
const MOST: Duration = Duration::from_secs(7 * 86_400);

/// A lease. `None` has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease(pub(crate) Option<Duration>);

impl TextSetting for Lease {
    const TEXT: Text = Text {
        noun: "a duration or \"none\"",
        examples: r#""10m", "3s", "none""#,
        about: "A duration from `3s` to `7d`, or `none` for no end.",
        pattern: Some("^(none|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text == NONE {
            return Ok(Self(None));
        }
        let lease = duration::parse(text)?;
        match (LEAST..=MOST).contains(&lease) {
            true => Ok(Self(Some(lease))),
            false => Err(Some("from \"3s\" to \"7d\", or \"none\"".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_an_end_or_none() {
        assert_eq!(Lease::from_text("none"), Ok(Lease(None)));
        assert_eq!(Lease::from_text("10m"), Ok(Lease(Some(Duration::from_secs(600)))));
        assert_eq!(Lease::from_text("3s"), Ok(Lease(Some(Duration::from_secs(3)))));
        for text in ["2s", "8d", "0s", ""] {
            assert!(Lease::from_text(text).is_err(), "{text}");
        }
    }
}
