//! What purges have done to what is stored under a key, and what one of its URL would do.
//!
//! In: the last purges, and what lies under the key. Out: values for people. Whether a response is soft or gone is the verdict's to
//! say, which every look-up asks for; this only finds the purge that brought it about. [`concerns`] compares names as look-ups do.
//! Of a purge with very many names the first 256 are known here.

use std::sync::{Arc, Weak};

use larder_cache::StoredHead;
use larder_cache::purge::{Predicate, What, tags};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_store::{CacheKey, Store};

use super::purged::{ExplainedPurge, PurgeOutlook};
use super::reason::CONFIGURATION;
use super::{Reason, Walk, seconds, visible};
use crate::invalidation::concerns;
use crate::purges::access::Access;
use crate::purges::{Record, text_of};
use crate::worker::Worker;

/// Paths above a response that are told.
const PREFIXES_MAX: usize = 32;

impl Worker {
    /// The last purge that names what lies under `key`, and ended after number `since`.
    fn last_purge(
        &self,
        key: &CacheKey,
        heads: &[Option<&StoredHead>],
        since: u64,
    ) -> Option<ExplainedPurge> {
        let now = self.proxy.clock.now();
        let names_it = |predicate: &&Predicate| {
            heads.iter().any(|head| concerns(predicate, key, *head)) || self.is_of_form(predicate, key)
        };
        let records = self.proxy.purges.audit.all();
        let later = records.iter().filter(|record| *record.numbers.end() > since);
        let mut naming = later.filter_map(|record| Some((record, record.first.iter().find(names_it)?)));
        naming.next().map(|(record, predicate)| told(record, predicate, now))
    }

    /// Whether a predicate is a URL that rules key in another form, and this is one of these.
    fn is_of_form(&self, predicate: &Predicate, key: &CacheKey) -> bool {
        let What::Url { authority, target } = &predicate.what else { return false };
        let path = target.split('?').next().unwrap_or_default();
        let is_near = key
            .base()
            .strip_prefix(authority.as_bytes())
            .is_some_and(|rest| rest.starts_with(path.as_bytes()));
        let has_base = |form: &Target| CacheKey::new(authority, form.as_str()).hash() == key.hash();
        is_near && self.named_forms(authority, target).iter().any(has_base)
    }
}

fn told(record: &Record, predicate: &Predicate, now: Now) -> ExplainedPurge {
    let entry = record.receipt(None);
    let age = std::time::Duration::from_millis(now.wall.0.saturating_sub(entry.at_ms));
    ExplainedPurge {
        age_seconds: seconds(age),
        kind: predicate.what.kind().token().to_owned(),
        what: visible(text_of(std::slice::from_ref(predicate)).as_bytes()),
        id: entry.id,
        at_ms: entry.at_ms,
        mode: entry.mode,
        dialect: entry.dialect,
        peer: entry.peer,
        by: entry.by,
    }
}

/// The tags of a response, each escaped; and whether it came with more than are kept.
pub(super) fn tags_of(head: &StoredHead) -> (Vec<String>, bool) {
    let Some(of) = head.tags.as_deref() else { return (Vec::new(), false) };
    let text = of.text(&head.all_fields());
    (tags::split(&text).map(visible).collect(), of.carries_every())
}

impl Walk<'_> {
    /// The last purge that ended a stored response.
    pub(super) fn purge_that_ended(
        &self,
        key: &CacheKey,
        stored: &larder_store::StoredResponse,
    ) -> Option<ExplainedPurge> {
        self.worker.last_purge(key, &[Some(&stored.head)], stored.number)
    }

    /// The last purge that named the URL, or one of the responses under it.
    pub(super) fn last_purge<'a>(
        &self,
        key: &CacheKey,
        responses: impl Iterator<Item = &'a larder_store::StoredResponse>,
    ) -> Option<ExplainedPurge> {
        let heads: Vec<_> =
            std::iter::once(None).chain(responses.map(|stored| Some(&*stored.head))).collect();
        self.worker.last_purge(key, &heads, 0)
    }

    /// What a purge of the URL, as it was asked for, would take now.
    pub(super) async fn purge_outlook(&self, raw: &Target) -> Option<PurgeOutlook> {
        if !self.running {
            return None;
        }
        let (head, now) = (self.head(), self.now);
        let forms = self.worker.forms(&head.authority, raw);
        let keys: Vec<_> =
            forms.iter().map(|form| CacheKey::new(head.authority.as_str(), form.as_str())).collect();
        let proxy = Arc::clone(&self.worker.proxy);
        let stores: Vec<_> = proxy.reach.stores().iter().filter_map(Weak::upgrade).collect();
        let counted = tokio::task::spawn_blocking(move || {
            let is_of_use = |listed: &larder_store::listing::ListedResponse| {
                let verdict = proxy.invalidations.verdict_of(&listed.key, &listed.head, listed.number);
                verdict.is_of_use(listed.head.validators.etag.is_some())
            };
            let under = |store: &Arc<Store>, key: &CacheKey| {
                store.under(key, now).into_iter().filter(is_of_use).collect::<Vec<_>>()
            };
            let all = keys.iter().flat_map(|key| stores.iter().flat_map(move |store| under(store, key)));
            all.fold((0, 0), |(responses, bytes), listed| (responses + 1, bytes + listed.body_bytes))
        });
        let (responses, bytes) = counted.await.ok()?;
        let path = head.target.canonical_path().unwrap_or_default();
        let ends = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
        let prefixes = ends.take(PREFIXES_MAX).filter_map(|(at, _)| path.get(..=at));
        Some(PurgeOutlook {
            responses,
            bytes,
            forms: forms.iter().map(|form| visible(form.as_str().as_bytes())).collect(),
            prefixes: prefixes.map(|prefix| visible(prefix.as_bytes())).collect(),
            access: access(&self.site.settings.purge),
        })
    }
}

/// Who may purge at a site.
fn access(of: &Access) -> Reason {
    let (token, sentence) = match of {
        Access::Closed => (
            "closed",
            "No request may purge here: purge in the site says who may. larder purge at the admin address may.".to_owned(),
        ),
        Access::Pass => ("pass", "Requests that purge go to the origin; larder purge at the admin address purges here.".to_owned()),
        Access::Open(rules) => {
            let secret = match (rules.token.is_some(), &rules.header) {
                (true, None) => Some("with the token".to_owned()),
                (true, Some((name, _))) => Some(format!("with the token, or with {}", name)),
                (false, Some((name, _))) => Some(format!("with {}", name)),
                (false, None) => None,
            };
            let from = rules.from.is_some().then(|| "from an address in from".to_owned());
            let how = [secret, from].into_iter().flatten().collect::<Vec<_>>().join(" and ");
            let soft = if rules.soft { "; every purge is soft" } else { "" };
            ("open", format!("A request {how} may purge here{soft}."))
        }
    };
    Reason::new(token, sentence, CONFIGURATION)
}
