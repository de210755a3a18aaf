//! What the index has for a request, and whether it may be used.
//!
//! In: key and request. Out: a stored response that may be used as it is, or what stands in the way, in RFC 9211's
//! words. Whole responses come first; parts of one (206) lie under a key of their own, which is looked at only where no
//! whole one is selected. A look-up never waits; all judgement is `larder-cache`'s.

mod ask;
mod file;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use larder_cache::completion::answer_part;
use larder_cache::part::Gap;
use larder_cache::stale::FAILURE_MEMORY;
use larder_cache::{
    CachePolicy, Reuse, Selecting, StaleCause, StaleReason, StoredHead, ValidateReason, VaryNames, Verdict,
};
use larder_http::fields::cache_status::{Forward, HitSource};
use larder_http::fields::range::RangeField;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_store::streaming::are_whole_pieces;
use larder_store::{CacheKey, Held, HotCache, Recalled, RefreshFailure, Selection, Store, StoredResponse};
use smallvec::SmallVec;

use crate::invalidation::{self, Forgotten, Judge};
use crate::settings::RuleSettings;
use file::FileLookup;
pub(crate) use file::file_of;

/// Responses that were invalidated without being looked for, taken out in one look-up.
const GONE_MAX: usize = 64;
/// How often a look that waits begins anew because purges went meanwhile that were in force when it began. They go every few seconds at most.
const RECALLS_MAX: usize = 2;

/// What was found.
#[derive(Debug)]
pub(crate) enum LookupResult {
    /// May be used as it is.
    Fresh { stored: Held, age: Duration, ttl: Duration },
    /// May be used at once on this ground, while it is refreshed behind (RFC 5861 3).
    Refresh { stored: Held, age: Duration, ttl_seconds: i64, ground: StaleReason },
    /// The origin has to be asked.
    Miss(Miss),
}

impl LookupResult {
    /// Whether a look that does not wait finds `stored` usable, or cannot see where it lies.
    pub(crate) fn has(&self, stored: &Arc<StoredResponse>) -> bool {
        match self {
            Self::Fresh { stored: found, .. } | Self::Refresh { stored: found, .. } => is_one(found, stored),
            Self::Miss(miss) => miss.may_recall && miss.selected.is_none(),
        }
    }

    /// What may be used at once, or could be, had nothing invalidated it.
    fn usable(&self) -> Option<&Arc<StoredResponse>> {
        match self {
            Self::Fresh { stored, .. } | Self::Refresh { stored, .. } => Some(stored),
            Self::Miss(miss) => miss.selected.as_ref().filter(|_| miss.invalidated.is_some()),
        }
    }
}

/// Why the origin has to be asked, and what may help.
#[derive(Debug)]
pub(crate) struct Miss {
    pub(crate) forward: Forward,
    /// The response that would be used, were it fresh.
    pub(crate) selected: Option<Arc<StoredResponse>>,
    /// Responses of other requests to the same key; the origin may confirm one of those that
    /// [suit](Self::others_offered) this one.
    pub(crate) others: SmallVec<[Arc<StoredResponse>; 4]>,
    /// A part of what is asked, and what of it is missing.
    pub(crate) part: Option<(Arc<StoredResponse>, Gap)>,
    /// Queueing is no use: what comes is for this client alone.
    pub(crate) alone: bool,
    /// Why the selected response is asked about, where that is because something has invalidated it.
    pub(crate) invalidated: Option<ValidateReason>,
    /// There is a mark: lately nothing that could be shared came for this key.
    pub(crate) marked: bool,
    /// A disk may have what memory has not, or another program's memory.
    pub(crate) may_recall: bool,
    /// The latter is asked before anything else is done: others may have put something there.
    pub(crate) asks_first: bool,
    /// How far predicates had been forgotten before the look.
    pub(crate) since: Forgotten,
}

