//! Comparing a Cache-Status field (RFC 9211) with what a scenario says it is to be.
//!
//! The whole value must agree, parameter by parameter and in the same order. Since seconds round, a number may be
//! a range (`ttl=57..60`), and where a value does not matter it is `*` (`detail=*`). `absent` alone says that there
//! is no such field, `*` alone that there is one.

/// Whether `found` (the lines of the field, joined) is what `wanted` says.
pub fn agrees(wanted: &str, found: Option<&str>) -> bool {
    let Some(found) = found else {
        return wanted == "absent";
    };
    if wanted == "*" {
        return true;
    }
    let wanted: Vec<&str> = wanted.split(';').map(str::trim).collect();
    let found: Vec<&str> = found.split(';').map(str::trim).collect();
    wanted.len() == found.len() && wanted.iter().zip(&found).all(|(wanted, found)| parameter(wanted, found))
}

fn parameter(wanted: &str, found: &str) -> bool {
    match (wanted.split_once('='), found.split_once('=')) {
        (Some((name, value)), Some((found_name, found_value))) if name == found_name => {
            value == "*" || value == found_value || within(value, found_value)
        }
        _ => wanted == found,
    }
}

/// Whether `found` is a number within `range`, written `a..b` with both ends included.
pub fn within(range: &str, found: &str) -> bool {
    let Some((first, last)) = range.split_once("..") else {
        return false;
    };
    match (first.parse::<i64>(), last.parse::<i64>(), found.parse::<i64>()) {
        (Ok(first), Ok(last), Ok(found)) => (first..=last).contains(&found),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, found: &str, agree: bool) {
        assert_eq!(agrees(wanted, Some(found)), agree, "{wanted} / {found}");
    }

    #[test]
    fn every_parameter_counts_in_its_order() {
        check("larder; hit; ttl=57", "larder; hit; ttl=57", true);
        check("larder; hit; ttl=57", "larder;hit;ttl=57", true);
        check("larder; hit; ttl=57", "larder; hit", false);
        check("larder; hit", "larder; hit; ttl=57", false);
        check("larder; stored; fwd=miss", "larder; fwd=miss; stored", false);
        check("larder; hit", "other; hit, larder; hit", false);
    }

    #[test]
    fn numbers_may_be_ranges_and_values_may_be_anything() {
        check("larder; hit; ttl=57..60", "larder; hit; ttl=58", true);
        check("larder; hit; ttl=57..60", "larder; hit; ttl=61", false);
        check("larder; hit; ttl=-3..0", "larder; hit; ttl=-2", true);
        check("larder; fwd=miss; detail=*", "larder; fwd=miss; detail=dead", true);
        check("larder; fwd=miss; detail=*", "larder; fwd=miss", false);
        check("*", "anything", true);
    }

    #[test]
    fn absence_is_said_in_words() {
        assert!(agrees("absent", None));
        assert!(!agrees("*", None));
        assert!(!agrees("absent", Some("larder; hit")));
    }
}
