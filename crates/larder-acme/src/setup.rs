//! Everything that can fail before a thread is started or a configuration replaced.
//!
//! In: settings. Out: the same, checked, with its directory, its connection to the authority, and what lies there for its names. Built on
//! the caller's thread, so that what is wrong is the caller's error and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use larder_tls::{Connector, TlsSettings};

use crate::account::Accounts;
use crate::error::AcmeError;
use crate::managed::Managed;
use crate::settings::AcmeSettings;
use crate::storage::{Storage, StorageLock};
use crate::surroundings::Surroundings;

/// See the head of the file.
pub(crate) struct Setup {
    pub(crate) settings: Arc<AcmeSettings>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) connector: Arc<Connector>,
    pub(crate) accounts: Arc<Accounts>,
    /// Names that were read, and whose certificates are served already.
    pub(crate) loaded: BTreeMap<String, Managed>,
    pub(crate) lock: Option<StorageLock>,
}

impl Setup {
    /// Checks `settings` and reads the certificates of names that are not `known`. Takes the lock where `wants_lock` and it is free.
    ///
    /// # Errors
    /// What is wrong with the settings, the directory, or the file of authorities.
    pub(crate) fn new(
        settings: AcmeSettings,
        around: &Surroundings,
        is_known: impl Fn(&str) -> bool,
        wants_lock: bool,
        leads: bool,
    ) -> Result<Self, AcmeError> {
        settings.checked()?;
        let tls = TlsSettings { ca_file: settings.ca_file.clone(), ..TlsSettings::default() };
        let connector = Arc::new(Connector::new(tls)?);
        let storage = Arc::new(Storage::open(&settings.dir)?);
        let lock = if wants_lock { storage.lock()? } else { None };
        let leads = leads || lock.is_some();
        let mut loaded = BTreeMap::new();
        for name in settings.names.iter().filter(|name| !is_known(name)) {
            let (managed, served) = Managed::load(&storage, &settings, name, leads, &around.report);
            if let Some((chain, key)) = served {
                around.certificates.install(name, chain, key);
            }
            loaded.insert(name.clone(), managed);
        }
        let accounts = Arc::new(Accounts::new(Arc::clone(&storage), Arc::clone(&around.report)));
        Ok(Self { settings: Arc::new(settings), storage, connector, accounts, loaded, lock })
    }
}