impl Miss {
    fn new(forward: Forward) -> Self {
        Self {
            forward,
            selected: None,
            others: SmallVec::new(),
            part: None,
            alone: false,
            invalidated: None,
            marked: false,
            may_recall: false,
            asks_first: false,
            since: Forgotten::default(),
        }
    }

    /// What was found lay on a disk, and went with its segment a moment later.
    pub(crate) fn gone() -> Self {
        Self::new(Forward::Miss)
    }

    /// The same look in further stores: the first that has what may be used, or one that the request selects at least, goes
    /// before this one, which goes before all that have nothing.
    pub(crate) fn or_else_in(self, further: impl Iterator<Item = LookupResult>) -> LookupResult {
        let mut best = self;
        for found in further {
            match found {
                LookupResult::Miss(miss) => {
                    let may_recall = best.may_recall || miss.may_recall;
                    let asks_first = best.asks_first || miss.asks_first;
                    let has_more =
                        |miss: &Self| (miss.selected.is_some(), miss.part.is_some(), !miss.others.is_empty());
                    if has_more(&miss) > has_more(&best) {
                        best = miss;
                    }
                    (best.may_recall, best.asks_first) = (may_recall, asks_first);
                }
                usable => return usable,
            }
        }
        LookupResult::Miss(best)
    }

    /// Whether a HEAD that nobody else's reasons keep to itself is fetched with GET: nothing is stored for its URL. Where
    /// something else is, the HEAD says what has become of that at less cost.
    pub(crate) fn fetches_with_get(&self, request: &RequestHead, rule: &RuleSettings) -> bool {
        let is_nothing_there = self.forward == Forward::UriMiss && !self.marked;
        request.method == Method::HEAD && rule.fetches_heads && is_nothing_there
    }

    /// Those of the others whose validators may be offered: the codings of their content suit the request, and they were
    /// not made for another asker.
    pub(crate) fn others_offered(&self, request: &HeaderMap) -> SmallVec<[Arc<StoredResponse>; 4]> {
        let may_be = |vary: &Selecting| vary.suits(request) && !vary.is_for_another_asker(request);
        self.others.iter().filter(|other| may_be(&other.head.vary)).cloned().collect()
    }

    /// The Vary of what is stored under the key, as far as it is known.
    pub(crate) fn expected(&self) -> Option<VaryNames> {
        let part = self.part.as_ref().map(|(part, _)| part);
        let newest = self.selected.as_ref().or(self.others.first()).or(part);
        newest.map(|stored| stored.head.vary.names().clone())
    }

    /// On what ground the selected response is used without asking the origin: it has failed a moment ago, or is known to
    /// be down, and nothing forbids stale use in its place. Nobody waits for an origin to fail once more.
    /// `head` is that of the selected response, as invalidations have left it.
    pub(crate) fn standing_in(
        &self,
        head: &StoredHead,
        (now, policy): (Now, &CachePolicy),
        is_origin_down: impl FnOnce() -> bool,
    ) -> Option<(&Arc<StoredResponse>, StaleReason)> {
        let stored = self.selected.as_ref().filter(|_| self.forward == Forward::Stale)?;
        let may = |cause| larder_cache::may_stand_in(head, now, cause, policy);
        let failed = match stored.refreshing.failure(now.monotonic, FAILURE_MEMORY) {
            Some(RefreshFailure::Error) => may(StaleCause::OriginError),
            Some(RefreshFailure::Dead) => may(StaleCause::OriginDead),
            None => None,
        };
        let down = || is_origin_down().then(|| may(StaleCause::OriginDead)).flatten();
        Some((stored, failed.or_else(down)?))
    }

