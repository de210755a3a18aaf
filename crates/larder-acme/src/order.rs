//! One attempt: from a key to a stored certificate (RFC 8555 7.4).
//!
//! ```text
//! next.pem -> account -> order (pending) -> proof -> order (ready) -> order.json -> order (valid) -> chain.pem -> key.pem
//! ```
//!
//! In: a name, and what is needed to ask for it. Out: a certificate with its key, both stored, or a [`Failure`]. Storage comes before the
//! first question, so that a full disk costs the authority nothing. Each wait has an end: an answer's (`client.rs`), a proof's, an order's,
//! the attempt's. Dropping the future at any await leaves files that are as good as before, and no proof pending.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{Account, CertificateIdentifier, Identifier, NewOrder, Order, OrderStatus};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use tokio::time::{Instant, sleep, timeout};

use crate::account::Accounts;
use crate::challenges::Challenges;
use crate::client::CaClient;
use crate::error::{Failure, FailureKind};
use crate::event::{Event, Report, Step};
use crate::nonces::despite_nonces;
use crate::record::OrderRecord;
use crate::settings::{AcmeSettings, ChallengeKind};
use crate::storage::{Pair, Storage};

/// Longest attempt.
const ATTEMPT_TIME: Duration = Duration::from_secs(300);
/// Longest wait for the authority to look at a proof, and for it to sign.
pub(crate) const PHASE_TIME: Duration = Duration::from_secs(120);
/// Between two looks at an order.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Longest wait that the authority may ask for between two looks.
const PAUSE_ASKED_MAX: Duration = Duration::from_secs(10);
/// How often an order is gone on with before a new one takes its place.
const RESUMED_MAX: u32 = 5;

/// What one attempt needs.
pub(crate) struct Attempt {
    pub(crate) name: String,
    pub(crate) settings: Arc<AcmeSettings>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) challenges: Arc<Challenges>,
    pub(crate) client: CaClient,
    pub(crate) report: Report,
    /// How the host is proven.
    pub(crate) proof: ChallengeKind,
    /// The certificate that is to be replaced, as the authority knows it.
    pub(crate) replaces: Option<CertificateIdentifier<'static>>,
}

/// A certificate that is stored. The note of its order is still there, and goes once the state is saved.
pub(crate) struct Issued {
    pub(crate) pair: Pair,
    /// How the host was proven; `None` where the authority still knew.
    pub(crate) proof: Option<ChallengeKind>,
    pub(crate) replaces: bool,
}

impl Attempt {
    /// See the head of the file.
    pub(crate) async fn run(&self) -> Result<Issued, Failure> {
        match timeout(ATTEMPT_TIME, self.attempt()).await {
            Ok(result) => result,
            Err(_) => Err(Failure::new(
                FailureKind::Unreachable,
                format!("no certificate within {} s", ATTEMPT_TIME.as_secs()),
            )),
        }
    }

    async fn attempt(&self) -> Result<Issued, Failure> {
        let first = self.issue().await;
        let result = match first {
            // The account was made anew in between; a second time it is a failure.
            Err(failure) if failure.account_gone => self.issue().await,
            other => other,
        };
        if let Err(failure) = &result
            && !matches!(
                failure.kind,
                FailureKind::Unreachable
                    | FailureKind::Authority
                    | FailureKind::RateLimited
                    | FailureKind::Storage
            )
        {
            // It would fail in the same way again.
            self.storage.forget_order(&self.name)?;
        }
        result
    }

    async fn issue(&self) -> Result<Issued, Failure> {
        let noted = self.noted()?;
        let mut key = match &noted {
            Some((_, key)) => key.clone(),
            None => self.new_key()?,
        };
        self.step(Step::KeyStored);
        let account = self.accounts.open(&self.settings, &self.client).await?;
        self.step(Step::AccountReady);
        let result = async {
            let mut resumed = None;
            if let Some((record, _)) = noted {
                resumed = self.resume(&account, record).await?;
                if resumed.is_none() {
                    key = self.new_key()?;
                }
            }
            let (order, replaces) = match resumed {
                Some(order) => (order, false),
                None => self.order(&account).await?,
            };
            self.complete(&account, order, &key, replaces).await
        };
        let result = result.await;
        if let Err(failure) = &result
            && failure.account_gone
        {
            self.accounts.forget(&self.settings, account.id());
            self.storage.forget_order(&self.name)?;
        }
        result
    }

    /// From an order in any state to the stored certificate.
    async fn complete(
        &self,
        account: &Account,
        mut order: Order,
        key: &str,
        replaces: bool,
    ) -> Result<Issued, Failure> {
        self.step(Step::Ordered);
        let mut proof = None;
        if order.state().status == OrderStatus::Pending {
            proof = self.prove(&mut order).await?;
            self.until(&mut order, &[OrderStatus::Pending]).await?;
        }
        self.step(Step::Proven);
        if order.state().status == OrderStatus::Ready {
            let record = OrderRecord {
                directory: self.settings.directory_url.clone(),
                account: account.id().to_owned(),
                url: order.url().to_owned(),
                resumed: 0,
            };
            self.storage.save_order(&self.name, &record)?;
            self.step(Step::OrderNoted);
            let request = self.request(key)?;
            let finalized = despite_nonces!(order.finalize_csr(&request));
            finalized.map_err(|error| self.failed("request for the certificate", &error))?;
        }
        self.step(Step::Finalized);
        self.until(&mut order, &[OrderStatus::Ready, OrderStatus::Processing]).await?;
        let chain = despite_nonces!(order.certificate());
        let chain = chain.map_err(|error| self.failed("certificate", &error))?;
        let chain =
            chain.ok_or_else(|| Failure::new(FailureKind::Answer, "the authority has no certificate"))?;
        let pair = Pair::read(&self.name, chain.as_bytes(), key.as_bytes())
            .map_err(|reason| Failure::new(FailureKind::Certificate, reason))?;
        self.step(Step::Downloaded);
        self.storage.save_chain(&self.name, &chain)?;
        self.step(Step::ChainStored);
        self.storage.take_next_key(&self.name)?;
        self.step(Step::Stored);
        Ok(Issued { pair, proof, replaces })
    }

