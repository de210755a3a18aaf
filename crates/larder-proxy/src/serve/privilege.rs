//! What a client that may purge may ask for beside purges: a URL fetched anew, and how its answer came about.
//!
//! In: a GET before anything of it was changed. Out: what it may have ([`Privilege`]). Browsers send `no-cache` with each reload, so
//! for a client that may not purge all of this means what it means anyway. Nothing is refused here, and nothing is counted: an
//! application's own `Authorization` is no attempt at a purge. The secret that let a client in goes no further.

use http::{HeaderName, Method};
use larder_http::message::{Peer, RequestHead};

use super::purge::{named_client, read_as_purge};
use crate::plan::Plan;
use crate::purge::{self, Reading};
use crate::purges::access::{Access, Asking};

/// Asks to be shown what a cache knows of the answer.
const DEBUG: HeaderName = HeaderName::from_static("x-cache-debug");

/// What a request may have because its client may purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Privilege {
    /// What is stored is confirmed or replaced first ([`super::renew`]).
    pub(super) renews: bool,
    /// The answer shows its tags, and whether it was stored.
    pub(super) shows: bool,
}

/// What a request may have.
#[inline(always)]
pub(super) fn of(plan: &Plan, head: &mut RequestHead, peer: &Peer) -> Privilege {
    let may_ask = plan.has_open_purges && head.method == Method::GET && {
        purge::may_refresh(&head.fields) || head.fields.contains_key(&DEBUG)
    };
    if may_ask { asked_for(plan, head, peer) } else { Privilege::default() }
}

#[inline(never)]
fn asked_for(plan: &Plan, head: &mut RequestHead, peer: &Peer) -> Privilege {
    let nothing = Privilege::default();
    let Some((_, site)) = plan.router.site(head.authority.host()) else { return nothing };
    let Access::Open(rules) = &site.settings.purge else { return nothing };
    let wanted = Privilege {
        renews: matches!(read_as_purge(head, None), Reading::Refresh(_)),
        shows: head.fields.contains_key(&DEBUG),
    };
    if wanted == nothing {
        return nothing;
    }
    let remote = peer.remote.ip();
    let asking = Asking { fields: &head.fields, peer: remote, client: named_client(plan, head, remote) };
    if rules.admits(&asking).is_err() {
        return nothing;
    }
    rules.take_secrets(&mut head.fields);
    wanted
}
