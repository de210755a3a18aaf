//! A purge of plain files.
//!
//! In: a URL in its forms, or everything below a path, and the stores of files. Out: how many files a URL has, and then none: whoever put
//! them there, and gone for good when it is told. An invalidation by a client spares what people put there; who purges means it.
//! Files are looked at and removed on a thread that may wait. A URL that no file can stand for has none.

use std::sync::Arc;

use bytes::Bytes;
use larder_cache::purge::{Mode, Predicate, What};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_store::store::{CountRemoved, WantedHosts};
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
        // What others have put there: files, and values that only their names find.
        let stores = stores.iter().filter(|store| store.looks_beside()).cloned().collect();
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

    /// How often `act` says yes, on a thread that may wait.
    ///
    /// # Errors
    /// The first failure; the other stores and forms are not left out for it.
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
            let mut count = Ok(0);
            for store in stores.iter() {
                for target in forms.iter() {
                    let acted = act(store, target, &authority);
                    count = count.and_then(|count| Ok(count + u64::from(acted?)));
                }
            }
            count
        });
        acted.await?
    }
}

/// Everything below a path, in the stores of files.
pub(crate) struct StoredTree {
    stores: Arc<[Arc<Store>]>,
    path: Box<str>,
    hosts: Arc<WantedHosts>,
    removed: Arc<CountRemoved>,
}

impl StoredTree {
    /// What a predicate means that names such a thing, at its hosts alone. `removed` hears of files as they are removed.
    pub(crate) fn of(
        stores: &[Arc<Store>],
        predicate: &Predicate,
        removed: impl Fn(u64) + Send + Sync + 'static,
    ) -> Option<Self> {
        let (path, host) = match &predicate.what {
            What::Prefix(path) => (path.clone(), None),
            What::Host(host) => ("/".into(), Some(host.clone())),
            What::All => ("/".into(), None),
            _ => return None,
        };
        let stores: Arc<[_]> = stores.iter().filter(|store| store.looks_outside_first()).cloned().collect();
        let scope = Arc::clone(&predicate.scope);
        let hosts = Arc::new(move |authority: &str| {
            let authority = Authority::parse(Bytes::copy_from_slice(authority.as_bytes()), Scheme::Http);
            let is_it = |own: &str| host.as_ref().is_none_or(|host| **host == *own) && scope.holds(own);
            authority.is_ok_and(|authority| is_it(authority.host()))
        });
        (predicate.mode == Mode::Hard && !stores.is_empty()).then(|| Self {
            stores,
            path,
            hosts,
            removed: Arc::new(removed),
        })
    }

    /// Removes it, in each store where that can be done.
    ///
    /// # Errors
    /// Something may still be there.
    pub(crate) async fn remove(&self) -> Result<(), Failure> {
        let (stores, path) = (Arc::clone(&self.stores), self.path.clone());
        let (hosts, removed) = (Arc::clone(&self.hosts), Arc::clone(&self.removed));
        let remove = move || {
            let purge = |store: &Arc<Store>| store.purge_trees_outside(&path, &hosts, &removed);
            stores.iter().map(purge).fold(Ok(()), Result::and)
        };
        tokio::task::spawn_blocking(remove).await?
    }
}

fn uri<'a>(authority: &'a str, target: &'a Target) -> TargetUri<'a> {
    TargetUri { scheme: Scheme::Http, authority, path: target.path(), query: target.query() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use larder_cache::purge::Scope;
    use larder_files::{FileStore, FilesSettings};
    use larder_store::MemoryStoreSettings;

    use super::*;

    #[tokio::test]
    async fn a_store_that_fails_keeps_no_other_from_its_purge() {
        let folder = tempfile::tempdir().unwrap();
        let (absent, kept) = (folder.path().join("absent"), folder.path().join("kept"));
        std::fs::write(&absent, "no directory").unwrap();
        let memory = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 18 };
        let store =
            |path| Store::new(&memory, Some(FileStore::open(&FilesSettings::new(path, 1 << 20)).unwrap()));
        let stores = [store(&absent), store(&kept)];
        let at = |name: &str| kept.join("h").join(name);
        std::fs::create_dir_all(at("img")).unwrap();
        ["img/a", "b"].iter().for_each(|name| std::fs::write(at(name), "by hand").unwrap());
        let what = What::Prefix("/img/".into());
        let predicate = Predicate { what, scope: Arc::new(Scope::any()), mode: Mode::Hard };
        assert!(StoredTree::of(&stores, &predicate, |_| {}).unwrap().remove().await.is_err());
        assert!(!at("img").exists());
        let form = Arc::new(vec![Target::parse(Bytes::from_static(b"/b")).unwrap()]);
        assert!(StoredFile::of(&stores, "h", &form).remove().await.is_err());
        assert!(!at("b").exists());
    }
}
