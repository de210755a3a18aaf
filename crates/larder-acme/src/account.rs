//! The account at the authority: created once, found again in its file (RFC 8555 7.3).
//!
//! In: settings and files. Out: an account that is ready for an order. Contacts that have changed are changed there too. An account of another
//! directory, of another external account, or one that the authority does not know, is moved aside for a new one.
//! Deliberately absent: changes of the key, and the end of an account.

use std::sync::Arc;

use http::Uri;
use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::CaClient;
use crate::error::{Failure, FailureKind};
use crate::event::{Event, Report};
use crate::nonces::despite_nonces;
use crate::settings::AcmeSettings;
use crate::storage::{Aside, Storage};

/// `account/HOST.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct AccountRecord {
    /// Of which authority.
    directory: String,
    /// What the authority knows.
    contact: Vec<String>,
    /// The external account that it was bound to.
    external_account: Option<String>,
    /// As the library of the protocol writes it: the URL and the private key.
    credentials: Value,
}

impl AccountRecord {
    fn url(&self) -> &str {
        self.credentials.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    fn fits(&self, settings: &AcmeSettings) -> bool {
        let external = settings.external_account.as_ref().map(|external| &external.id);
        self.directory == settings.directory_url && self.external_account.as_ref() == external
    }
}

/// Opens accounts for orders. One for each storage and authority.
pub(crate) struct Accounts {
    storage: Arc<Storage>,
    report: Report,
    /// As far as it has been read. Held for moments, never across a wait.
    known: Mutex<Option<AccountRecord>>,
}

impl Accounts {
    pub(crate) fn new(storage: Arc<Storage>, report: Report) -> Self {
        Self { storage, report, known: Mutex::new(None) }
    }

    /// Whether an account was opened. Before that one order goes alone, so that not each creates one.
    pub(crate) fn is_open(&self) -> bool {
        self.known.lock().is_some()
    }

    /// An account at the authority, created where there is none.
    ///
    /// # Errors
    /// The authority does not have it so, or the file cannot be read or written.
    ///
    /// # Cancel safety
    /// An account that was created and not stored is forgotten. Nothing hangs on it.
    pub(crate) async fn open(&self, settings: &AcmeSettings, client: &CaClient) -> Result<Account, Failure> {
        let host = host(settings);
        let known = self.known.lock().clone();
        let record = match known {
            Some(record) => Some(record),
            None => {
                // One that cannot be read may be good: no new account takes its place.
                let (record, aside) = self.storage.account::<AccountRecord>(&host)?;
                if let Some(aside) = aside {
                    (self.report)(aside.into());
                }
                Some(record).filter(|record| !record.directory.is_empty())
            }
        };
        match record {
            Some(record) if record.fits(settings) => {
                match self.restore(record, settings, client, &host).await {
                    Ok(account) => Ok(account),
                    Err(failure) if failure.kind == FailureKind::Internal || failure.account_gone => {
                        self.move_aside(&host, &failure.text);
                        self.create(settings, client, &host).await
                    }
                    Err(failure) => Err(failure),
                }
            }
            Some(_) => {
                self.move_aside(&host, "it is of another directory or external account");
                self.create(settings, client, &host).await
            }
            None => self.create(settings, client, &host).await,
        }
    }

    /// The authority does not know the account at `url`.
    pub(crate) fn forget(&self, settings: &AcmeSettings, url: &str) {
        let is_known = self.known.lock().take_if(|known| known.url() == url).is_some();
        if is_known {
            (self.report)(Event::AccountGone { url: url.to_owned() });
            self.move_aside(&host(settings), "the authority does not know it");
        }
    }

    fn move_aside(&self, host: &str, reason: &str) {
        *self.known.lock() = None;
        let path = self.storage.account_file(host);
        match self.storage.set_account_aside(host) {
            Ok(to) => (self.report)(Aside { path, to: Some(to), reason: reason.to_owned() }.into()),
            Err(error) => (self.report)(Event::Storage { failure: error.into() }),
        }
    }

