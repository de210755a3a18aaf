//! What is put into a tier is found there, also after a restart.

use super::life::{Life, Page, Past};
use super::subject::Subject;
use crate::fill::CHUNK_BYTES;

pub(super) async fn what_is_put_is_found<S: Subject>(life: &Life<'_, S>, past: &mut Past) {
    for (number, length) in [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 7].into_iter().enumerate() {
        let page = life.page(past, &format!("/put/{number}"), length);
        life.check(&page, life.find(&page).await.as_ref(), false);
        life.put(&page).await;
        assert!(life.tier.has_base(&page.key), "{page:?}");
        past.kept.push(page);
    }
    for (number, length) in [CHUNK_BYTES + 1, 3 * CHUNK_BYTES].into_iter().enumerate() {
        let page = life.page(past, &format!("/filled/{number}"), length);
        life.fill(&page).await;
        past.kept.push(page);
    }
}

pub(super) async fn what_has_the_same_identity_is_replaced<S: Subject>(life: &Life<'_, S>, past: &mut Past) {
    for (number, lengths) in
        [(2000, 1000), (CHUNK_BYTES + 1, 1000), (1000, CHUNK_BYTES + 1)].iter().enumerate()
    {
        let old = life.page(past, &format!("/replaced/{number}"), lengths.0);
        life.put(&old).await;
        let new = Page { mark: old.mark ^ 0x80, length: lengths.1, ..old };
        life.put(&new).await;
        past.kept.push(new);
    }
}

/// What the lives before have stored and not taken out is all there, and nothing else.
pub(super) async fn what_was_there_is_there_again<S: Subject>(life: &Life<'_, S>, past: &Past) {
    for (pages, is_there) in [(&past.kept, true), (&past.gone, false)] {
        for page in pages {
            life.check(page, life.find(page).await.as_ref(), is_there);
        }
    }
}

pub(super) async fn nothing_is_used_that_is_not_believed<S: Subject>(life: &Life<'_, S>, past: &Past) {
    assert!(!past.kept.is_empty());
    for page in &past.kept {
        life.check(page, life.find(page).await.as_ref(), false);
    }
}
