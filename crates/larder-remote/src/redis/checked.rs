//! The reading half of a connection, checked before the library reads it.
//!
//! In: what the server sends. Out: the same bytes, as long as they are replies within their bounds that were asked for; else the
//! end of the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::account::Account;
use super::scan::Scanner;
use crate::connect::Reader;

/// See the head of the file.
pub(super) struct Checked {
    reader: Reader,
    scanner: Scanner,
    account: Arc<Account>,
}

impl Checked {
    /// Lets pass what `scanner` does.
    pub(super) fn new(reader: Reader, scanner: Scanner, account: Arc<Account>) -> Self {
        Self { reader, scanner, account }
    }
}

impl AsyncRead for Checked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { reader, scanner, account } = &mut *self;
        let before = buffer.filled().len();
        if let Err(error) = ready!(Pin::new(reader).poll_read(context, buffer)) {
            // With TLS 1.3 a server judges larder's certificate when the handshake is over.
            if let Some(why) = larder_tls::refusal(&error) {
                account.say(why);
            }
            return Poll::Ready(Err(error));
        }
        let come = buffer.filled().get(before..).unwrap_or_default();
        match scanner.scan(come).and_then(|replies| account.come(replies)) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(failure) => {
                account.end(failure);
                buffer.set_filled(before);
                // A kind after which the library ends the connection.
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        }
    }
}
