//! Why a test of the public suite is not passed, or a question answered in this way and not in the other.
//!
//! In: nothing; this is the table that people wrote. Out: the reasons that the page prints. What is not passed,
//! and every question not answered with yes, must have one, and a reason must speak of the outcome that is there: both
//! are checked, so that nothing fails unexplained and no excuse outlives its test.

use super::score::{Outcome, Outcomes, Package};

/// One decision.
pub(crate) struct Reason {
    pub(crate) outcome: Outcome,
    pub(crate) tests: &'static [&'static str],
    /// Markdown, one paragraph.
    pub(crate) why: &'static str,
}

const fn reason(outcome: Outcome, tests: &'static [&'static str], why: &'static str) -> Reason {
    Reason { outcome, tests, why }
}

/// Every decision.
pub(crate) const REASONS: &[Reason] = &[
    // Required
    reason(
        Outcome::Fail,
        &[
            "age-parse-nonnumeric",
            "age-parse-negative",
            "age-parse-float",
            "age-parse-prefix-twoline",
            "age-parse-dup-0",
            "age-parse-dup-0-twoline",
            "age-parse-dup-old",
        ],
        "The package holds an older state of the suite; RFC 9111 5.1 says the opposite: the first of several `Age` values is used, \
         and a value that is not a non-negative integer is ignored. The suite has since turned these seven expectations round, \
         under the same names, and larder does what they ask for now.",
    ),
    reason(
        Outcome::Fail,
        &[
            "stale-close-must-revalidate",
            "stale-close-proxy-revalidate",
            "stale-close-no-cache",
            "stale-close-s-maxage=2",
        ],
        "Cannot be passed as the package has it: the origin closes the connection without a byte, and yet a field that \
         only the origin can write is demanded of the answer. larder does what the tests mean: it answers 502 and does \
         not serve what it has. None of the caches in the package passes any of them, and the suite has since been repaired.",
    ),
    reason(
        Outcome::Retry,
        &["304-etag-update-response-ETag"],
        "A 304 with a strong tag that no stored response has must not be used to update one (RFC 9111 4.3.4); larder asks \
         again without a condition. The suite has since made this a question.",
    ),
    // Optimal
    reason(
        Outcome::OptionalFail,
        &["conditional-lm-fresh-no-lm"],
        "Without `Last-Modified` the date to compare with is `Date` (RFC 9111 4.3.2), and that is newer than what the \
         client has: a 304 would tell a client that a copy of 50 minutes ago is the current one.",
    ),
    reason(
        Outcome::OptionalFail,
        &["vary-normalise-lang-select"],
        "`Accept-Language: en, de` and `fr;q=0.5, de;q=1.0` do not mean the same, which is what RFC 9111 4.1 asks for. To \
         reuse the response because its `Content-Language` is the language preferred is a choice that only the site can \
         make: `language_selection` makes it.",
    ),
    // Questions
    reason(
        Outcome::No,
        &[
            "freshness-max-age-decimal-zero",
            "freshness-max-age-decimal-five",
            "freshness-max-age-a100",
            "freshness-max-age-100a",
        ],
        "A lifetime that is not an integer is none: the response is stale (RFC 9111 4.2.1).",
    ),
    reason(
        Outcome::No,
        &[
            "freshness-max-age-two-stale-fresh-sameline",
            "freshness-max-age-two-fresh-stale-sameline",
            "freshness-max-age-two-stale-fresh-sepline",
            "freshness-max-age-two-fresh-stale-sepline",
        ],
        "Of two lifetimes the shorter holds, in either order, on one line or two (RFC 9111 4.2.1 allows it).",
    ),
    reason(
        Outcome::No,
        &["freshness-expires-32bit", "freshness-expires-far-future", "freshness-expires-invalid-no-comma"],
        "The dates lack the comma, so they are none (RFC 9110 5.6.7). With the comma, years until 9999 are understood.",
    ),
    reason(
        Outcome::No,
        &[
            "freshness-expires-invalid-utc",
            "freshness-expires-invalid-aest",
            "freshness-expires-invalid-2-digit-year",
            "freshness-expires-invalid-multiple-spaces",
            "freshness-expires-invalid-date-dashes",
            "freshness-expires-invalid-time-periods",
            "freshness-expires-invalid-1-digit-hour",
            "freshness-expires-invalid-multiple-lines",
        ],
        "Three layouts are dates (RFC 9110 5.6.7); anything else is in the past (RFC 9111 5.3). Letter case and a weekday \
         that does not fit are forgiven.",
    ),
    reason(
        Outcome::No,
        &["stale-503"],
        "The origin answered, so its answer is passed on, unless the stored response or the rule says `stale-if-error`.",
    ),
    reason(
        Outcome::No,
        &["stale-warning-become"],
        "`Warning` is obsolete (RFC 9111 5.5); `Cache-Status` tells.",
    ),
    reason(
        Outcome::SetupFail,
        &["stale-warning-stored"],
        "A response that never was fresh may be somebody's own page: it is kept to be validated, and not served when the origin \
         is dead.",
    ),
    reason(
        Outcome::No,
        &["heuristic-delta-5", "heuristic-delta-10", "heuristic-delta-30"],
        "A tenth of the time since `Last-Modified` (RFC 9111 4.2.2), and the test asks after three seconds.",
    ),
    reason(
        Outcome::No,
        &[
            "ccreq-magreaterage",
            "ccreq-min-fresh",
            "ccreq-min-fresh-age",
            "ccreq-no-cache",
            "ccreq-no-cache-lm",
            "ccreq-no-cache-etag",
        ],
        "A client's wish for something newer costs one validation for all who wish it, and none while the response came or \
         was validated less than a second ago, as here: the tests ask twice at once. \
         `request_directives = \"honour\"` takes every wish at its word.",
    ),
    reason(
        Outcome::No,
        &["ccreq-max-stale", "ccreq-max-stale-age"],
        "Stale is served where the origin or the operator allows it, not where a client asks for it. \
         `request_directives = \"honour\"` changes that.",
    ),
    reason(
        Outcome::No,
        &["ccreq-no-store"],
        "`no-store` in a request does not forbid an answer from what is stored already (RFC 9111 5.2.1.5).",
    ),
    reason(
        Outcome::No,
        &["conditional-etag-strong-respond-obs-text"],
        "The suite's origin sends the tag in UTF-8 and its client returns it in Latin-1: the bytes differ.",
    ),
    reason(
        Outcome::No,
        &["conditional-etag-quoted-respond-unquoted", "conditional-etag-unquoted-respond-quoted"],
        "A tag is compared byte for byte, and its quotes are part of it.",
    ),
    reason(
        Outcome::No,
        &["conditional-etag-strong-generate-unquoted"],
        "A tag is sent as it came, not repaired: the origin compares it with its own.",
    ),
    reason(
        Outcome::No,
        &["conditional-etag-forward"],
        "A miss that may be stored is fetched whole, for all who wait; the client's condition is answered from what arrives.",
    ),
    reason(
        Outcome::DependencyFail,
        &["conditional-etag-forward-unquoted"],
        "As before: the condition is not forwarded, with quotes or without.",
    ),
    reason(
        Outcome::No,
        &["head-200-retain"],
        "The answer to a HEAD that went to the origin is the origin's, not mixed with what is stored.",
    ),
    reason(
        Outcome::SetupFail,
        &["head-410-update"],
        "Only a 200 to HEAD updates what is stored (RFC 9111 4.3.5), and the 410 itself is passed on.",
    ),
    // Apart
    reason(
        Outcome::No,
        &["surrogate-remove-header"],
        "`Surrogate-Control` is meant for larder and is not passed on.",
    ),
];

/// The reason for the outcome of a test, if one was written.
pub(crate) fn of(id: &str) -> Option<&'static Reason> {
    REASONS.iter().find(|reason| reason.tests.contains(&id))
}

/// Tests without the reason they need, and reasons without the outcome they speak of.
pub(crate) fn breaches(package: &Package, outcomes: &Outcomes) -> Vec<String> {
    let outcome = |id: &str| outcomes.get(id).copied().unwrap_or(Outcome::Untested);
    let unexplained = package
        .tests()
        .filter(|test| !outcome(&test.id).is_good() && of(&test.id).is_none())
        .map(|test| format!("{}: {} without a reason in reasons.rs", test.id, outcome(&test.id)));
    let stale = REASONS.iter().flat_map(|reason| reason.tests.iter().map(move |id| (*id, reason.outcome)));
    let stale = stale
        .filter(|(id, spoken_of)| outcome(id) != *spoken_of)
        .map(|(id, spoken_of)| format!("{id}: {}, and its reason speaks of {spoken_of}", outcome(id)));
    unexplained.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_one_reason_at_most() {
        let mut ids: Vec<_> = REASONS.iter().flat_map(|reason| reason.tests).collect();
        ids.sort();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
