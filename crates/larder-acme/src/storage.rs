//! Accounts, certificates and keys in one directory, so that every crash leaves what can be served.
//!
//! ```text
//! lock                    held by the one process that orders
//! account/HOST.json       the account at the authority on that host
//! certs/NAME/chain.pem    the certificate, then those that have signed it
//! certs/NAME/key.pem      its key
//! certs/NAME/state.json   times of issue and renewal, and the last failure
//! certs/NAME/order.json   the order under way
//! certs/NAME/next.pem     the key of the order under way
//! ```
//!
//! In: names that were checked ([`AcmeSettings`](crate::AcmeSettings)), and bytes. Out: files of mode 0600 below directories of mode 0700.
//! Each is written beside its place, synced, and renamed. A certificate and its key cannot be renamed together. So the key of an order is
//! `next.pem` before anything is asked; the rename of `chain.pem` is the moment from which the new pair counts; then `next.pem` becomes
//! `key.pem`. A chain whose key is not in `key.pem` is looked for in `next.pem`. What is damaged is renamed to `*.damaged`, where it
//! replaces an earlier one. Deliberately absent: encryption, and removal of certificates.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::facts::OrderedFacts;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Most certificates of a chain.
const CHAIN_MAX: usize = 16;

const CHAIN: &str = "chain.pem";
const KEY: &str = "key.pem";
const NEXT_KEY: &str = "next.pem";
const STATE: &str = "state.json";
const ORDER: &str = "order.json";

/// A file or directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
pub struct StorageError {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
    let path = path.to_owned();
    move |source| StorageError { doing, path, source }
}

/// A certificate with its key, which match.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) facts: OrderedFacts,
}

impl Pair {
    /// Reads a chain and its key, for `name`.
    ///
    /// # Errors
    /// Why they are none, in one sentence.
    pub(crate) fn read(name: &str, chain: &[u8], key: &[u8]) -> Result<Self, String> {
        let certificates =
            CertificateDer::pem_slice_iter(chain).take(CHAIN_MAX + 1).collect::<Result<Vec<_>, _>>();
        let chain = certificates.map_err(|error| format!("the chain is no PEM: {error}"))?;
        if chain.len() > CHAIN_MAX {
            return Err(format!("the chain has more than {CHAIN_MAX} certificates"));
        }
        let facts = OrderedFacts::read(chain.first().ok_or("the chain is empty")?)?;
        if !facts.covers(name) {
            return Err("the certificate is for other names".to_owned());
        }
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key cannot be read: {error}"))?;
        let matched = CertifiedKey::from_der(chain.clone(), key.clone_key(), &larder_tls::provider());
        matched.map_err(|error| format!("certificate and key are no pair: {error}"))?;
        Ok(Self { chain, key, facts })
    }
}

/// What lies under a name.
#[derive(Debug)]
pub(crate) enum Found {
    /// No certificate.
    Nothing,
    /// One that can be served.
    Pair(Box<Pair>),
    /// One that cannot, and why.
    Damaged(String),
}

/// What changes when a file is replaced: inode, moment of change in nanoseconds, size; of chain and key.
pub(crate) type Stamp = [Option<(u64, i64, u64)>; 2];

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Storage {
    dir: PathBuf,
}

