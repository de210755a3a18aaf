//! The fleet that this larder purges together with, as the proxy asks it.
//!
//! In: a member of a fleet ([`Membership`]). Out: whether stored responses may be used without asking the origin; purges as the entry of
//! a log, and back; and what has become of them, for receipts.
//! An entry has the notes of its predicates as journals have them. A note that this version cannot read stands for everything.
//! Deliberately absent: the protocol (`larder-fleet`), the server that members share, and what is done with a purge.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use larder_cache::purge::{Mode, Predicate, Scope, What, written};
use larder_fleet::{EntryId, MemberState, SharedPurge};
use serde::{Deserialize, Serialize};

/// The first byte of an entry. Another one: it is for everything.
const PURGE: u8 = 1;
/// The same for what an unsafe request has invalidated (RFC 9111 4.4): nobody is told of it.
const INVALIDATION: u8 = 2;
/// The longest entry. A purge with more predicates has several.
const ENTRY_BYTES_MAX: usize = 64 << 10;

/// A member of a fleet.
pub trait Membership: Send + Sync + 'static {
    /// Whether stored responses may be used without asking the origin.
    fn may_use(&self) -> bool;

    /// Something is about to be purged here, under a number above this one, which is the last at this moment.
    fn announce(&self, number: u64) -> Box<dyn OwnPurge>;

    /// What has become of it, and whether it is complete. `None`: it is, and nothing more is remembered.
    fn receipt(&self, id: EntryId) -> Option<(SharedPurge, bool)>;

    /// Waits until it is complete, for so long at most.
    fn wait(&self, id: EntryId, limit: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// How long a purge waits for the other members.
    fn patience(&self) -> Duration;
}

/// A purge of this larder. To be kept until it is in force here and all its entries are shared.
pub trait OwnPurge: Send + Sync {
    /// Shares an entry that is in force here. `None` where that cannot be done.
    fn share(&self, what: Arc<[u8]>) -> Option<EntryId>;

    /// Shares something without a receipt.
    fn tell(&self, what: Arc<[u8]>) -> Option<Placing>;
}

/// Ends when an entry lies in the log, which outlives this process, or the log cannot be had. It is free to be dropped.
pub type Placing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A purge in the fleet.
#[derive(Clone, Debug)]
pub(crate) enum Sharing {
    /// Under these names.
    Shared(Vec<EntryId>),
    /// Too many purges are not complete.
    Full,
}

/// How the fleet stands to a purge, for people and for the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetReceipt {
    /// No member uses anything any more that the purge names and that was fetched before it.
    pub complete: bool,
    /// The purge lies where all members read it.
    pub shared: bool,
    /// Whether all members are known. Not for the time of a lease after the fleet's log began anew.
    pub knows_all: bool,
    /// The other members, by name.
    pub members: Vec<MemberReceipt>,
}

/// How a member stands to a purge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberReceipt {
    /// Its name.
    pub name: String,
    /// `applied`; `away` where it has left or has no lease; `silent` where it may use old responses.
    pub state: String,
    /// How many seconds a silent one may use old responses; null where there is no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
}

const APPLIED: &str = "applied";
const AWAY: &str = "away";
const SILENT: &str = "silent";

impl FleetReceipt {
    /// Why it is not complete, in words; `None` where it is.
    pub fn why(&self) -> Option<String> {
        if self.complete {
            return None;
        }
        let silent: Vec<String> =
            self.members.iter().filter(|member| member.state == SILENT).map(of_silent).collect();
        Some(match (self.shared, self.knows_all) {
            _ if !silent.is_empty() && self.shared => silent.join(", "),
            (false, _) => "not shared: the fleet's log cannot be had at the moment".to_owned(),
            (true, false) => {
                "the fleet's log has begun anew, and members of the former one may be left until a lease is over".to_owned()
            }
            (true, true) => "not confirmed yet".to_owned(),
        })
    }

