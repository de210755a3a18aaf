//! A plain file that answers a request, in a store that keeps such.
//!
//! In: a request and what the file system has for its URL. Out: the same as from memory: a stored response, whose body may
//! be the file. What larder stored has the fields and times of its fetch; what a person put there is fresh for as long as it
//! lies there. A rule with further parts in its key has no file that could tell them apart.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use larder_cache::{Freshness, StoredHead};
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_store::files::{FileHit, Look, Source, TargetUri, freshness_by_hand};
use larder_store::{Store, StoredBody, StoredResponse};
use tokio::task::JoinSet;

use crate::settings::RuleSettings;

/// How long a request waits for a file before it asks the origin instead: as long as for a disk.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What the file system says.
pub(super) enum FileLookup {
    /// This answers, if it is fresh.
    Found(Arc<StoredResponse>),
    /// The same, put there by hand.
    ByHand(Arc<StoredResponse>),
    /// There is none.
    Absent,
    /// Only a look that waits can tell.
    WouldWait,
}

/// Whether a file could answer this request.
fn may_answer(rule: &RuleSettings, request: &RequestHead) -> bool {
    let is_get = matches!(request.method, Method::GET | Method::HEAD);
    is_get && rule.key.cookies.is_empty() && rule.key.fields.is_empty()
}

/// Asks the file system, without waiting.
pub(super) fn look(rule: &RuleSettings, store: &Store, request: &RequestHead, now: Now) -> FileLookup {
    let Some(files) = store.files().filter(|_| may_answer(rule, request)) else { return FileLookup::Absent };
    match files.look_to_send(&TargetUri::of(request)) {
        Look::Found(hit) => filed(rule, store, request, &hit, now),
        Look::Absent => FileLookup::Absent,
        Look::WouldBlock => FileLookup::WouldWait,
    }
}

/// The same on the runtime's pool. A file that cannot be had in time counts as absent.
pub(super) async fn look_waiting(
    rule: &RuleSettings,
    store: &Store,
    request: &RequestHead,
    now: Now,
) -> FileLookup {
    let Some(files) = store.files().filter(|_| may_answer(rule, request)) else { return FileLookup::Absent };
    let (looking, asked) = (Arc::clone(files), request.clone());
    // Dropped, a look that has not begun never begins.
    let mut looks = JoinSet::new();
    looks.spawn_blocking(move || looking.look_blocking(&TargetUri::of(&asked)));
    match tokio::time::timeout(WAIT_MAX, looks.join_next()).await {
        Ok(Some(Ok(Some(hit)))) => filed(rule, store, request, &hit, now),
        Ok(_) | Err(_) => FileLookup::Absent,
    }
}

/// The file that would be looked at for a request, and where it lies; for whoever explains. May wait for a disk.
pub(crate) async fn file_of(
    rule: &RuleSettings,
    store: &Store,
    request: &RequestHead,
    now: Now,
) -> Option<(Arc<StoredResponse>, PathBuf)> {
    let files = store.files().filter(|_| may_answer(rule, request))?;
    let (looking, asked) = (Arc::clone(files), request.clone());
    let look = move || looking.look_blocking(&TargetUri::of(&asked));
    let hit = tokio::task::spawn_blocking(look).await.ok()??;
    let path = files.directory().join(OsStr::from_bytes(hit.path()));
    match filed(rule, store, request, &hit, now) {
        FileLookup::Found(stored) | FileLookup::ByHand(stored) => Some((stored, path)),
        FileLookup::Absent | FileLookup::WouldWait => None,
    }
}

fn filed(
    rule: &RuleSettings,
    store: &Store,
    request: &RequestHead,
    hit: &Arc<FileHit>,
    now: Now,
) -> FileLookup {
    // Nothing of it is counted with memory; an empty reservation is always to be had.
    let Some(room) = store.reserve_free(0) else { return FileLookup::Absent };
    let stored = |body: StoredBody| {
        let (number, took, freshness) = match hit.source() {
            Source::Stored(meta) => (meta.number, meta.took, meta.times.freshness(now)),
            Source::ByHand(_) => (0, Duration::ZERO, freshness_by_hand(now)),
        };
        let head = head(rule, request, hit, freshness);
        StoredResponse { took, ..StoredResponse::new(Arc::new(head), Arc::new(body), number, room) }
    };
    let stored = hit.stored(stored);
    match hit.source() {
        Source::Stored(_) => FileLookup::Found(stored),
        Source::ByHand(_) => FileLookup::ByHand(stored),
    }
}

fn head(rule: &RuleSettings, request: &RequestHead, hit: &FileHit, freshness: Freshness) -> StoredHead {
    let head = StoredHead::new(request, StatusCode::OK, hit.fields().clone(), freshness, &rule.policy);
    let (mut caution, mut relieved) = (head.caution, head.relieved);
    if let Source::Stored(meta) = hit.source() {
        caution.older_rules = meta.older && freshness.source.is_assumed();
        relieved = meta.relieved.clone().and(&relieved);
    }
    // A file is the same for everybody: what varies by more than the coding of plain content is not stored as one.
    StoredHead { vary: Default::default(), caution, relieved, ..head }
}
