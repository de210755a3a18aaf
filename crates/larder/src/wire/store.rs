//! A store of the config, put to work: memory, and the disks, files or values behind it.
//!
//! In: what the config says of a store. Out: the store, found again by name over reloads. What is behind its memory is decided when
//! it is made: a reload changes sizes of memory, of files and of the largest body, the rest needs a restart. A disk or a directory of
//! files that cannot be used when larder starts is left out until it can, since a site without its cache is better than no site.

use std::sync::Arc;

use larder_disk::engine::{DiskSettings, FilesMax};
use larder_disk::{Disks, Layout};
use larder_files::{FileStore, FilesError, FilesSettings};
use larder_http::time::Clock;
use larder_observe::{Diagnostics, Exposition};
use larder_records::Records;
use larder_remote::{RemoteError, ServerReport};
use larder_store::store::TierCaps;
use larder_store::tier::StoreTier;
use larder_store::{MemoryStoreSettings, Store};
use larder_values::{ServedHosts, Values};

use super::records::{self, FleetStanding};
use super::removed::is_same_place;
use super::values;
use crate::server::descriptors::disk_settings;

/// A store in force.
#[derive(Clone)]
pub(super) struct KnownStore {
    pub(super) store: Arc<Store>,
    /// What it has in other programs' memory.
    pub(super) remote: Option<RemoteTier>,
    /// The config that it was opened with, which says where it lies: a config that moves it holds from the next start on.
    pub(super) opened: larder_config::Store,
}

/// What a store has in other programs' memory.
#[derive(Clone)]
pub(crate) enum RemoteTier {
    /// Values of an application.
    Values(Arc<Values>),
    /// Responses that larders share.
    Records(Arc<Records>),
}

impl RemoteTier {
    fn serve(&self, hosts: &Arc<ServedHosts>) {
        match self {
            Self::Values(values) => values.serve(Arc::clone(hosts)),
            Self::Records(_) => {}
        }
    }

    fn tier(&self) -> Arc<StoreTier> {
        match self {
            Self::Values(values) => Arc::clone(values) as Arc<StoreTier>,
            Self::Records(records) => Arc::clone(records) as Arc<StoreTier>,
        }
    }

    /// The figures of its servers.
    pub(crate) fn reports(&self) -> Vec<ServerReport> {
        match self {
            Self::Values(values) => values.reports(),
            Self::Records(records) => records.reports(),
        }
    }

    /// Adds all samples of its servers; `store` is what they call the store.
    pub(crate) fn expose(&self, store: &str, out: &mut Exposition) {
        match self {
            Self::Values(values) => values.expose(store, out),
            Self::Records(records) => records.expose(store, out),
        }
    }

    /// The records, if it is those.
    pub(crate) fn records(&self) -> Option<&Arc<Records>> {
        match self {
            Self::Values(_) => None,
            Self::Records(records) => Some(records),
        }
    }
}

/// A store that a new config names.
pub(super) struct DraftStore {
    pub(super) known: KnownStore,
    config: larder_config::Store,
    settings: MemoryStoreSettings,
    open_files: usize,
    /// Whose responses go there by this config.
    hosts: Arc<ServedHosts>,
    /// Whether it was not open before.
    pub(super) is_new: bool,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("store {name}")]
pub struct StoreError {
    name: String,
    source: TierError,
}

/// Why what is behind the memory of a store cannot be opened.
#[derive(Debug, thiserror::Error)]
enum TierError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Values(#[from] RemoteError),
}

/// What a tier is made with beside the config of its store.
pub(super) struct StoreSurroundings<'a> {
    pub(super) clock: &'a Clock,
    pub(super) diagnostics: &'a Diagnostics,
    pub(super) open_files: usize,
    pub(super) standing: &'a Arc<FleetStanding>,
    /// The fleet that larders with shared responses are members of.
    pub(super) fleet: &'a larder_config::Fleet,
}

impl DraftStore {
    /// The store that is open already, or a new one, for the responses of these hosts.
    pub(super) fn of(
        name: &str,
        config: &larder_config::Store,
        open: Option<KnownStore>,
        hosts: Arc<ServedHosts>,
        surroundings: &StoreSurroundings<'_>,
    ) -> Result<Self, StoreError> {
        let (max_object, open_files) = (config.max_object_bytes(), surroundings.open_files);
        let has_disks = !config.disks.is_empty() || config.files.is_some();
        let settings = MemoryStoreSettings {
            memory: config.memory.0,
            max_object: if has_disks { max_object.min(config.memory.0 / 4) } else { max_object },
        };
        let is_new = open.is_none();
        let known = match open {
            Some(open) => open,
            None => {
                let failed = |source| StoreError { name: name.to_owned(), source };
                let Behind { tiers, remote } = behind((name, config), surroundings).map_err(failed)?;
                // Nobody uses it yet.
                remote.iter().for_each(|remote| remote.serve(&hosts));
                let store = Store::in_front_of(&settings, tiers);
                KnownStore { store, remote, opened: config.clone() }
            }
        };
        Ok(Self { known, config: config.clone(), settings, open_files, hosts, is_new })
    }

