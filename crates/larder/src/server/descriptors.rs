//! File descriptors: how many the process may have, and who gets how many of them.
//!
//! In: the limit, raised as far as the system allows, and what the stores of a config would like to keep open. Out: shares
//! ([`Shares`]), or how many would be needed ([`Shortage`]). Clients have half of all at least: what a cache keeps open is worth
//! nothing where nobody can ask it. What is left beside stores and larder's own goes to clients and to what is opened
//! for them, in equal shares. Of the second share three parts are connections to origins, and one is files that are
//! being sent.

use larder_config::{Config, DiskSize as Size};
use larder_disk::engine::{DiskSettings, DiskSize, FilesMax};
use larder_files::FilesSettings;
use larder_store::descriptors::{Wanted, split};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Of the process itself: standard streams, logs, the signals, and the runtimes of main and admin.
const OWN: usize = 64;
/// A worker's runtime.
const PER_WORKER: usize = 8;
/// The admin address's connections at once, at most and at least.
const ADMIN_MAX: usize = 256;
const ADMIN_MIN: usize = 8;
/// Where one descriptor in so many is the admin's.
const ADMIN_PART: usize = 32;
/// So far larger limits are looked at, in steps of 64, for one that is enough.
const LIMIT_STEPS: usize = 1 << 16;

/// How many descriptors the process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Now.
    pub(crate) now: usize,
    /// What it was before it was raised.
    pub(crate) before: usize,
}

impl Limit {
    /// Raises the soft limit to the hard one. Where that is refused it stays as it is.
    pub(crate) fn raise() -> Self {
        let count = |limit: Option<u64>| {
            limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
        };
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
        Self { now: count(if raised { maximum } else { current }), before: count(current) }
    }
}

/// Who gets how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    limit: usize,
    /// Connections of clients.
    pub(crate) clients: usize,
    /// Connections to origins.
    pub(crate) origins: usize,
    /// Connections of the admin address.
    pub(crate) admin: usize,
    /// Of each store of the config, in its order.
    pub(crate) stores: Vec<usize>,
    wanted: usize,
}

/// There are too few for the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stores need {least} file descriptors at least, and of the {limit} that this process may have they get {share}: \
     a limit of {needed} is enough (`ulimit -n`, LimitNOFILE= in a unit)"
)]
pub struct Shortage {
    least: usize,
    limit: usize,
    share: usize,
    needed: usize,
}

impl Shares {
    /// Shares out `limit` descriptors among `workers` workers and what `config` has.
    pub(crate) fn of(config: &Config, limit: usize, workers: usize) -> Result<Self, Shortage> {
        let wanted: Vec<Wanted> = config.stores.iter().map(|(_, store)| wanted(store, workers)).collect();
        Self::reckon(limit, workers, config.listen.len(), &wanted)
    }

    fn reckon(limit: usize, workers: usize, addresses: usize, wanted: &[Wanted]) -> Result<Self, Shortage> {
        let reckon = |limit| Self::reckon_with(limit, workers, addresses, wanted);
        reckon(limit).map_err(|share| {
            // The share grows with the limit.
            let larger =
                (1_usize..LIMIT_STEPS).map(|step| limit.next_multiple_of(64).saturating_add(step * 64));
            let needed = larger.into_iter().find(|limit| reckon(*limit).is_ok()).unwrap_or(usize::MAX);
            Shortage { least: Wanted::sum(wanted.iter().copied()).least, limit, share, needed }
        })
    }

    /// What all stores would get is the error.
    fn reckon_with(limit: usize, workers: usize, addresses: usize, wanted: &[Wanted]) -> Result<Self, usize> {
        let all = Wanted::sum(wanted.iter().copied());
        let admin = (limit / ADMIN_PART).clamp(ADMIN_MIN, ADMIN_MAX);
        let own = OWN + admin + workers.saturating_mul(PER_WORKER.saturating_add(addresses));
        let hot = larder_store::HotCache::files_max_of(limit, workers).saturating_mul(workers);
        let half = limit / 2;
        let left = (limit - half).saturating_sub(own).saturating_sub(hot);
        let share = left / 2;
        if all.least > share {
            return Err(share);
        }
        let stores = split(share, wanted);
        let left = left.saturating_sub(stores.iter().sum());
        let (of_clients, origins) = (left / 2, left / 8 * 3);
        Ok(Self { limit, clients: half + of_clients, origins, admin, stores, wanted: all.most })
    }

    /// No bounds, where nothing is opened.
    pub(crate) fn unlimited() -> Self {
        Self {
            limit: usize::MAX,
            clients: usize::MAX,
            origins: usize::MAX,
            admin: ADMIN_MAX,
            stores: Vec::new(),
            wanted: 0,
        }
    }