    /// The others that have applied it, by name.
    pub fn applied(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.state == APPLIED).map(|member| member.name.as_str())
    }

    pub(crate) fn of(receipt: &SharedPurge, complete: bool) -> Self {
        let mut members: Vec<MemberReceipt> = Vec::new();
        for (name, standing) in &receipt.members {
            let (state, left_s) = match standing {
                MemberState::Applied => (APPLIED, None),
                MemberState::Away => (AWAY, None),
                MemberState::Silent { left } => (SILENT, left.map(|left| left.as_secs_f64())),
            };
            // A former run of a member that is there again.
            let is_former = |other: &MemberReceipt| *other.name == **name && other.state == AWAY;
            members.retain(|other| !is_former(other));
            if state != AWAY || members.iter().all(|other| *other.name != **name) {
                members.push(MemberReceipt { name: name.to_string(), state: state.to_owned(), left_s });
            }
        }
        members.sort_by(|one, other| one.name.cmp(&other.name));
        Self { complete, shared: receipt.is_shared, knows_all: receipt.knows_all, members }
    }

    /// It was not shared at all.
    pub(crate) fn not_shared() -> Self {
        Self { complete: false, shared: false, knows_all: false, members: Vec::new() }
    }
}

fn of_silent(member: &MemberReceipt) -> String {
    let name = &member.name;
    match member.left_s {
        Some(left) => format!("{name} is silent and may use old responses for {left:.0} s more"),
        None => format!("{name} is silent and may use old responses until it is back"),
    }
}

/// What an entry of the log is.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A purge.
    Purge(Vec<Predicate>),
    /// What an unsafe request has invalidated.
    Invalidation(Vec<Predicate>),
}

/// The entries of a purge: its predicates' notes, as many in each as fit.
pub(crate) fn entries(predicates: &[Predicate]) -> Vec<Arc<[u8]>> {
    of_kind(PURGE, predicates)
}

/// The entries of what an unsafe request to `authority` has invalidated. Other larders remove it: what they have is no better than
/// what was invalidated here.
pub(crate) fn entries_of_unsafe<'a>(
    authority: &str,
    targets: impl Iterator<Item = &'a str>,
    groups: impl Iterator<Item = What>,
) -> Vec<Arc<[u8]>> {
    let of_url = |target: &str| What::Url { authority: authority.into(), target: target.into() };
    let scope = Arc::new(Scope::any());
    let predicate = |what| Predicate { what, scope: Arc::clone(&scope), mode: Mode::Hard };
    let predicates: Vec<Predicate> = targets.map(of_url).chain(groups).map(predicate).collect();
    if predicates.is_empty() { Vec::new() } else { of_kind(INVALIDATION, &predicates) }
}

fn of_kind(kind: u8, predicates: &[Predicate]) -> Vec<Arc<[u8]>> {
    let (mut entries, mut entry) = (Vec::new(), vec![kind]);
    for predicate in predicates {
        let note = written::to_note(predicate);
        if entry.len() > 1 && entry.len() + 4 + note.len() > ENTRY_BYTES_MAX {
            entries.push(Arc::from(std::mem::replace(&mut entry, vec![kind])));
        }
        // A note is at most 16 KiB.
        entry.extend_from_slice(&u32::try_from(note.len()).unwrap_or(u32::MAX).to_be_bytes());
        entry.extend_from_slice(&note);
    }
    entries.push(Arc::from(entry));
    entries
}

/// What an entry says. What cannot be read is a purge of everything.
pub(crate) fn read(entry: &[u8]) -> Entry {
    match entry.split_first() {
        Some((&PURGE, notes)) => Entry::Purge(predicates(notes)),
        Some((&INVALIDATION, notes)) => Entry::Invalidation(predicates(notes)),
        _ => Entry::Purge(vec![everything()]),
    }
}

fn predicates(mut rest: &[u8]) -> Vec<Predicate> {
    let mut predicates = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((note, behind)) = behind.split_at_checked(length) else { return vec![everything()] };
        predicates.push(written::from_note(note).unwrap_or_else(everything));
        rest = behind;
    }
    if !rest.is_empty() || predicates.is_empty() {
        return vec![everything()];
    }
    predicates
}

