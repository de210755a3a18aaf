//! What an explanation says of purges, as rows of its text.
//!
//! In: the purge that ended a response, and what one of the URL would take. Out: rows. The state of a response stands with the
//! response; this says since when, and by whom.

use larder_proxy::explain::{ExplainedPurge, ExplainedResponse, Explanation};

use super::columns::Columns;
use super::phrases::{cited, span};
use crate::cli::table::{bytes, counted};

/// Tags of a response that are shown.
const TAGS_MAX: usize = 32;

/// What concerns one response.
pub(super) fn of_response(out: &mut Columns, response: &ExplainedResponse) {
    if response.every_tag {
        out.row("  tags", "more than are kept: a purge of any tag takes it");
    }
    if !response.tags.is_empty() {
        let mut told = response.tags.iter().take(TAGS_MAX).cloned().collect::<Vec<_>>().join(", ");
        let more = response.tags.len().saturating_sub(TAGS_MAX);
        if more > 0 {
            told += &format!(", and {more} more: --json shows all of them");
        }
        out.row("  tags", &told);
    }
    if let Some(ago) = response.invalidated_seconds {
        let word = if response.soft { "  soft since" } else { "  invalid since" };
        out.row(word, &format!("{} ago", span(ago)));
    }
    if let Some(purge) = &response.purge {
        out.row("  purged by", &purged(purge));
    }
}

/// What concerns the URL.
pub(super) fn of_url(out: &mut Columns, of: &Explanation) {
    let Some(outlook) = &of.purge else { return };
    out.part("Purges of it");
    if let Some(last) = &of.stored.last_purge {
        out.row("last", &purged(last));
    }
    let mut takes = match outlook.responses {
        0 => "a purge of the URL would find nothing".to_owned(),
        responses => format!(
            "a purge of the URL would take {}, {}",
            counted(responses, "response", "responses"),
            bytes(outlook.bytes)
        ),
    };
    if outlook.forms.len() > 1 {
        takes += &format!(", under {}", outlook.forms.join(" and "));
    }
    out.row("would take", &takes);
    out.row("prefixes", &outlook.prefixes.join(", "));
    out.row("who may", &cited(&outlook.access));
}

fn purged(of: &ExplainedPurge) -> String {
    let ExplainedPurge { id, age_seconds, mode, what, dialect, by, .. } = of;
    let peer = of.peer.as_deref().unwrap_or("larder itself");
    format!("{id}, {} ago: {what}, {mode}; by {peer} ({dialect}, {by})", span(*age_seconds))
}