    async fn restore(
        &self,
        mut record: AccountRecord,
        settings: &AcmeSettings,
        client: &CaClient,
        host: &str,
    ) -> Result<Account, Failure> {
        let unusable = |error: &dyn std::fmt::Display| {
            Failure::new(FailureKind::Internal, format!("the account cannot be used: {error}"))
        };
        let credentials: AccountCredentials =
            serde_json::from_value(record.credentials.clone()).map_err(|error| unusable(&error))?;
        let builder = Account::builder_with_http(Box::new(client.clone()));
        let account = builder.from_credentials(credentials).await.map_err(|error| match error {
            instant_acme::Error::KeyRejected => unusable(&error),
            other => failed("account", &other, client),
        })?;
        if record.contact != settings.contact {
            let contact: Vec<&str> = settings.contact.iter().map(String::as_str).collect();
            despite_nonces!(account.update_contacts(&contact))
                .map_err(|error| failed("contacts", &error, client))?;
            record.contact.clone_from(&settings.contact);
            self.storage.save_account(host, &record)?;
        }
        *self.known.lock() = Some(record);
        Ok(account)
    }

    async fn create(
        &self,
        settings: &AcmeSettings,
        client: &CaClient,
        host: &str,
    ) -> Result<Account, Failure> {
        let contact: Vec<&str> = settings.contact.iter().map(String::as_str).collect();
        let new =
            NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let external = settings.external_account.as_ref();
        let external = external.map(|external| ExternalAccountKey::new(external.id.clone(), &external.key));
        let created = despite_nonces!(Account::builder_with_http(Box::new(client.clone())).create(
            &new,
            settings.directory_url.clone(),
            external.as_ref()
        ));
        let (account, credentials) = created.map_err(|error| {
            let mut failure = failed("account", &error, client);
            if failure.kind == FailureKind::Refused {
                failure.kind = FailureKind::Account;
            }
            failure
        })?;
        let credentials = serde_json::to_value(&credentials)
            .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        let record = AccountRecord {
            directory: settings.directory_url.clone(),
            contact: settings.contact.clone(),
            external_account: settings.external_account.as_ref().map(|external| external.id.clone()),
            credentials,
        };
        self.storage.save_account(host, &record)?;
        (self.report)(Event::AccountCreated { url: account.id().to_owned() });
        *self.known.lock() = Some(record);
        Ok(account)
    }
}

fn failed(doing: &str, error: &instant_acme::Error, client: &CaClient) -> Failure {
    Failure::of(doing, error, client.last())
}

/// For the name of the file.
fn host(settings: &AcmeSettings) -> String {
    let url = settings.directory_url.parse::<Uri>().unwrap_or_default();
    url.authority().map_or("unknown", |authority| authority.as_str()).to_owned()
}

#[cfg(test)]
mod tests {
    use larder_http::time::Clock;
    use larder_testkit::certificates::Certificates;
    use larder_tls::{Connector, TlsSettings};

    use super::*;

    #[tokio::test]
    async fn an_account_that_cannot_be_read_is_left_alone() {
        let (dir, certificates) = (tempfile::tempdir().unwrap(), Certificates::new());
        let settings = AcmeSettings {
            // Nothing listens at this port, so a request to it fails in another way.
            directory_url: "https://localhost:1/dir".to_owned(),
            ca_file: None,
            contact: Vec::new(),
            dir: dir.path().to_owned(),
            names: vec!["a.example".to_owned()],
            challenges: Vec::new(),
            profile: None,
            external_account: None,
        };
        let storage = Arc::new(Storage::open(dir.path()).unwrap());
        // Root may open every file, but no directory can be read as one.
        let file = storage.account_file("localhost:1");
        std::fs::create_dir_all(&file).unwrap();
        let tls = TlsSettings { ca_file: Some(certificates.file("ca.pem")), ..TlsSettings::default() };
        let client = CaClient::new(Arc::new(Connector::new(tls).unwrap()), Clock::default());
        let accounts = Accounts::new(Arc::clone(&storage), Arc::new(|event| panic!("{event}")));
        let failure = accounts.open(&settings, &client).await.err().unwrap();
        assert_eq!(failure.kind, FailureKind::Storage, "{failure}");
        assert!(file.is_dir() && !accounts.is_open());
        // Once there is none, the authority is asked for one.
        std::fs::remove_dir(&file).unwrap();
        let failure = accounts.open(&settings, &client).await.err().unwrap();
        assert_eq!(failure.kind, FailureKind::Unreachable, "{failure}");
    }
}
