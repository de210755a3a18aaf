//! A plain file that answers a request, in a store that keeps such.
//!
//! In: a request and what the file system has for its URL. Out: the same as from memory: a stored response, whose body may
//! be the file. What larder stored has the fields and times of its fetch; what a person put there is fresh for as long as it
//! lies there. A rule with further parts in its key has no file that could tell them apart.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_store::store::Looked;
use larder_store::{Store, StoredResponse};
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
    match may_answer(rule, request) {
        true => filed(store.look(request, &rule.policy, now)),
        false => FileLookup::Absent,
    }
}

/// The same on the runtime's pool. A file that cannot be had in time counts as absent.
pub(super) async fn look_waiting(
    rule: &RuleSettings,
    store: &Arc<Store>,
    request: &RequestHead,
    now: Now,
) -> FileLookup {
    if !may_answer(rule, request) {
        return FileLookup::Absent;
    }
    let (looking, asked, policy) = (Arc::clone(store), request.clone(), rule.policy.clone());
    // Dropped, a look that has not begun never begins.
    let mut looks = JoinSet::new();
    looks.spawn_blocking(move || looking.look_waiting(&asked, &policy, now));
    match tokio::time::timeout(WAIT_MAX, looks.join_next()).await {
        Ok(Some(Ok(looked))) => filed(looked),
        Ok(_) | Err(_) => FileLookup::Absent,
    }
}

/// The file that would be looked at for a request, and where it lies; for whoever explains. May wait for a disk.
pub(crate) async fn file_of(
    rule: &RuleSettings,
    store: &Arc<Store>,
    request: &RequestHead,
    now: Now,
) -> Option<(Arc<StoredResponse>, PathBuf)> {
    if !may_answer(rule, request) {
        return None;
    }
    let (looking, asked, policy) = (Arc::clone(store), request.clone(), rule.policy.clone());
    let look = move || looking.look_for_people(&asked, &policy, now);
    tokio::task::spawn_blocking(look).await.ok()?
}

fn filed(looked: Looked) -> FileLookup {
    match looked {
        Looked::Found(stored) if stored.body.is_by_hand() => FileLookup::ByHand(stored),
        Looked::Found(stored) => FileLookup::Found(stored),
        Looked::Absent => FileLookup::Absent,
        Looked::WouldWait => FileLookup::WouldWait,
    }
}