    /// Takes it into force.
    pub(super) fn commit(self) -> KnownStore {
        self.known.store.resize(&self.settings);
        self.known.store.limit_files(self.open_files);
        self.known.remote.iter().for_each(|remote| remote.serve(&self.hosts));
        if lies_there(&self.known.opened, &self.config) {
            self.known.store.resize_tiers(&tier_caps(&self.config));
        }
        self.known
    }

    /// What of a change needs a restart: said at each reload until there was one.
    pub(super) fn postponed(&self, name: &str) -> Option<String> {
        // The caps change at once.
        (!is_same_place(&self.known.opened, &self.config)).then(|| {
            format!(
                "stores.{name}: disks, layout, idle, memcached, redis and where files lie change at a restart"
            )
        })
    }
}

/// Whether the caps of a config are about what a store was opened with: those of another place hold there, once it is there.
fn lies_there(opened: &larder_config::Store, config: &larder_config::Store) -> bool {
    let files = |config: &larder_config::Store| config.files.as_ref().map(|files| files.path.clone());
    // What files look like has nothing to do with their caps.
    is_same_place(opened, config) || files(opened).is_some() && files(opened) == files(config)
}

/// The caps on what is behind the memory of a store. Without files there are none on those.
fn tier_caps(config: &larder_config::Store) -> TierCaps {
    let files = config.files.as_ref();
    let (bytes, files) = files.map_or((u64::MAX, u64::MAX), |files| (files.size.0, files.max_files));
    TierCaps { bytes, files, max_object: config.max_object_bytes() }
}

/// The directories of a config that could not be used now, each with the name of its store, and why. Changes nothing, and
/// does not mind a larder that uses them.
pub(crate) fn unusable_directories(config: &larder_config::Config) -> Vec<(String, FilesError)> {
    let mut unusable = Vec::new();
    for (name, store) in &config.stores {
        let paths =
            store.disks.iter().map(|disk| &disk.path).chain(store.files.iter().map(|files| &files.path));
        let errors = paths.filter_map(|path| larder_files::probe(path).err());
        unusable.extend(errors.map(|error| (name.as_str().to_owned(), error)));
    }
    unusable
}

fn layout(config: &larder_config::Store) -> Layout {
    match config.chosen_layout() {
        larder_config::Layout::Single => Layout::Single,
        larder_config::Layout::Mirror => Layout::Mirror,
        larder_config::Layout::Stripe => Layout::Stripe,
        larder_config::Layout::Hash => Layout::Hash,
    }
}

/// What is behind the memory of a store.
struct Behind {
    tiers: Vec<Arc<StoreTier>>,
    /// The one of them that lies in other programs' memory.
    remote: Option<RemoteTier>,
}

/// What is behind the memory of a store: plain files, values, records, disks, or nothing.
fn behind(
    (name, config): (&str, &larder_config::Store),
    surroundings: &StoreSurroundings<'_>,
) -> Result<Behind, TierError> {
    let StoreSurroundings { clock, diagnostics, open_files, standing, fleet } = *surroundings;
    let max_object = config.max_object_bytes();
    if let Some(files) = &config.files {
        let files = open_file_store(files, max_object, clock, open_files)?;
        return Ok(Behind { tiers: vec![files as Arc<StoreTier>], remote: None });
    }
    let values = values::start(config, clock, diagnostics)?.map(RemoteTier::Values);
    let records = || records::start((name, config), fleet, standing, clock, diagnostics);
    let remote = match values {
        Some(values) => Some(values),
        None => records()?.map(RemoteTier::Records),
    };
    if let Some(remote) = remote {
        return Ok(Behind { tiers: vec![remote.tier()], remote: Some(remote) });
    }
    let disks = disks(config, clock, open_files).map(|disks| disks as Arc<StoreTier>);
    Ok(Behind { tiers: disks.into_iter().collect(), remote: None })
}

/// The disks of a store. They are opened once it is known what they have missed.
fn disks(config: &larder_config::Store, clock: &Clock, open_files: usize) -> Option<Arc<Disks>> {
    // What each disk gets is said once the store is in force. Until then none opens more than its part.
    let files = open_files / config.disks.len().max(1);
    let settings = config.disks.iter().map(|disk| disk_settings(disk, config.idle, FilesMax::new(files)));
    let settings: Vec<DiskSettings> = settings.collect();
    if settings.is_empty() {
        return None;
    }
    Some(Disks::unopened(layout(config), settings, config.max_object_bytes(), clock))
}

fn open_file_store(
    files: &larder_config::Files,
    max_object: u64,
    clock: &Clock,
    open_files: usize,
) -> Result<Arc<FileStore>, FilesError> {
    let settings = FilesSettings {
        inodes: files.max_files,
        mode: files.mode.bits(),
        default_type: files.default_type.as_ref().and_then(|name| name.as_str().parse().ok()),
        max_object,
        open_files,
        ..FilesSettings::new(&files.path, files.size.0)
    };
    FileStore::open_with(&settings, clock.clone())
}
