//! One request with its replies, from handing it to the library to the moment at which nothing is expected any more.
//!
//! In: a request, and the connection. Out: its caller is told, in time or that its time is over; and whether the connection has to end.
//! This goes on when its caller has left, or was told: so a late reply is read by the one who asked, and dropped.

use std::pin::pin;
use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use tokio::task::unconstrained;
use tokio::time::timeout_at;

use super::account::Account;
use super::reply::{commands, meant};
use crate::ask::Ask;
use crate::error::Failure;
use crate::server::Server;

/// Hands a request over with the first poll: the library's queue has room for as many as may be outstanding. So requests are sent in
/// the order of first polls.
///
/// # Errors
/// The connection has to end, for this reason.
pub(super) async fn exchange(
    server: &Server,
    mut connection: MultiplexedConnection,
    account: Arc<Account>,
    ask: Ask,
) -> Result<(), Failure> {
    let Ask { request, deadline, reply, seat: _seat } = ask;
    let commands = commands(&request);
    account.asked(commands.len());
    // A queue of tokio's may put a task off though it has room, and another request would overtake this one.
    let mut replies = pin!(unconstrained(connection.send_packed_commands(&commands, 0, commands.len())));
    let Ok(come) = timeout_at(deadline.answer_by, &mut replies).await else {
        server.timed_out(1);
        let _ = reply.send(Err(Failure::TimedOut));
        let late = timeout_at(deadline.close_at, &mut replies).await.map_err(|_| Failure::TimedOut)?;
        // It fails with the connection only.
        let late = late.map_err(|_| account.failure())?;
        meant(&request, late).map_err(|_| Failure::Malformed)?;
        server.answered_late();
        return Ok(());
    };
    let answer = match come {
        Ok(come) => meant(&request, come).map_err(|_| Failure::Malformed),
        Err(_) => Err(account.failure()),
    };
    if answer.is_ok() {
        server.answered();
    }
    let ended = match &answer {
        Ok(_) => Ok(()),
        Err(failure) => Err(*failure),
    };
    // Its caller may have left.
    let _ = reply.send(answer);
    ended
}
