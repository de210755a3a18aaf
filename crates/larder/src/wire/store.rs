//! A store of the config, put to work: memory, and the disks behind it.
//!
//! In: what the config says of a store. Out: the store, found again by name over reloads. Which disks it has is decided when
//! it is made: a reload changes sizes of memory, the rest needs a restart. A disk that does not answer when larder starts is
//! left out until it does, since a cache without it is better than no cache; one that belongs to somebody else is an
//! error.

use std::sync::Arc;

use larder_config::DiskSize as Size;
use larder_http::time::Clock;
use larder_observe::Diagnostics;
use larder_store::disk::{DiskError, DiskSettings, DiskSize};
use larder_store::files::{FileStore, FilesError, FilesSettings};
use larder_store::{Disks, Layout, MemoryStoreSettings, Store};

/// A store in force.
#[derive(Clone)]
pub(super) struct KnownStore {
    pub(super) store: Arc<Store>,
    config: larder_config::Store,
}

/// A store that a new config names.
pub(super) struct DraftStore {
    pub(super) known: KnownStore,
    settings: MemoryStoreSettings,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("store {name}")]
pub struct StoreError {
    name: String,
    source: OpenError,
}

/// What is wrong with where it should lie.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl DraftStore {
    /// The store that is there already under this name, or a new one.
    pub(super) fn of(
        name: &str,
        config: &larder_config::Store,
        known: Option<&KnownStore>,
        clock: &Clock,
        diagnostics: &Diagnostics,
    ) -> Result<Self, StoreError> {
        let max_object = config.max_object_bytes();
        let has_disks = !config.disks.is_empty() || config.files.is_some();
        let settings = MemoryStoreSettings {
            memory: config.memory.0,
            max_object: if has_disks { max_object.min(config.memory.0 / 4) } else { max_object },
        };
        let store = match (known, &config.files) {
            (Some(known), _) => Arc::clone(&known.store),
            (None, Some(files)) => {
                let files = open_files(name, files, max_object)?;
                Store::of_files(&settings, files, clock.now().wall)
            }
            (None, None) => Store::new(&settings, open_disks(name, config, clock, diagnostics)?),
        };
        Ok(Self { known: KnownStore { store, config: config.clone() }, settings })
    }

    /// Takes it into force.
    pub(super) fn commit(self) -> KnownStore {
        self.known.store.resize(&self.settings);
        if let (Some(files), Some(config)) = (self.known.store.files(), &self.known.config.files) {
            files.resize(config.size.0, config.max_files, self.known.config.max_object_bytes());
        }
        self.known
    }

    /// What of a change needs a restart.
    pub(super) fn postponed(&self, name: &str, known: Option<&KnownStore>) -> Option<String> {
        let (old, new) = (&known?.config, &self.known.config);
        // The caps on files change at once.
        let place = |config: &larder_config::Store| {
            let files = config.files.as_ref();
            files.map(|files| (files.path.clone(), files.mode, files.default_type.clone()))
        };
        let is_same =
            (&old.disks, old.layout, old.idle, place(old)) == (&new.disks, new.layout, new.idle, place(new));
        (!is_same)
            .then(|| format!("stores.{name}: disks, layout, idle and where files lie change at a restart"))
    }
}

fn layout(config: &larder_config::Store) -> Layout {
    match config.chosen_layout() {
        larder_config::Layout::Single => Layout::Single,
        larder_config::Layout::Mirror => Layout::Mirror,
        larder_config::Layout::Stripe => Layout::Stripe,
        larder_config::Layout::Hash => Layout::Hash,
    }
}

fn open_disks(
    name: &str,
    config: &larder_config::Store,
    clock: &Clock,
    diagnostics: &Diagnostics,
) -> Result<Option<Arc<Disks>>, StoreError> {
    let settings = config.disks.iter().map(|disk| {
        let size = match disk.size {
            Size::Bytes(size) => DiskSize::Bytes(size.0),
            Size::Part(part) => DiskSize::Percent(part.hundredths()),
            Size::Leave(size) => DiskSize::LeaveFree(size.0),
        };
        DiskSettings { path: disk.path.clone(), size, idle: config.idle }
    });
    let settings: Vec<DiskSettings> = settings.collect();
    if settings.is_empty() {
        return Ok(None);
    }
    let disks = Disks::open(layout(config), settings, config.max_object_bytes(), clock)
        .map_err(|error| StoreError { name: name.to_owned(), source: error.into() })?;
    for finding in disks.disks().flat_map(|disk| disk.findings()) {
        diagnostics.warn("disk-finding", name, format_args!("store {name}: {finding}"));
    }
    Ok(Some(disks))
}

fn open_files(
    name: &str,
    files: &larder_config::Files,
    max_object: u64,
) -> Result<Arc<FileStore>, StoreError> {
    let failed = |error: FilesError| StoreError { name: name.to_owned(), source: error.into() };
    FileStore::open(&FilesSettings {
        inodes: files.max_files,
        mode: files.mode.bits(),
        default_type: files.default_type.as_ref().and_then(|name| name.as_str().parse().ok()),
        max_object,
        ..FilesSettings::new(&files.path, files.size.0)
    })
    .map_err(failed)
}
