//! Invalidations that hold after a restart, where stores do.
//!
//! In: numbers, URLs and groups. Out: notes in the journals of the stores, and at the next start the same again. What is
//! removed under a URL is each store's own affair, which knows what it has; what has to be validated, and a group
//! (RFC 9875), is a predicate. So its note says the URL's base, or scheme, authority and name: hashes and tags are the process's
//! own. The counter goes on above every number that a store knows.
//! A note that is too long, or that cannot be read again, stands for more than it named: too much is asked of the origin
//! then.

use std::sync::Arc;
use std::time::Duration;

use larder_http::time::{Now, WallTime};
use larder_store::store::Written;
use larder_store::{Note, Store};
use tokio::task::JoinHandle;

use super::counter::Invalidations;
use super::kind::Noted;
use super::kinds::KINDS;
use super::{base, periods, purged};
use crate::fleet::Placing;

/// How long the answer to an unsafe request waits until what it has invalidated is written down. A file system that takes longer
/// than that keeps nobody waiting.
const WRITTEN_TIME: Duration = Duration::from_secs(1);

/// What was invalidated, on its way to where it outlives the process.
#[derive(Default)]
pub(crate) struct Writing {
    stores: Vec<Written>,
    /// Purges that the answer has asked for.
    purging: Option<JoinHandle<()>>,
    /// The entry of a fleet's log, which holds where the responses outlive this process at a server.
    placing: Option<Placing>,
}

impl Writing {
    pub(crate) fn of(stores: &[Arc<Store>]) -> Self {
        Self { stores: stores.iter().map(|store| store.written()).collect(), ..Self::default() }
    }

    /// Of purges alone.
    pub(crate) fn of_purge(purging: JoinHandle<()>) -> Self {
        Self::default().with_purge(Some(purging))
    }

    /// The same, and these purges.
    pub(crate) fn with_purge(self, purging: Option<JoinHandle<()>>) -> Self {
        Self { purging, ..self }
    }

    /// The same, and this place in a fleet's log.
    pub(crate) fn with_placing(self, placing: Option<Placing>) -> Self {
        Self { placing, ..self }
    }

    /// Waits for it, within a bound.
    pub(crate) async fn wait(self) {
        let all = async {
            if let Some(purging) = self.purging {
                // One that is lost was told of.
                let _ = purging.await;
            }
            for written in self.stores {
                written.wait().await;
            }
            if let Some(placing) = self.placing {
                placing.await;
            }
        };
        // Later it is written all the same; and until then it is remembered.
        let _ = tokio::time::timeout(WRITTEN_TIME, all).await;
    }
}

/// Takes over what a disk or a directory of files knows of which `last` is the highest number, and that has missed nothing, or what
/// it missed is known: numbers go on above it, and its notes hold. Gives a number above all that it knows.
pub(crate) fn readmit(invalidations: &Invalidations, last: u64, notes: Vec<Note>, now: Now) -> u64 {
    let number =
        invalidations.continue_after(last.saturating_add(1)).unwrap_or_else(|| invalidations.current());
    take_over(invalidations, notes, now);
    number
}

/// The same for a disk that was absent until now, of which `last` is the highest number: a number above all that it knows.
/// `None` where something was invalidated since larder started, of which it has not heard: it may hold just that, under a number
/// that is higher by chance.
pub(crate) fn admit(invalidations: &Invalidations, last: u64, notes: Vec<Note>, now: Now) -> Option<u64> {
    let number = invalidations.continue_after(last.saturating_add(1))?;
    take_over(invalidations, notes, now);
    Some(number)
}

fn take_over(invalidations: &Invalidations, notes: Vec<Note>, now: Now) {
    let mut taken_over = invalidations.taken_over.lock();
    *taken_over += 1;
    for Note { number, moment, what } in notes {
        // Ahead of the clock, or before there were moments: nobody knows how long ago that was.
        let at = Some(moment).filter(|moment| *moment > 0).and_then(|moment| now.at_wall(WallTime(moment)));
        let since = at.map(|at| at.monotonic);
        match noted(&what) {
            Noted::Base(hash, effect) => invalidations.restore_base(hash, effect.since(since), number),
            Noted::Name(name, effect) => invalidations.restore_name(name, effect.since(since), number),
            Noted::Purge(predicate) => invalidations.restore(&predicate, since, number),
            Noted::Periods => {}
            Noted::All => invalidations.restore_all(number),
        }
    }
}

