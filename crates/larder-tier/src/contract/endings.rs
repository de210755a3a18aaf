//! What is taken out of a tier, or is not to be used again.

use super::life::{Life, Page, Past, within};
use super::subject::Subject;
use crate::note::Note;

pub(super) fn a_base_without_anything_is_invalidated_without_harm<S: Subject>(life: &Life<'_, S>) {
    let (key, tier) = (life.key("/none"), &life.tier);
    assert_eq!(tier.take_out(&key, 1), 0);
    tier.write_journals();
    tier.invalidate_behind(&key, 1, false);
    tier.remove(&key, 7);
    tier.forget(&key, 7);
    assert!(!tier.has(&key) && tier.folders_of(&key, 7).is_empty() && !tier.lists(&key, 7));
    assert_eq!(tier.take_event("store"), None);
}

pub(super) async fn what_is_forgotten_is_gone<S: Subject>(life: &Life<'_, S>, past: &mut Past) {
    let page = life.page(past, "/forgotten", 1000);
    life.put(&page).await;
    let candidates = life.candidates(&page.key).await;
    assert!(candidates.iter().all(|candidate| candidate.is_held()));
    let other = another(life, past, &page).await;
    life.tier.forget(&page.key, page.identity);
    life.check(&page, life.find(&page).await.as_ref(), false);
    assert!(candidates.iter().all(|candidate| !candidate.is_held()));
    ends(life, past, page, other).await;

    let page = life.page(past, "/useless", 1000);
    life.put(&page).await;
    if !life.tier.is_before_memory() {
        // A copy that is written a moment later is another candidate.
        assert!(life.tier.settle());
        life.candidates(&page.key).await.iter().for_each(|candidate| candidate.forget());
        life.check(&page, life.find(&page).await.as_ref(), false);
    }
    life.tier.forget(&page.key, page.identity);
    ends(life, past, page, None).await;
}

pub(super) async fn what_is_discarded_is_gone<S: Subject>(life: &Life<'_, S>, past: &mut Past) {
    let page = life.page(past, "/discarded", 1000);
    life.put(&page).await;
    let other = another(life, past, &page).await;
    life.tier.discard(&page.key, &|_| false);
    life.check(&page, life.find(&page).await.as_ref(), true);
    life.tier.remove(&page.key, page.identity);
    life.tier.write_journals();
    life.tier.discard(&page.key, &|_| true);
    ends(life, past, page, other).await;
}

/// Another response under the same key, where the tier keeps several apart.
async fn another<S: Subject>(life: &Life<'_, S>, past: &mut Past, page: &Page) -> Option<Page> {
    if life.tier.is_before_memory() {
        return None;
    }
    let other = Page { key: page.key.clone(), ..life.page(past, "", 1500) };
    life.put(&other).await;
    life.check(page, life.find(page).await.as_ref(), true);
    Some(other)
}

/// `page` is gone, and what else there was under its key is not.
async fn ends<S: Subject>(life: &Life<'_, S>, past: &mut Past, page: Page, other: Option<Page>) {
    life.check(&page, life.find(&page).await.as_ref(), false);
    past.gone.push(page);
    if let Some(other) = other {
        life.check(&other, life.find(&other).await.as_ref(), true);
        past.kept.push(other);
    }
}

pub(super) async fn an_invalidation_takes_every_variant_and_nothing_else<S: Subject>(
    life: &Life<'_, S>,
    past: &mut Past,
) {
    let (page, beside) = (life.page(past, "/invalidated", 1000), life.page(past, "/beside", 1000));
    let mut all = vec![life.page(past, "/invalidated", 3000)];
    all[0].identity = page.identity;
    let mut varied = page.key.clone();
    varied.push_part(b"de");
    if life.tier.takes(&varied, Some(&life.subject.head(1))) {
        all.push(Page { key: varied, ..life.page(past, "", 2000) });
    }
    for page in all.iter().chain([&beside]) {
        life.put(page).await;
    }
    let number = past.next_number();
    let taken_out = life.tier.take_out(&page.key, number);
    let mut left = 0;
    for page in &all {
        left += usize::from(life.find(page).await.is_some());
    }
    assert_eq!(taken_out, (all.len() - left) as u64);
    life.tier.write_journals();
    life.tier.invalidate_behind(&page.key, number, false);
    for page in &all {
        life.check(page, life.find(page).await.as_ref(), false);
    }
    life.check(&beside, life.find(&beside).await.as_ref(), true);
    // What was fetched after that is kept.
    let page = Page { number, ..page };
    life.put(&page).await;
    past.gone.extend(all.drain(1..));
    past.kept.extend([page, beside]);
}

pub(super) async fn a_purge_takes_what_lies_apart_as_well<S: Subject>(life: &Life<'_, S>, past: &mut Past) {
    let (stored, apart) = (life.page(past, "/purged", 1000), life.page(past, "/apart", 1000));
    life.put(&stored).await;
    let is_apart = life.subject.put_apart(&apart.uri(), &apart.content());
    assert_eq!(life.tier.has_apart(&apart.uri()), is_apart);
    if is_apart {
        let found = life.find(&apart).await.expect("others have put it there");
        assert!(found.body == apart.content());
    }
    for (page, was_apart) in [(&stored, None), (&apart, Some(is_apart))] {
        let number = past.next_number();
        life.tier.take_out(&page.key, number);
        life.tier.write_journals();
        life.tier.invalidate_behind(&page.key, number, true);
        if was_apart.is_none() {
            life.check(page, life.find(page).await.as_ref(), false);
        }
        let purged = life.tier.purge(&page.uri()).expect("nothing keeps it from that");
        assert!(was_apart.is_none_or(|was_apart| was_apart == purged), "{page:?}: {purged}");
        within(life.tier.sync()).await.expect("nothing keeps it from that");
        life.check(page, life.find(page).await.as_ref(), false);
        assert!(!life.tier.has_apart(&page.uri()), "{page:?}");
        assert!(!life.tier.purge(&page.uri()).expect("nothing keeps it from that"), "{page:?}");
    }
    past.gone.extend([stored, apart]);
}

pub(super) async fn what_is_noted_is_written<S: Subject>(life: &Life<'_, S>, past: &mut Past) {
    let page = life.page(past, "/noted", 1000);
    life.put(&page).await;
    let mut note = |moment, what: &str| {
        let what = format!("{what} {}", life.turn).into_bytes();
        Note { number: past.next_number(), moment, what }
    };
    let (of_all, of_base) = (note(1_700_000_000_000, "all"), note(0, "base"));
    life.tier.note(&of_all);
    life.tier.note_base(&page.key, &of_base);
    within(life.tier.written().wait()).await;
    within(life.tier.sync()).await.expect("nothing keeps it from that");
    assert!(!life.tier.is_behind());
    past.notes.push(of_all);
    past.noted_bases.push((of_base, page));
}

/// A note of everything comes back when the tier is opened. Of a base, the note comes back, or what lay there does not.
pub(super) async fn what_was_noted_is_told<S: Subject>(life: &Life<'_, S>, past: &Past) {
    for note in &past.notes {
        assert!(life.told.contains(note), "{note:?} is not among {:?}", life.told);
    }
    for (note, page) in &past.noted_bases {
        let is_told = life.told.contains(note);
        assert!(is_told || life.find(page).await.is_none(), "{note:?} is not among {:?}", life.told);
    }
}