    /// Whether a look that did not wait finds what `other` did, which may have waited: nothing has come meanwhile.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let both = |one: Option<&Arc<StoredResponse>>, other: Option<&Arc<StoredResponse>>| match (one, other)
        {
            (Some(one), Some(other)) => is_one(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if self.may_recall && self.selected.is_none() && other.selected.is_some() {
            // It lies where only a look that waits sees it.
            return true;
        }
        both(self.selected.as_ref(), other.selected.as_ref())
            && both(self.part.as_ref().map(|(part, _)| part), other.part.as_ref().map(|(part, _)| part))
            && self.forward == other.forward
            && self.alone == other.alone
    }
}

/// Whether two looks came to one and the same stored response. One that lies in a file is made anew by each look.
fn is_one(one: &Arc<StoredResponse>, other: &Arc<StoredResponse>) -> bool {
    let what = |stored: &StoredResponse| {
        let freshness = &stored.head.freshness;
        (freshness.received.wall, freshness.source, stored.took, stored.number, stored.body.length())
    };
    one.is_same(other) || what(one) == what(other)
}

/// What to look for, and where.
pub(crate) struct Lookup<'a> {
    /// Whose stores, and by whose policy.
    pub(crate) rule: &'a RuleSettings,
    /// The handles of the worker that looks; `None` for a look that is no use.
    pub(crate) hot: Option<&'a HotCache>,
    pub(crate) key: &'a CacheKey,
    pub(crate) request: &'a RequestHead,
    /// What invalidations have left of a response that is still in the index.
    pub(crate) judge: Judge<'a>,
}