    /// The order that an attempt before has noted, with its key.
    fn noted(&self) -> Result<Option<(OrderRecord, String)>, Failure> {
        let record: OrderRecord = self.storage.order(&self.name)?;
        if record.directory != self.settings.directory_url || record.resumed >= RESUMED_MAX {
            return Ok(None);
        }
        let key = self.storage.next_key(&self.name)?.and_then(|key| String::from_utf8(key).ok());
        Ok(key.filter(|key| KeyPair::from_pem(key).is_ok()).map(|key| (record, key)))
    }

    /// ECDSA P-256, stored as that of the next certificate.
    fn new_key(&self) -> Result<String, Failure> {
        self.storage.forget_order(&self.name)?;
        let key =
            KeyPair::generate().map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
        let pem = key.serialize_pem();
        self.storage.save_next_key(&self.name, &pem)?;
        Ok(pem)
    }

    /// The noted order, where something can still become of it.
    async fn resume(&self, account: &Account, mut record: OrderRecord) -> Result<Option<Order>, Failure> {
        if record.account != account.id() {
            return Ok(None);
        }
        record.resumed += 1;
        self.storage.save_order(&self.name, &record)?;
        match despite_nonces!(account.order(record.url.clone())) {
            Ok(mut order) => {
                let is_over = order.state().status == OrderStatus::Invalid;
                Ok((!is_over).then_some(order))
            }
            Err(error) => {
                let failure = self.failed("order from before", &error);
                match failure.kind {
                    FailureKind::Unreachable | FailureKind::Authority | FailureKind::RateLimited => {
                        Err(failure)
                    }
                    _ if failure.account_gone => Err(failure),
                    _ => Ok(None),
                }
            }
        }
    }

    /// A new order, and whether the authority knows that it replaces a certificate. Where it does not want to, the order goes without: a
    /// name must not lose its certificate over an optional field (RFC 9773 5).
    async fn order(&self, account: &Account) -> Result<(Order, bool), Failure> {
        let identifiers = [Identifier::Dns(self.name.clone())];
        let new = || {
            let new = NewOrder::new(&identifiers);
            match &self.settings.profile {
                Some(profile) => new.profile(profile),
                None => new,
            }
        };
        if let Some(replaces) = &self.replaces {
            let new = new().replaces(replaces.clone());
            match despite_nonces!(account.new_order(&new)) {
                Ok(order) => return Ok((order, true)),
                Err(error) => {
                    let failure = self.failed("order", &error);
                    let goes_without = matches!(
                        failure.kind,
                        FailureKind::Refused | FailureKind::Answer | FailureKind::Authority
                    );
                    if !goes_without {
                        return Err(failure);
                    }
                }
            }
        }
        let new = new();
        let order = despite_nonces!(account.new_order(&new)).map_err(|error| self.failed("order", &error))?;
        Ok((order, false))
    }

    /// Waits until the order has left `states`. It is asked at least once where it is in one of them.
    async fn until(&self, order: &mut Order, states: &[OrderStatus]) -> Result<(), Failure> {
        let mut pauses = Pauses::new();
        while states.contains(&order.state().status) {
            pauses.pause(self.client.last().retry_after).await?;
            let looked = despite_nonces!(async { order.refresh().await.map(|_| ()) });
            looked.map_err(|error| self.failed("order", &error))?;
        }
        let state = order.state();
        match &state.error {
            Some(problem) => Err(self.failed("order", &instant_acme::Error::Api(problem.clone()))),
            None if state.status == OrderStatus::Invalid => {
                Err(Failure::new(FailureKind::Refused, "order: the authority gives no reason"))
            }
            None => Ok(()),
        }
    }

    /// The request for a certificate (RFC 2986), for the name alone.
    fn request(&self, key: &str) -> Result<Vec<u8>, Failure> {
        let request = || -> Result<Vec<u8>, rcgen::Error> {
            let mut params = CertificateParams::new([self.name.clone()])?;
            params.distinguished_name = DistinguishedName::new();
            Ok(params.serialize_request(&KeyPair::from_pem(key)?)?.der().to_vec())
        };
        request().map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
    }

    pub(crate) fn failed(&self, doing: &str, error: &instant_acme::Error) -> Failure {
        Failure::of(doing, error, self.client.last())
    }

    pub(crate) fn step(&self, step: Step) {
        (self.report)(Event::Progress { name: self.name.clone(), step });
    }
}

/// Growing pauses between looks, with an end.
pub(crate) struct Pauses {
    end: Instant,
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { end: Instant::now() + PHASE_TIME, next: PAUSE_MIN }
    }

    /// Waits, at least as long as the authority `asked` for, within a bound.
    pub(crate) async fn pause(&mut self, asked: Option<Duration>) -> Result<(), Failure> {
        if Instant::now() > self.end {
            let text = format!("the authority has not decided within {} s", PHASE_TIME.as_secs());
            return Err(Failure::new(FailureKind::Unreachable, text));
        }
        sleep(self.next.max(asked.unwrap_or_default().min(PAUSE_ASKED_MAX))).await;
        self.next = (self.next * 3 / 2).min(PAUSE_MAX);
        Ok(())
    }
}