/// Which of these notes have a meaning still: stock of a journal that has lost notes up to the number `lost`, or none.
/// A note whose predicate was dropped to make room is kept, since a journal has more of it; one whose predicate has retired is not.
/// `of_periods` is what every journal says of those.
pub(crate) fn needed(
    invalidations: &Invalidations,
    (notes, lost): (Vec<Note>, u64),
    of_periods: Option<Note>,
) -> Vec<Note> {
    invalidations.predicates.note_lost(lost);
    let forgotten = invalidations.predicates.forgotten();
    let means_something = |note: &Note| match noted(&note.what) {
        // URLs are bounded, and their notes bear them out.
        Noted::Base(..) => true,
        Noted::Name(name, _) => invalidations.predicates.keeps(name, None, note.number),
        Noted::Purge(predicate) => invalidations.keeps(&predicate, note.number),
        Noted::Periods => false,
        Noted::All => invalidations.predicates.keeps_all(note.number),
    };
    // Nothing with so high a number was forgotten. That is known without reading the note, which takes long: a pattern is compiled for it.
    let is_needed = |note: &Note| note.number > forgotten || means_something(note);
    // One of periods is made anew, with the number of now: it must not be the oldest where there is no room.
    let is_of_periods = |note: &Note| periods::is_note(&note.what);
    let needed = notes.into_iter().filter(|note| !is_of_periods(note) && is_needed(note));
    needed.chain(of_periods).collect()
}

/// What a note names. One that no kind knows stands for everything.
fn noted(what: &[u8]) -> Noted {
    let readers =
        [periods::read, base::read, purged::read].into_iter().chain(KINDS.iter().map(|kind| kind.read));
    readers.map(|read| read(what)).find_map(std::convert::identity).unwrap_or(Noted::All)
}

#[cfg(test)]
mod tests {
    use larder_cache::Verdict;
    use larder_cache::groups::{GroupTag, GroupTags};
    use larder_files::{FileStore, FilesSettings};
    use larder_http::time::Clock;
    use larder_store::CacheKey;

    use super::super::base::of_base;
    use super::super::effects::How;
    use super::super::groups::of_group;
    use super::super::kind::{Effect, Noted};
    use super::super::purged::note_of;
    use super::*;

    #[test]
    fn a_directory_of_files_remembers_which_groups_went() {
        let folder = std::env::temp_dir().join(format!("larder-durable-{}", std::process::id()));
        let open = || FileStore::open(&FilesSettings::new(&folder, 1 << 20)).expect("a store");
        let (head, now) = (crate::testing::request("/"), Clock::default().now());
        let tags = |name| GroupTags::from_iter([GroupTag::named(head.scheme, &head.authority, name)]);
        let files = open();
        files.note(&of_group((head.scheme, &head.authority, "g"), 7, How::Remove, now.wall));
        files.close();
        drop(files);
        let (files, invalidations) = (open(), Invalidations::default());
        let number = readmit(&invalidations, files.last_number(), files.notes(), now);
        assert!(number > 7 && invalidations.current() == number);
        assert_eq!(
            [6, 7].map(|number| invalidations.predicates.of_groups(&tags("g"), number)),
            [Verdict::Gone, Verdict::Good]
        );
        assert_eq!(invalidations.predicates.of_groups(&tags("other"), 0), Verdict::Good);
        files.close();
        std::fs::remove_dir_all(&folder).expect("its own folder");
    }

    const HOUR: u64 = 3_600_000;

    #[test]
    fn what_was_noted_comes_back_with_its_moment() {
        let (head, now) = (crate::testing::request("/"), Clock::default().now());
        let group = (head.scheme, &head.authority, "a b");
        let an_hour_ago = WallTime(now.wall.0 - HOUR);
        let removed = of_group(group, 3, How::Remove, an_hour_ago);
        let invalidated = of_group(group, 4, How::Validate(None), an_hour_ago);
        let invalidations = Invalidations::default();
        take_over(&invalidations, vec![removed, invalidated, of_base(b"example.org/a", 5, an_hour_ago)], now);
        let tags = GroupTags::from_iter([GroupTag::named(head.scheme, &head.authority, "a b")]);
        let since = now.monotonic.saturating_sub(Duration::from_millis(HOUR)).as_millis();
        let since = u64::try_from(since).ok().map(Duration::from_millis);
        let invalid = Verdict::Invalid { since };
        let of_groups = [2, 3, 4].map(|number| invalidations.predicates.of_groups(&tags, number));
        assert_eq!(of_groups, [Verdict::Gone, invalid, Verdict::Good]);
        let (key, plain) = (CacheKey::new("example.org", "/a"), crate::testing::stored_head("/a", &[]));
        assert_eq!(invalidations.verdict_of(&key, &plain, 4), invalid);
        assert_eq!(invalidations.verdict_of(&key, &plain, 5), Verdict::Good);
        assert_eq!(invalidations.verdict_of(&CacheKey::new("example.org", "/b"), &plain, 0), Verdict::Good);
    }