impl Lookup<'_> {
    #[inline(always)]
    fn verdict(&self, stored: &StoredResponse) -> Verdict {
        self.judge.verdict(self.key, stored)
    }

    /// Looks: in the rule's own store, and where it may place responses elsewhere, there too. What it finds is used, or is all
    /// that there is.
    #[inline]
    pub(crate) fn look_up(&self, now: Now) -> LookupResult {
        self.look_up_asking(now, false)
    }

    /// The same. With `asks`, what is not fresh counts as a miss where another program's memory has to be asked first.
    #[inline(always)]
    pub(crate) fn look_up_asking(&self, now: Now, asks: bool) -> LookupResult {
        self.dated(match self.look_up_in(&self.rule.store, now, asks) {
            LookupResult::Miss(miss) if !self.rule.places.is_empty() => {
                let others = self.rule.stores().skip(1);
                miss.or_else_in(others.map(|(store, _)| self.look_up_in(store, now, asks)))
            }
            found => found,
        })
    }

    /// The same, which says since when what it holds has been found.
    #[inline(always)]
    fn dated(&self, mut found: LookupResult) -> LookupResult {
        if let LookupResult::Miss(miss) = &mut found {
            miss.since = self.judge.forgotten();
        }
        found
    }

    #[inline(always)]
    fn look_up_in(&self, store: &Store, now: Now, asks: bool) -> LookupResult {
        if !store.looks_beside() {
            return self.look_up_in_memory(store, now);
        }
        self.look_up_with_others(store, now, asks)
    }

    /// In a store that others write to as well.
    #[inline(never)]
    fn look_up_with_others(&self, store: &Store, now: Now, asks: bool) -> LookupResult {
        if store.looks_outside_first() {
            return self.look_up_beside_files(store, file::look(self.rule, store, self.request, now), now);
        }
        let found = self.look_up_in_memory(store, now);
        if asks { self.asking_first(store, found) } else { found }
    }

    /// What a person put there goes before everything; a file that larder wrote, before what is in memory, unless that is
    /// newer and on its way to be one, or has a coding that the request takes: a file is the plain form, for everybody.
    fn look_up_beside_files(&self, store: &Store, filed: FileLookup, now: Now) -> LookupResult {
        let (stored, would_wait) = match filed {
            FileLookup::ByHand(stored) => return self.judge(Held::Shared(stored), now),
            FileLookup::Found(stored) if self.is_of_use(&stored) => (Some(stored), false),
            // A purge that was in force when this look began is over: what is there still is good.
            FileLookup::Found(stored) if self.judge.is_in_doubt(stored.number) => (None, true),
            FileLookup::Found(stored) => {
                store.forget(self.key, &stored);
                (None, false)
            }
            FileLookup::Absent => (None, false),
            FileLookup::WouldWait => (None, true),
        };
        let in_memory = self.look_up_in_memory(store, now);
        // By the wall clock, which is what a file knows: within a millisecond what is in memory is the newer.
        let received = |stored: &StoredResponse| stored.head.freshness.received.wall;
        match (stored, in_memory) {
            (Some(file), found)
                if found.usable().is_none_or(|newer| {
                    received(newer) < received(&file) && !newer.head.vary.codings().has_registered()
                }) =>
            {
                self.judge_by_validity(Held::Shared(file), now)
            }
            (_, LookupResult::Miss(miss)) => {
                LookupResult::Miss(Miss { may_recall: miss.may_recall || would_wait, ..miss })
            }
            (_, found) => found,
        }
    }

    fn look_up_in_memory(&self, store: &Store, now: Now) -> LookupResult {
        let fit = |response: &StoredResponse| response.head.vary.fit(&self.request.fields);
        let is_fresh = |response: &StoredResponse| response.head.freshness.is_fresh(now);
        for _ in 0..GONE_MAX {
            let miss = match store.lookup_best(self.hot, self.key, now.monotonic, fit, is_fresh) {
                Selection::Selected(stored) => match self.verdict(&stored) {
                    Verdict::Good if stored.body.is_there() => return self.judge(stored, now),
                    verdict if verdict.is_of_use(has_entity_tag(&stored)) && stored.body.is_there() => {
                        self.disown(store, &stored, verdict);
                        return self.judge_outdated(stored, verdict, now);
                    }
                    verdict => {
                        self.disown(store, &stored, verdict);
                        store.remove_unusable(self.key, &stored, invalidation::fate(verdict));
                        continue;
                    }
                },
                Selection::HitForMiss => {
                    // A mark keeps nobody from what is there already.
                    return match self.look_for_parts(store, Miss::new(Forward::UriMiss), now) {
                        LookupResult::Miss(_) => LookupResult::Miss(Miss {
                            alone: true,
                            marked: true,
                            ..Miss::new(Forward::UriMiss)
                        }),
                        usable => usable,
                    };
                }
                Selection::Absent => Miss::new(Forward::UriMiss),
                Selection::OtherVariant => Miss::new(Forward::Miss),
                Selection::VaryMiss(mut others) => {
                    others.retain(|other| self.is_of_use(other));
                    Miss { others, ..Miss::new(Forward::VaryMiss) }
                }
            };
            return match self.look_for_parts(store, miss, now) {
                LookupResult::Miss(miss) => {
                    LookupResult::Miss(Miss { may_recall: self.may_recall(store), ..miss })
                }
                usable => usable,
            };
        }
        LookupResult::Miss(Miss { alone: true, ..Miss::new(Forward::Miss) })
    }

    fn may_recall(&self, store: &Store) -> bool {
        let is_get = self.request.method == Method::GET;
        store.has_tiers_behind()
            && (store.may_recall(self.key) || (is_get && store.may_recall(&self.key.of_parts())))
    }

    /// What the disks, files and values of the rule's stores have for this request, as far as a look that does not wait could not
    /// tell. What comes from a disk, or is a copy of a value, is in memory from then on.
    pub(crate) async fn recall(&self, now: Now) -> Option<LookupResult> {
        self.recall_from_any(now).await.map(|(found, _)| found)
    }

    /// The same, with where it came from if it is in memory now.
    pub(crate) async fn recall_from_any(&self, now: Now) -> Option<(LookupResult, HitSource)> {
        let mut found = None;
        for _ in 0..RECALLS_MAX {
            let anew = Lookup { judge: self.judge.anew(), ..*self };
            found = anew.recall_once(now).await;
            let is_usable = found.as_ref().is_some_and(|(found, _)| found.usable().is_some());
            // What a purge may have named that went while this waited was given up.
            if is_usable || !anew.judge.is_outrun() {
                break;
            }
        }
        found
    }

    async fn recall_once(&self, now: Now) -> Option<(LookupResult, HitSource)> {
        for (store, _) in self.rule.stores() {
            if store.looks_outside_first() {
                let filed = file::look_waiting(self.rule, store, self.request, now).await;
                if matches!(filed, FileLookup::Found(_) | FileLookup::ByHand(_)) {
                    let found = self.look_up_beside_files(store, filed, now);
                    // What memory has may be newer: where it lies, its body says.
                    return Some((self.dated(found), HitSource::Memory));
                }
            } else if self.recall_from(store, now).await == Recalled::Something {
                let from = if store.asks_anew() { HitSource::Remote } else { HitSource::Disk };
                return Some((Lookup { judge: self.judge.anew(), ..*self }.look_up(now), from));
            }
        }
        None
    }

    async fn recall_from(&self, store: &Store, now: Now) -> Recalled {
        if store.asks_anew() {
            return self.ask(store, now).await;
        }
        let selects = |response: &StoredResponse| {
            response.head.vary.selects(&self.request.fields) && self.is_of_use(response)
        };
        let whole = store.recall(self.key, false, now, selects).await;
        if whole != Recalled::Nothing || self.request.method != Method::GET {
            return whole;
        }
        store.recall(&self.key.of_parts(), true, now, selects).await
    }

    fn judge_by_validity(&self, stored: Held, now: Now) -> LookupResult {
        match self.verdict(&stored) {
            Verdict::Good => self.judge(stored, now),
            verdict => self.judge_outdated(stored, verdict, now),
        }
    }

    /// What a soft purge has ended is as stale as if its lifetime had ended then. What was invalidated otherwise is not used before
    /// the origin has been asked, be it fresh or within a window.
    #[cold]
    fn judge_outdated(&self, stored: Held, verdict: Verdict, now: Now) -> LookupResult {
        let why = match verdict {
            Verdict::Good | Verdict::Soft { .. } => ValidateReason::SoftPurged,
            Verdict::Invalid { .. } | Verdict::Gone => ValidateReason::Invalidated,
            Verdict::Unproven => ValidateReason::BelowFloor,
        };
        let head = match verdict {
            // The last purge of several is told, and it may have come while this request waited for a file or a disk. An earlier one
            // has ended the lifetime before that.
            Verdict::Soft { since } => {
                Cow::Owned(stored.head.invalidated(since.map(|since| since.min(now.monotonic))))
            }
            _ => Cow::Borrowed(&*stored.head),
        };
        let miss = match larder_cache::reuse(&head, self.request, now, &self.rule.policy) {
            Reuse::Unusable(reason) => Miss { alone: true, ..Miss::new(reason.forward()) },
            Reuse::Refresh { age, .. } if matches!(verdict, Verdict::Soft { .. }) => {
                let (ttl_seconds, ground) = (head.freshness.ttl_seconds(now), StaleReason::SoftPurged);
                drop(head);
                return LookupResult::Refresh { stored, age, ttl_seconds, ground };
            }
            Reuse::Fresh { age, ttl } if matches!(verdict, Verdict::Soft { .. }) => {
                // Within the client's own max-stale.
                drop(head);
                return LookupResult::Fresh { stored, age, ttl };
            }
            _ => {
                // What lives no time at all may be somebody's own: nobody waits for somebody else's.
                let alone = !stored.head.freshness.is_shareable();
                let selected = Some(Arc::clone(&stored));
                Miss { selected, alone, invalidated: Some(why), ..Miss::new(why.forward()) }
            }
        };
        LookupResult::Miss(miss)
    }

    fn is_of_use(&self, stored: &StoredResponse) -> bool {
        self.verdict(stored).is_of_use(has_entity_tag(stored))
    }

    // Inlined where hits go: what it gives back is large.
    #[inline(always)]
    fn judge(&self, stored: Held, now: Now) -> LookupResult {
        match larder_cache::reuse(&stored.head, self.request, now, &self.rule.policy) {
            Reuse::Fresh { age, ttl } => LookupResult::Fresh { stored, age, ttl },
            Reuse::Refresh { age, .. } => {
                let (ttl_seconds, ground) =
                    (stored.head.freshness.ttl_seconds(now), StaleReason::WhileRevalidate);
                LookupResult::Refresh { stored, age, ttl_seconds, ground }
            }
            Reuse::Validate(reason) => {
                // What lives no time at all may be somebody's own: nobody waits for somebody else's.
                let alone = !stored.head.freshness.is_shareable();
                LookupResult::Miss(Miss {
                    selected: Some(Arc::clone(&stored)),
                    alone,
                    ..Miss::new(reason.forward())
                })
            }
            Reuse::Unusable(reason) => {
                LookupResult::Miss(Miss { alone: true, ..Miss::new(reason.forward()) })
            }
        }
    }

    /// No whole response is selected: a part may be enough, or be completed (RFC 9111 3.3, 3.4).
    fn look_for_parts(&self, store: &Store, miss: Miss, now: Now) -> LookupResult {
        if self.request.method != Method::GET {
            return LookupResult::Miss(miss);
        }
        let is_ours =
            |part: &StoredResponse| part.head.vary.selects(&self.request.fields) && self.is_of_use(part);
        let answers = |stored: &StoredResponse| {
            let answer = |part| answer_part(self.request, &stored.head, part, stored.body.length(), now.wall);
            is_ours(stored) && stored.head.part.as_ref().and_then(answer).is_some()
        };
        let others = match store.lookup(None, &self.key.of_parts(), now.monotonic, answers) {
            Selection::Selected(part) => return self.judge_by_validity(part, now),
            Selection::VaryMiss(others) => others,
            Selection::HitForMiss | Selection::OtherVariant | Selection::Absent => {
                return LookupResult::Miss(miss);
            }
        };
        // Of one that was invalidated nobody knows what the rest belongs to.
        let is_fresh = |stored: &Arc<StoredResponse>| {
            if self.verdict(stored) != Verdict::Good {
                return false;
            }
            let reuse = larder_cache::reuse(&stored.head, self.request, now, &self.rule.policy);
            matches!(reuse, Reuse::Fresh { .. })
        };
        let mut parts = others.into_iter().filter(|part| is_ours(part) && is_fresh(part)).peekable();
        if parts.peek().is_none() {
            return LookupResult::Miss(miss);
        }
        // What a client asks a range of is forwarded as it is; only the whole is completed.
        let range = RangeField::read(&self.request.fields);
        let whole = range == RangeField::Absent || range.is_everything();
        let with_gap = |stored: Arc<StoredResponse>| {
            let gap = stored.head.part.as_ref()?.gap(stored.body.length())?;
            // What is in memory is put together with the rest as it is sent; what lies on disks is filled up there.
            let can_be_completed = match stored.body.is_in_memory() {
                true => gap.at_one_end().is_some(),
                false => can_be_filled_up(&stored),
            };
            can_be_completed.then_some((stored, gap))
        };
        let most = |(part, _): &(Arc<StoredResponse>, Gap)| part.body.length();
        let part = whole.then(|| parts.filter_map(with_gap).max_by_key(most)).flatten();
        LookupResult::Miss(Miss { forward: Forward::Partial, part, ..miss })
    }
}

/// Whether it can be validated although it is not known what has happened to it.
fn has_entity_tag(stored: &StoredResponse) -> bool {
    stored.head.validators.etag.is_some()
}

/// Whether a part that lies on disks can be filled up there.
fn can_be_filled_up(stored: &StoredResponse) -> bool {
    let Some(part) = &stored.head.part else { return false };
    let are_whole_pieces = part.complete.is_some_and(|complete| are_whole_pieces(part.runs(), complete));
    are_whole_pieces && stored.body.is_there()
}

#[cfg(test)]
mod tests;
