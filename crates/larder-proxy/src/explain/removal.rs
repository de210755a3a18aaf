//! What takes a stored response out, replaces it, or makes larder ask the origin about it.

use larder_cache::is_safe;
use larder_cache::policy::Wishes;

use super::{Decision, ExplainedFreshness, OriginAnswer, Reason, StaleUse, Stored, Walk};
use crate::detail::BY_HAND;
use crate::key;
use crate::settings::Invalidate;

/// What the end of its lifetime means for the response that the request selects.
fn expiry(stored: &Stored, decision: &Decision) -> String {
    let Some(selected) = stored.responses.iter().find(|response| response.selected) else {
        return "Once stale it will be validated: a 304 will make it fresh, any other answer replace it."
            .to_owned();
    };
    let ExplainedFreshness { ttl_seconds, left_seconds, .. } = &selected.freshness;
    if *left_seconds <= 0.0 {
        return "It is stale already; a 304 will make it fresh, any other answer replace it.".to_owned();
    }
    let is_behind = |of: &&StaleUse| of.cause == "while-revalidate" && of.allowed;
    let behind = decision.stale_use.iter().find(is_behind).and_then(|of| of.window.as_ref());
    let then = match behind {
        Some(window) => format!(
            "for {} s it will still be used, and refreshed behind; later it will be validated first",
            window.seconds
        ),
        None => "it will be validated before it is used".to_owned(),
    };
    match ttl_seconds {
        0 => format!("In less than a second it will be stale: then {then}."),
        seconds => format!("In {seconds} s it will be stale: then {then}."),
    }
}

impl Walk<'_> {
    /// What ends or renews what is stored under the request's key, or would be if its answer were stored.
    pub(super) fn removal(
        &self,
        stored: &Stored,
        decision: &Decision,
        origin: Option<&OriginAnswer>,
    ) -> Vec<Reason> {
        let would_be = origin.and_then(|origin| origin.judgement.as_ref()).is_some_and(|told| told.stored);
        let mut told = Vec::new();
        if decision.reason.token == BY_HAND {
            let sentence = "Removing or changing the file will, and larder rm; no request and no eviction.";
            return vec![Reason::new(BY_HAND, sentence, super::CONFIGURATION)];
        }
        if stored.responses.is_empty() && !would_be {
            return told;
        }
        let forms = self.site.forms(&self.head().target, key::normalise);
        told.push(Reason::new(
            "unsafe-method",
            format!(
                "A POST, PUT, PATCH, DELETE or other unsafe request to {} that is answered 2xx or 3xx will invalidate \
                 everything under that URL{}: as `invalidate` of its rule says, that will be validated before it is used \
                 again, or removed, or left as it is.",
                self.head().target,
                if forms.len() > 1 { ", in each form in which a rule may key it" } else { "" },
            ),
            "RFC 9111 4.4",
        ));
        told.push(Reason::new(
            "location",
            "So will one to another URL of this host whose answer names this one in Location or Content-Location.",
            "RFC 9111 4.4",
        ));
        let groups: Vec<&str> =
            stored.responses.iter().flat_map(|response| &response.groups).map(String::as_str).collect();
        if !groups.is_empty() {
            let names = groups.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
            told.push(Reason::new(
                "cache-group",
                format!("So will an answer to one that has Cache-Group-Invalidation with one of {names}."),
                "RFC 9875 3",
            ));
        }
        told.push(Reason::new("expiry", expiry(stored, decision), "RFC 9111 4.2, 4.3.4"));
        told.extend(self.by_wish());
        told.push(Reason::new(
            "eviction",
            "It will be evicted when its store needs the room.",
            super::CONFIGURATION,
        ));
        told
    }

    /// What a client's `no-cache` does.
    fn by_wish(&self) -> Option<Reason> {
        let sentence = match self.settings.policy.request_directives {
            Wishes::Guarded => {
                "A client's no-cache, max-age or min-fresh will remove nothing: it will cause one validation, unless \
                 the last was less than a second ago."
            }
            Wishes::Honour => {
                "A client's no-cache, max-age or min-fresh will remove nothing: it will cause a validation."
            }
            Wishes::Ignore => return None,
        };
        Some(Reason::new("request-directives", sentence, "RFC 9111 5.2.1"))
    }

    /// What the request itself takes out, where it is an unsafe one.
    pub(super) fn removed_by_it(&self) -> Vec<Reason> {
        let head = self.head();
        if is_safe(&head.method) {
            return Vec::new();
        }
        let Some(mode) = self.settings.invalidate else {
            let sentence = "It will invalidate nothing: its rule says invalidate = \"off\".";
            return vec![Reason::new("unsafe-method", sentence, super::CONFIGURATION)];
        };
        let what = format!(
            "everything under {}, and under what Location and Content-Location of the answer name at this host",
            head.target
        );
        let sentence = match mode {
            Invalidate::Validate => {
                format!(
                    "Answered 2xx or 3xx, it will invalidate {what}: that will be validated before it is used again."
                )
            }
            Invalidate::Remove => format!("Answered 2xx or 3xx, it will remove {what}."),
        };
        vec![Reason::new("unsafe-method", sentence, "RFC 9111 4.4")]
    }
}