    #[test]
    fn a_moment_ahead_of_the_clock_is_not_known() {
        let now = Clock::default().now();
        for moment in [0, now.wall.0 + HOUR] {
            let invalidations = Invalidations::default();
            take_over(&invalidations, vec![of_base(b"a/", 5, WallTime(moment))], now);
            let plain = crate::testing::stored_head("/", &[]);
            let verdict = invalidations.verdict_of(&CacheKey::new("a", "/"), &plain, 0);
            assert_eq!(verdict, Verdict::Invalid { since: None }, "{moment}");
        }
    }

    #[test]
    fn what_cannot_be_read_stands_for_more() {
        let any = || Noted::Name(GroupTag::any().hash(), Effect::Remove);
        for group in [&b"G"[..], b"g", b"ghttp\0", b"vftp\0a\0b\0", b"ghttp\0a b\0c\0"] {
            assert_eq!(noted(group), any(), "{}", group.escape_ascii());
        }
        for other in [&b""[..], b"x", b"Gg", b"\0", b"p", b"p\xff"] {
            assert_eq!(noted(other), Noted::All, "{}", other.escape_ascii());
        }
        let invalidations = Invalidations::default();
        take_over(
            &invalidations,
            vec![Note { number: 5, moment: 0, what: b"x".to_vec() }],
            Clock::default().now(),
        );
        let verdict = |number| {
            invalidations.verdict_of(&CacheKey::new("a", "/"), &crate::testing::stored_head("/", &[]), number)
        };
        assert_eq!([verdict(4), verdict(5)], [Verdict::Unproven, Verdict::Good]);
    }

    #[test]
    fn a_purge_comes_back_with_its_scope_and_moment() {
        use larder_cache::purge::{Mode, Predicate, Scope, What};
        use std::sync::Arc;
        let now = Clock::default().now();
        let an_hour_ago = WallTime(now.wall.0 - HOUR);
        let scope = Arc::new(Scope::of_sites([("a.org", true)], false));
        let of = |what, mode| Predicate { what, scope: Arc::clone(&scope), mode };
        let purges = [
            of(What::Tag(b"t".as_slice().into()), Mode::Soft),
            of(What::Prefix("/img/".into()), Mode::Hard),
            of(What::Url { authority: "a.org".into(), target: "/soft".into() }, Mode::Soft),
        ];
        let notes = purges.iter().zip(5..).map(|(purge, number)| note_of(purge, number, an_hour_ago));
        let invalidations = Invalidations::default();
        take_over(&invalidations, notes.collect(), now);
        let verdict = |host: &str, target: &'static str, fields: &[(&'static str, &str)]| {
            let head = crate::testing::stored_head(target, fields);
            invalidations.verdict_of(&CacheKey::new(host, target), &head, 4)
        };
        // Moments are kept in milliseconds.
        let since = now.monotonic - Duration::from_millis(HOUR);
        let since = Some(Duration::from_millis(since.as_millis() as u64));
        let tagged = [("surrogate-key", "s t")];
        assert_eq!(verdict("a.org:8080", "/", &tagged), Verdict::Soft { since });
        assert_eq!(verdict("b.org", "/", &tagged), Verdict::Good, "beyond its scope");
        assert_eq!(verdict("a.org", "/img/x", &[]), Verdict::Gone);
        assert_eq!(verdict("a.org", "/img", &[]), Verdict::Good);
        assert_eq!(verdict("a.org", "/soft", &[]), Verdict::Soft { since });
    }

    #[test]
    fn a_disk_that_was_absent_is_believed_as_long_as_nothing_was_invalidated() {
        let (head, now) = (crate::testing::request("/"), Clock::default().now());
        let invalidations = Invalidations::default();
        let noted = vec![of_group((head.scheme, &head.authority, "a"), 41, How::Remove, now.wall)];
        assert_eq!(admit(&invalidations, 41, noted, now), Some(42));
        let tags = GroupTags::from_iter([GroupTag::named(head.scheme, &head.authority, "a")]);
        assert_eq!(
            [40, 41].map(|n| invalidations.predicates.of_groups(&tags, n)),
            [Verdict::Gone, Verdict::Good]
        );
        // Two of them, one after the other.
        assert_eq!(admit(&invalidations, 12, Vec::new(), now), Some(42));
        let how = How::Validate(None);
        assert_eq!(invalidations.invalidate_groups((&tags, how), &GroupTags::default(), 0), (43, true));
        assert_eq!(admit(&invalidations, 99, Vec::new(), now), None);
    }
}
