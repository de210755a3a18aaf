//! A connection to one address, logged in: TLS where it is spoken, and a password as it is at the moment.
//!
//! In: an address, and who larder is there. Out: a connection that has had its first reply. Files are read on a thread for what may
//! wait.

use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Value};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::login::{LoggedIn, Login, Pushed, log_in};
use super::renewed::RenewedTls;
use super::scan::Scanner;
use super::settings::Password;
use crate::address::{Address, Resolve};
use crate::connect::{connect, connect_over};
use crate::error::Failure;

/// What lies between here and an address.
#[derive(Clone)]
pub(super) struct Reach {
    names: Arc<dyn Resolve>,
    tls: Option<Arc<RenewedTls>>,
}

/// Who larder is at a server.
pub(super) struct LoginSettings {
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) database: u32,
}

impl Reach {
    pub(super) fn new(names: Arc<dyn Resolve>, tls: Option<RenewedTls>) -> Self {
        Self { names, tls: tls.map(Arc::new) }
    }

    /// Connects and logs in.
    pub(super) async fn open(
        &self,
        address: &Address,
        account: &Arc<LoginSettings>,
        scanner: Scanner,
        pushed: Option<Pushed>,
    ) -> io::Result<LoggedIn> {
        let login = self.login(account).await?;
        let login = if pushed.is_some() { login.speaking_three() } else { login };
        let halves = match (&self.tls, address) {
            (Some(tls), Address::Tcp { host, port }) => {
                connect_over(tls.connector(), (host, *port), &*self.names).await?
            }
            _ => connect(address, &*self.names).await?,
        };
        log_in(halves, address, (&login, scanner), pushed).await
    }

    /// One question to one of several servers, within a limit. The connection stays open as long as it answers.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn ask_one(
        &self,
        (address, account, scanner): (&Address, &Arc<LoginSettings>, impl FnOnce() -> Scanner),
        link: &mut Option<LoggedIn>,
        (question, limit): (&Cmd, Duration),
    ) -> Result<Value, String> {
        let until = Instant::now() + limit;
        let mut opened = match link.take() {
            Some(opened) => opened,
            None => {
                let opening = timeout_at(until, self.open(address, account, scanner(), None)).await;
                let late = |_| Failure::TimedOut.to_string();
                opening.map_err(late)?.map_err(|error| error.to_string())?
            }
        };
        let reply = opened.ask(question, until).await.map_err(|failure| failure.to_string())?;
        *link = Some(opened);
        Ok(reply)
    }

    /// What is read for each connection. A disk may take its time.
    async fn login(&self, account: &Arc<LoginSettings>) -> io::Result<Login> {
        let is_in_file = matches!(account.password, Some(Password::File(_)));
        if !is_in_file && self.tls.is_none() {
            return account.login();
        }
        let (account, tls) = (Arc::clone(account), self.tls.clone());
        let read = spawn_blocking(move || {
            if let Some(tls) = tls {
                tls.read_again();
            }
            account.login()
        });
        read.await.unwrap_or_else(|_| Err(io::Error::other("larder is ending")))
    }
}

impl LoginSettings {
    /// Reads the password, where it is in a file.
    fn login(&self) -> io::Result<Login> {
        let password = match &self.password {
            None => None,
            Some(Password::Text(text)) => Some(text.clone()),
            Some(Password::File(path)) => {
                let failed = |why: &dyn fmt::Display| {
                    io::Error::other(format!("the password cannot be read from {}: {why}", path.display()))
                };
                let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
                let text = text.trim_end();
                if text.is_empty() {
                    return Err(failed(&"it is empty"));
                }
                Some(text.to_owned())
            }
        };
        Ok(Login::new(self.user.as_deref(), password.as_deref(), self.database))
    }
}