    /// The share of the store of this number.
    pub(crate) fn of_store(&self, number: usize) -> usize {
        self.stores.get(number).copied().unwrap_or(usize::MAX)
    }

    /// What there is and what it allows, for the greeting.
    pub(crate) fn told(&self, limit: Limit) -> String {
        let raised = match limit.before < limit.now {
            true => format!(" (raised from {})", limit.before),
            false => String::new(),
        };
        let stores = match self.stores.iter().sum::<usize>() {
            0 => String::new(),
            stores => format!(", {stores} for stores"),
        };
        let Self { limit, clients, origins, .. } = self;
        format!("{limit} file descriptors{raised}: {clients} clients at once, {origins} for origins{stores}")
    }

    /// What the stores lack.
    pub(crate) fn warning(&self) -> Option<String> {
        let given: usize = self.stores.iter().sum();
        (given < self.wanted).then(|| {
            format!(
                "of {} file descriptors stores get {given} and could use {}: files are opened again more often \
                 (`ulimit -n`, LimitNOFILE= in a unit)",
                self.limit, self.wanted
            )
        })
    }
}

/// What a store of the config would like to keep open, files and connections.
fn wanted(store: &larder_config::Store, workers: usize) -> Wanted {
    let disks = store.disks.iter().map(|disk| disk_settings(disk, None, FilesMax::default()).files_wanted());
    let files = store.files.iter().map(|_| FilesSettings::WANTED);
    // To each server one of each worker, of the admin's thread and of the writer, and a probe.
    let servers = store.memcached.iter().map(|memcached| memcached.servers.len());
    let servers = servers.chain(store.redis.iter().map(|_| 1));
    // Nodes of a cluster count as servers, as far as they are named.
    let named = store.redis.iter().map(|redis| redis.server.named());
    let connections = servers.chain(named).map(|servers| servers * (workers + 3));
    let connections = connections.map(|count| Wanted { least: count, most: count });
    Wanted::sum(disks.chain(files).chain(connections))
}

/// A disk of the config as it is opened.
pub(crate) fn disk_settings(
    disk: &larder_config::Disk,
    idle: Option<std::time::Duration>,
    files: FilesMax,
) -> DiskSettings {
    let size = match disk.size {
        Size::Bytes(size) => DiskSize::Bytes(size.0),
        Size::Part(part) => DiskSize::Percent(part.hundredths()),
        Size::Leave(size) => DiskSize::LeaveFree(size.0),
    };
    DiskSettings { path: disk.path.clone(), size, idle, files }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const FILES: Wanted = FilesSettings::WANTED;
    const LARGE: Wanted = Wanted { least: FilesMax::LEAST, most: 1032 };

    #[test]
    fn clients_have_half_and_all_together_never_more_than_there_are() {
        for limit in [0, 100, 256, 300, 1024, 4096, 65_536, 1 << 20, usize::MAX] {
            for (workers, wanted) in
                [(1, &[][..]), (2, &[FILES]), (2, &[FILES, LARGE]), (64, &[]), (16, &[LARGE; 8])]
            {
                let Ok(shares) = Shares::reckon(limit, workers, 2, wanted) else { continue };
                let stores: usize = shares.stores.iter().sum();
                assert!(shares.clients >= limit / 2, "{limit}: {shares:?}");
                let all = shares.clients.saturating_add(stores).saturating_add(shares.origins);
                assert!(all <= limit, "{limit}: {shares:?}");
            }
        }
        let debian = Shares::reckon(1024, 2, 1, &[FILES, LARGE]).unwrap();
        assert!(debian.clients >= 512 && debian.origins > 40 && debian.warning().is_some(), "{debian:?}");
        let raised = Shares::reckon(524_288, 2, 1, &[FILES, LARGE]).unwrap();
        assert_eq!((raised.stores.clone(), raised.warning()), (vec![FILES.most, LARGE.most], None));
    }

    #[test]
    fn too_few_for_the_least_is_an_error_with_a_limit_that_is_enough() {
        for (limit, workers, wanted) in
            [(256, 2, vec![FILES]), (1024, 2, vec![FILES; 10]), (1024, 64, vec![LARGE])]
        {
            let short = Shares::reckon(limit, workers, 1, &wanted).unwrap_err();
            assert!(short.needed > limit && short.needed < limit * 20, "{short:?}");
            assert!(Shares::reckon(short.needed, workers, 1, &wanted).is_ok(), "{short:?}");
            let text = short.to_string();
            assert!(text.contains(&format!("limit of {} is enough", short.needed)), "{text}");
        }
    }
}
