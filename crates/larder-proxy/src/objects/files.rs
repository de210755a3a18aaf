//! A purge of plain files.
//!
//! In: a URL in its forms, and the stores of files. Out: how many files there are, and then none: whoever put them there, and gone
//! for good when it is told. An invalidation by a client spares what people put there; who purges means it.
//! Files are looked at and removed on a thread that may wait. A URL that no file can stand for has none.

use std::sync::Arc;

use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_store::{Store, TargetUri};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The files that a URL may have.
pub(crate) struct StoredFile {
    stores: Arc<[Arc<Store>]>,
    authority: Arc<str>,
    forms: Arc<Vec<Target>>,
}

impl StoredFile {
    pub(crate) fn of(stores: &[Arc<Store>], authority: &str, forms: &Arc<Vec<Target>>) -> Self {
        let stores = stores.iter().filter(|store| store.looks_outside_first()).cloned().collect();
        Self { stores, authority: authority.into(), forms: Arc::clone(forms) }
    }

    /// How many there are.
    pub(crate) async fn count(&self) -> u64 {
        let is_there =
            |store: &Store, target: &Target, authority: &str| store.has_outside(&uri(authority, target));
        let there = self.each(move |store, target, authority| Ok(is_there(store, target, authority))).await;
        there.unwrap_or_default()
    }

    /// Removes them.
    ///
    /// # Errors
    /// One may still be there.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        let removed =
            |store: &Store, target: &Target, authority: &str| store.purge_outside(&uri(authority, target));
        self.each(removed).await.map(|_| ())
    }

    /// How often `act` says yes, on a thread that may wait; stops at the first failure.
    async fn each(
        &self,
        act: impl Fn(&Store, &Target, &str) -> Result<bool, Failure> + Send + 'static,
    ) -> Result<u64, Failure> {
        if self.stores.is_empty() {
            return Ok(0);
        }
        let (stores, forms) = (Arc::clone(&self.stores), Arc::clone(&self.forms));
        let authority = Arc::clone(&self.authority);
        let acted = tokio::task::spawn_blocking(move || {
            let mut count = 0;
            for store in stores.iter() {
                for target in forms.iter() {
                    count += u64::from(act(store, target, &authority)?);
                }
            }
            Ok::<u64, Failure>(count)
        });
        acted.await?
    }
}

fn uri<'a>(authority: &'a str, target: &'a Target) -> TargetUri<'a> {
    TargetUri { scheme: Scheme::Http, authority, path: target.path(), query: target.query() }
}