/// The right to order and to write. It ends with this value, also where its process is killed.
#[derive(Debug)]
pub(crate) struct StorageLock(#[expect(dead_code, reason = "the lock is the open file")] File);

impl Storage {
    /// Creates what is missing.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub(crate) fn open(dir: &Path) -> Result<Self, StorageError> {
        for folder in [dir.to_owned(), dir.join("account"), dir.join("certs")] {
            create(&folder)?;
        }
        Ok(Self { dir: dir.to_owned() })
    }

    /// Takes the lock; `None` where another process has it.
    ///
    /// # Errors
    /// The file cannot be opened, or cannot be locked.
    pub(crate) fn lock(&self) -> Result<Option<StorageLock>, StorageError> {
        let path = self.dir.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(failed("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(StorageLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
        }
    }

    /// What lies under `name`.
    ///
    /// # Errors
    /// A file is there and cannot be read, which does not mean that it is damaged.
    pub(crate) fn certificate(&self, name: &str) -> Result<Found, StorageError> {
        let Some(chain) = read(&self.of(name, CHAIN))? else {
            return Ok(Found::Nothing);
        };
        let mut reason = "there is no key".to_owned();
        for place in [KEY, NEXT_KEY] {
            if let Some(key) = read(&self.of(name, place))? {
                match Pair::read(name, &chain, &key) {
                    Ok(pair) => return Ok(Found::Pair(Box::new(pair))),
                    // The first reason is the one that counts: the other key belongs to an order.
                    Err(error) if place == KEY => reason = error,
                    Err(_) => {}
                }
            }
        }
        Ok(Found::Damaged(reason))
    }

    /// Completes what a crash has left between chain and key.
    ///
    /// # Errors
    /// The key cannot be renamed.
    pub(crate) fn complete(&self, name: &str) -> Result<(), StorageError> {
        let Some(next) = read(&self.of(name, NEXT_KEY))? else { return Ok(()) };
        match read(&self.of(name, CHAIN))? {
            Some(chain) if Pair::read(name, &chain, &next).is_ok() => self.take_next_key(name),
            _ => Ok(()),
        }
    }

    /// Puts a damaged certificate and its key aside.
    pub(crate) fn set_certificate_aside(&self, name: &str) -> Result<PathBuf, StorageError> {
        // The key may be good, and is of no use without its certificate.
        let aside = self.set_aside(&self.of(name, CHAIN))?;
        if self.of(name, KEY).exists() {
            self.set_aside(&self.of(name, KEY))?;
        }
        Ok(aside)
    }

    /// The key for the next certificate, where there is one.
    pub(crate) fn next_key(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        read(&self.of(name, NEXT_KEY))
    }

    /// Stores the key for the next certificate.
    pub(crate) fn save_next_key(&self, name: &str, pem: &str) -> Result<(), StorageError> {
        self.write(name, NEXT_KEY, pem.as_bytes())
    }

    /// From now on the new chain counts. Its key is the next key until [`Self::take_next_key`].
    pub(crate) fn save_chain(&self, name: &str, pem: &str) -> Result<(), StorageError> {
        self.write(name, CHAIN, pem.as_bytes())
    }

    /// The next key is the key.
    pub(crate) fn take_next_key(&self, name: &str) -> Result<(), StorageError> {
        let (from, to) = (self.of(name, NEXT_KEY), self.of(name, KEY));
        fs::rename(&from, &to).map_err(failed("rename", &from))?;
        sync_folder(&to)
    }

    /// What was noted under `name`: default where there is nothing. The second value says that something was there and was damaged,
    /// and where it is now: aside where this process `leads`, since another version of larder may read what this one cannot.
    ///
    /// # Errors
    /// A file is there and cannot be read, which does not mean that it is damaged. So with the other notes.
    pub(crate) fn state<T: DeserializeOwned + Default>(
        &self,
        name: &str,
        leads: bool,
    ) -> Result<(T, Option<Aside>), StorageError> {
        self.json(&self.of(name, STATE), leads)
    }

    pub(crate) fn save_state<T: Serialize>(&self, name: &str, state: &T) -> Result<(), StorageError> {
        self.save_json(&self.of(name, STATE), state)
    }

    /// The order under way.
    ///
    /// # Errors
    /// As for [`Self::state`].
    pub(crate) fn order<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, StorageError> {
        self.json(&self.of(name, ORDER), true).map(|(order, _)| order)
    }

    pub(crate) fn save_order<T: Serialize>(&self, name: &str, order: &T) -> Result<(), StorageError> {
        self.save_json(&self.of(name, ORDER), order)
    }

    pub(crate) fn forget_order(&self, name: &str) -> Result<(), StorageError> {
        let path = self.of(name, ORDER);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    /// The account in the file for `host`.
    ///
    /// # Errors
    /// As for [`Self::state`].
    pub(crate) fn account<T: DeserializeOwned + Default>(
        &self,
        host: &str,
    ) -> Result<(T, Option<Aside>), StorageError> {
        self.json(&self.account_file(host), true)
    }

    pub(crate) fn save_account<T: Serialize>(&self, host: &str, account: &T) -> Result<(), StorageError> {
        self.save_json(&self.account_file(host), account)
    }

    pub(crate) fn set_account_aside(&self, host: &str) -> Result<PathBuf, StorageError> {
        self.set_aside(&self.account_file(host))
    }

    /// Whether everything that lies under `name` can be read, damaged or not.
    pub(crate) fn is_readable(&self, name: &str) -> bool {
        let notes = [STATE, ORDER];
        self.certificate(name).is_ok() && notes.iter().all(|file| read(&self.of(name, file)).is_ok())
    }

    /// To see whether another process has replaced a certificate.
    pub(crate) fn stamp(&self, name: &str) -> Stamp {
        [CHAIN, KEY].map(|file| {
            let metadata = fs::metadata(self.of(name, file)).ok()?;
            let moment = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
            Some((metadata.ino(), moment, metadata.len()))
        })
    }

    fn of(&self, name: &str, file: &str) -> PathBuf {
        self.dir.join("certs").join(name).join(file)
    }

    pub(crate) fn account_file(&self, host: &str) -> PathBuf {
        // Of an address or a port, the characters that are none of file names.
        let host: String = host
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' })
            .collect();
        self.dir.join("account").join(format!("{host}.json"))
    }

    fn json<T: DeserializeOwned + Default>(
        &self,
        path: &Path,
        leads: bool,
    ) -> Result<(T, Option<Aside>), StorageError> {
        let Some(bytes) = read(path)? else { return Ok((T::default(), None)) };
        let reason = match serde_json::from_slice(&bytes) {
            Ok(value) => return Ok((value, None)),
            Err(error) => error.to_string(),
        };
        let to = if leads { self.set_aside(path).ok() } else { None };
        Ok((T::default(), Some(Aside { path: path.to_owned(), to, reason })))
    }

    fn save_json<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), StorageError> {
        let text =
            serde_json::to_vec_pretty(value).map_err(io::Error::from).map_err(failed("write", path))?;
        write(path, &text)
    }

    fn write(&self, name: &str, file: &str, bytes: &[u8]) -> Result<(), StorageError> {
        write(&self.of(name, file), bytes)
    }

    fn set_aside(&self, path: &Path) -> Result<PathBuf, StorageError> {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".damaged");
        let aside = PathBuf::from(aside);
        fs::rename(path, &aside).map_err(failed("rename", path))?;
        sync_folder(path)?;
        Ok(aside)
    }
}

/// A file that is not what it should be.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) path: PathBuf,
    /// Where it lies now; `None` where it could not be moved.
    pub(crate) to: Option<PathBuf>,
    pub(crate) reason: String,
}

fn create(folder: &Path) -> Result<(), StorageError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed("create", folder))
}

/// The whole file; `None` where there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed("read", path))?;
    Ok(Some(bytes))
}

/// Beside the place, synced, renamed, and the rename synced.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    if let Some(folder) = path.parent() {
        create(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    // What a crash has left may have another mode.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &beside)(error));
        }
        _ => {}
    }
    let written = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(failed("write", &beside))?;
    fs::rename(&beside, path).map_err(failed("rename", &beside))?;
    sync_folder(path)
}

fn sync_folder(path: &Path) -> Result<(), StorageError> {
    let folder = path.parent().unwrap_or(path);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
}

#[cfg(test)]
mod tests;