fn everything() -> Predicate {
    Predicate { what: What::All, scope: Arc::new(Scope::any()), mode: Mode::Hard }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tag(name: &str, mode: Mode) -> Predicate {
        let scope = Arc::new(Scope::of_sites([("a.org", true), ("b.org", false)], false));
        Predicate { what: What::Tag(name.as_bytes().into()), scope, mode }
    }

    fn text(predicates: &[Predicate]) -> Vec<String> {
        predicates.iter().map(|predicate| format!("{predicate:?}")).collect()
    }

    #[test]
    fn a_purge_comes_back_from_its_entries_whole_and_in_order() {
        let names: Vec<String> = (0..40).map(|number| number.to_string().repeat(2000)).collect();
        let mut all: Vec<_> = names.iter().map(|name| tag(name, Mode::Hard)).collect();
        all.push(tag("soft", Mode::Soft));
        all.push(Predicate {
            what: What::Url { authority: "a.org".into(), target: "/x?y".into() },
            ..tag("", Mode::Soft)
        });
        let entries = entries(&all);
        assert!(entries.len() > 1 && entries.iter().all(|entry| entry.len() <= ENTRY_BYTES_MAX));
        let read: Vec<_> = entries.iter().flat_map(|entry| of_purge(entry)).collect();
        assert_eq!(text(&read), text(&all));
    }

    fn of_purge(entry: &[u8]) -> Vec<Predicate> {
        match read(entry) {
            Entry::Purge(predicates) => predicates,
            other @ Entry::Invalidation(_) => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_an_unsafe_request_invalidates_is_removed_elsewhere() {
        let entries = entries_of_unsafe("a.org", ["/x", "/y"].into_iter(), std::iter::empty());
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        let Entry::Invalidation(read) = read(entry) else { panic!("{entry:?}") };
        let of = |target: &str| What::Url { authority: "a.org".into(), target: target.into() };
        assert!(read.iter().all(|predicate| predicate.mode == Mode::Hard && predicate.scope.is_any()));
        let said: Vec<_> = read.iter().map(|predicate| format!("{:?}", predicate.what)).collect();
        assert_eq!(said, [format!("{:?}", of("/x")), format!("{:?}", of("/y"))]);
        assert!(entries_of_unsafe("a.org", std::iter::empty(), std::iter::empty()).is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_everything() {
        let good = entries(&[tag("a", Mode::Hard)]).remove(0);
        let all = text(&[everything()]);
        assert_eq!(text(&of_purge(&good)), text(&[tag("a", Mode::Hard)]));
        for entry in
            [&[][..], &[9], &[PURGE], &[PURGE, 0, 0], &good[..good.len() - 1], &[&good[..], &[0]].concat()]
        {
            assert_eq!(text(&of_purge(entry)), all, "{entry:?}");
        }
        let newer = [&[PURGE, 0, 0, 0, 3][..], b"zzz"].concat();
        assert_eq!(text(&of_purge(&newer)), all);
    }

    #[test]
    fn a_receipt_says_who_is_silent_and_for_how_long() {
        let named = |name: &str, standing| (Arc::from(name), standing);
        let receipt = SharedPurge {
            id: EntryId(1),
            is_shared: true,
            knows_all: true,
            members: vec![
                named("web-3", MemberState::Silent { left: Some(Duration::from_secs(588)) }),
                named("web-2", MemberState::Away),
                named("web-2", MemberState::Applied),
                named("web-4", MemberState::Away),
            ],
        };
        let told = FleetReceipt::of(&receipt, false);
        let states: Vec<_> =
            told.members.iter().map(|member| (member.name.as_str(), member.state.as_str())).collect();
        assert_eq!(states, [("web-2", APPLIED), ("web-3", SILENT), ("web-4", AWAY)]);
        assert_eq!(told.why().as_deref(), Some("web-3 is silent and may use old responses for 588 s more"));
        assert_eq!(FleetReceipt::of(&receipt, true).why(), None);
        assert!(FleetReceipt::not_shared().why().unwrap().starts_with("not shared"));
        let unknown = SharedPurge { knows_all: false, members: Vec::new(), ..receipt };
        assert!(FleetReceipt::of(&unknown, false).why().unwrap().contains("anew"));
    }
}
