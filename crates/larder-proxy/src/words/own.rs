//! Results, forward reasons, fates, reasons not to store, and states of servers.
//!
//! In: a variant. Out: its word. Each match names every variant, so that a new one has to say what it means.

use larder_cache::NotStorable;
use larder_http::fields::cache_status::{Forward, RequestResult};
use larder_observe::Label as _;
use larder_origin::ServerState;

use super::word::{Word, whole};
use crate::before::Before;
use crate::help::help;
use crate::not_stored::NotStored;

pub(super) fn result(result: RequestResult) -> Word {
    Word::new(
        result.token(),
        match result {
            RequestResult::Memory => "A fresh response in memory answered.",
            RequestResult::Disk => "A fresh response on a disk answered.",
            RequestResult::File => "A plain file of a store answered.",
            RequestResult::Remote => "A fresh response in Redis or memcached answered.",
            RequestResult::Stale => "A stale response answered, and the request did not wait for the origin.",
            RequestResult::Joined => {
                "The request waited for the fetch of another request, and shared its answer."
            }
            RequestResult::Asked => "The request itself went to the origin.",
            RequestResult::Own => {
                "larder answered by itself: a static file, a redirect, an error or a purge."
            }
            RequestResult::Refused => "The listener refused it, since it was no good request.",
        },
    )
}

pub(super) fn reason(forward: Forward) -> Word {
    let word = |sentence| Word::new(forward.token(), sentence).section("RFC 9211 2.2");
    match forward {
        Forward::Bypass => {
            word("The cache has no part in it: by a setting, or because it has content or is a WebSocket.")
                .helps("The first rule that matches decides: see whether it says cache = \"off\".")
                .forbids(true)
        }
        Forward::Method => word("Its method is never answered from stored responses.").forbids(true),
        Forward::UriMiss => word("Nothing is stored under its URL.")
            .helps("The word before says what became of the URL, and not_stored why a response is not kept."),
        Forward::VaryMiss => word("Responses are stored under its URL, but for other request fields.")
            .helps("Let Vary name few fields with few values."),
        Forward::Miss => word("No stored response can be used, and nothing more is known."),
        Forward::Request => word("A stored response is fresh, but the request does not allow its use.")
            .helps("A reload in a browser does this; request_directives says how far it is heard."),
        Forward::Stale => word("The stored response is stale, or has to be validated before each use.")
            .helps("A longer max-age or ttl, or stale-while-revalidate."),
        Forward::Partial => word("Only a part of the wanted bytes is stored.")
            .helps("One request for the whole: then all ranges are answered."),
    }
}

pub(super) fn before(before: Before) -> Word {
    let word = Word { sentence: whole(before.sentence()).into(), ..Word::new(before.token(), "") };
    match before {
        Before::Evicted => word.helps("A larger memory for the store, or a disk."),
        Before::Idle => word.helps("A longer idle for the store."),
        Before::NotStored(_) => word.helps("The word in not_stored says why."),
        Before::New | Before::Purged | Before::Invalidated | Before::Unknown => word,
    }
}

pub(super) fn not_stored(why: NotStored) -> Word {
    let word = Word::new(why.token(), why.sentence());
    match why {
        NotStored::Rule(rule) => {
            let word = Word::new(rule.token(), rule.sentence()).section(rule.section());
            Word { helps: help(rule), ..word }.forbids(is_forbidden(rule))
        }
        NotStored::NoRoom => word.helps("A larger memory or max_object for the store."),
        NotStored::QueueFull => word.helps("More memory, faster disks, or more of them."),
        NotStored::Failing => word.helps("The messages of larder say what failed."),
        NotStored::MinUses => word.section("configuration").helps("A smaller min_uses stores earlier."),
        NotStored::Unread => word.helps("Ask with GET, or set head = \"pass\"."),
        NotStored::Invalidated | NotStored::Superseded | NotStored::Incomplete => word,
    }
}

/// Whether what forbids it is what a person meant: the request's method, fields and credentials, or the origin's word.
fn is_forbidden(rule: NotStorable) -> bool {
    match rule {
        NotStorable::Method
        | NotStorable::Interim
        | NotStorable::PartialContent
        | NotStorable::NotModified
        | NotStorable::PreconditionFailed
        | NotStorable::RangeNotSatisfiable
        | NotStorable::RequestNoStore
        | NotStorable::MustUnderstand
        | NotStorable::NoStore
        | NotStorable::Private
        | NotStorable::Authorization
        | NotStorable::SessionCookie
        | NotStorable::SetCookieBypass => true,
        NotStorable::VaryAny
        | NotStorable::SetCookie
        | NotStorable::SetSessionCookie
        | NotStorable::SetPersonalCookie
        | NotStorable::NoCache
        | NotStorable::NoLifetime => false,
    }
}

pub(super) fn server_state(state: ServerState) -> Word {
    let word = |sentence| Word::new(state.token(), sentence);
    match state {
        ServerState::Up => word("It takes its share of the requests."),
        ServerState::SlowStart => {
            word("It takes less than its share, since it came or came back a short while ago.")
        }
        ServerState::Ejected => word("It failed too often in a row, and takes no requests for a while.")
            .helps("The failures of its origin say why; ejection sets how many there may be."),
        ServerState::Unhealthy => word("Its health checks fail, and it takes no requests.")
            .helps("Ask for the target of the check on the server itself."),
        ServerState::Draining => word("It has vanished from DNS or from the config, and takes nothing new."),
    }
}
