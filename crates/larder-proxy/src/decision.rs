//! What comes next for a request.
//!
//! In: the facts of a step that is over, as [`facts`](crate::facts) makes them, and what has happened to the request before
//! ([`Counters`]). Out: the step that
//! follows. [`next`] is a pure function: it reads no clock, store or counter. Serving takes the steps that it names, and
//! `explain` words them. So the two cannot disagree.
//! Deliberately absent: whether a stored response may be used. That is `larder-cache`'s to say, and a fact here.

use larder_cache::StaleReason;
use larder_http::fields::cache_status::Forward;

use crate::failure::Failure;
use crate::not_stored::NotStored;

/// Looks at the stores before a request stops hoping that another request's fetch will do.
const LOOKS_MAX: u8 = 6;

/// Lost fetches that a request outlives.
const LOST_MAX: u8 = 2;

/// What has happened to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Looks that have led to the origin.
    looks: u8,
    /// Fetches that ended without an outcome.
    lost: u8,
    /// The disks, files and values were asked: what was not found there then is not there.
    has_recalled: bool,
    /// It shares no fetch with others any more.
    alone: bool,
    /// It has waited for others as long as its rule lets it.
    is_impatient: bool,
}

impl Counters {
    /// Of a request that was just made. A `personal` one shares no fetch.
    pub(crate) fn new(personal: bool) -> Self {
        Self { alone: personal, ..Self::default() }
    }

    /// The same once the disks, files and values were asked.
    pub(crate) fn after_recall(self) -> Self {
        Self { has_recalled: true, ..self }
    }

    /// Whether they were.
    #[inline]
    pub(crate) fn has_recalled(&self) -> bool {
        self.has_recalled
    }

    /// Whether it goes alone because it has waited for others as long as its rule lets it.
    pub(crate) fn is_impatient(&self) -> bool {
        self.is_impatient
    }
}

/// What is known after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Facts {
    /// The request has a site and a rule.
    Arrived(Arrived),
    /// The content of a request that is looked up by it was read, up to the bound.
    ContentRead(ContentRead),
    /// The stores have nothing that may be used as it is.
    Missed(Missed),
    /// The origin is to be asked.
    Forwarding(Forwarding),
    /// The table of flights was asked.
    Boarded(Boarding),
    /// An earlier flight was waited for; `in_time` where it ended before the rule's patience did.
    Outlasted { in_time: bool },
    /// The wait for a flight is over.
    Ended(WaitResult),
    /// The origin's answer may be stored.
    Storable(Storable),
}

/// A request and its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Its method is GET or HEAD.
    pub(crate) is_get: bool,
    /// What lies under its path below the site's root.
    pub(crate) document: Option<Document>,
    /// The site has an origin.
    pub(crate) has_origin: bool,
    /// Why the rule sends such requests past the cache.
    pub(crate) passes_by: Option<Forward>,
    /// It is a WebSocket handshake, and its site passes those on.
    pub(crate) upgrades: bool,
    pub(crate) has_content: bool,
}

/// What lies below a site's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    File,
    Directory,
}

/// How much of a request's content was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentRead {
    All,
    TooLong,
    Broken(Failure),
}

/// A look that found nothing to use as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    /// A disk or a file may have it, or another program's memory.
    pub(crate) may_recall: bool,
    /// The latter, which is asked before anything stale is used.
    pub(crate) asks_first: bool,
    /// The request forbids asking the origin (RFC 9111 5.2.1.7).
    pub(crate) only_if_cached: bool,
    /// A stale response that may be used in place of an origin that fails.
    pub(crate) stands_in: Option<StandsIn>,
    /// A fetch is of no use to others.
    pub(crate) for_one: bool,
}

/// A stale response and on what ground it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StandsIn {
    pub(crate) ground: StaleReason,
    /// No refresh can be made with this request and none was begun lately, so it asks the origin itself.
    pub(crate) asks_itself: bool,
}

/// A request for the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forwarding {
    pub(crate) alone: bool,
    /// How often its URL was asked for, this time included; `None` where the rule does not count, or something is stored.
    pub(crate) uses: Option<u8>,
    /// How often it has to be asked for before its response is stored.
    pub(crate) min_uses: u8,
    /// It is a HEAD, and a GET would bring what both can use.
    pub(crate) get_would_do: bool,
}

/// What the table of flights says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boarding {
    /// There is a flight to wait for, this request's own or another's.
    Boarded,
    /// There is one that began before something was invalidated.
    Preceded,
    /// Something was stored since the look.
    Changed,
    /// As many wait as may.
    Full,
}

/// How the wait for a flight ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitResult {
    /// It answers the request.
    Answers,
    /// It is for nobody but the client that asked.
    Unshared,
    /// The same, because of the leader's cookie. `has_cookie` where this request has one as well, so that it cannot lead
    /// for others either.
    NotForOthers { has_cookie: bool },
    /// It may not answer this request.
    Unfit,
    /// It would, but its body takes no new readers.
    BodyClosed,
    /// There is no outcome.
    Lost,
    /// The rule's patience has ended before the flight.
    TooLate,
}

/// An answer that may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Storable {
    /// Its URL was asked for too seldom, as [`Next::Board`] said.
    pub(crate) seldom: bool,
    /// Its body is longer than its store takes.
    pub(crate) is_too_large: bool,
}

/// The step that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The file answers.
    File,
    /// To the directory's own path.
    Redirect,
    /// To the origin and back, past the cache.
    Pass { forward: Forward, detail: Option<&'static str> },
    /// The content belongs to the key, and has to be read first.
    ReadContent,
    /// Look at the stores.
    Look,
    /// Ask the disks, files and values.
    Recall,
    /// A stale response answers.
    UseStale(StaleReason),
    /// Ask the origin, together with others or alone.
    Forward { alone: bool },
    /// Find a flight for it or begin one. `seldom`: what comes is not to be stored yet. `as_get`: ask with GET.
    Board { alone: bool, seldom: bool, as_get: bool },
    /// Wait for the flight.
    Wait,
    /// Wait until the earlier flight is over.
    Outlast,
    /// The flight's outcome answers.
    Answer,
    /// The body is stored while it is sent.
    Keep,
    /// The body is sent through a window, and not stored.
    SendThrough(NotStored),
    /// larder itself answers, and nothing was asked.
    Refuse(Failure),
    /// larder itself answers in the origin's place.
    Fail(Failure),
}

/// What follows on a step that came to `facts`.
// Inlined: a hit asks it as well, and by then nearly all of it is known.
#[inline(always)]
pub(crate) fn next(facts: &Facts, counters: Counters) -> (Next, Counters) {
    match facts {
        Facts::Arrived(arrived) => (way_of(*arrived), counters),
        Facts::ContentRead(read) => (of_content(*read), counters),
        Facts::Missed(missed) => of_miss(*missed, counters),
        Facts::Forwarding(forwarding) => (of_forwarding(*forwarding), counters),
        Facts::Boarded(boarding) => (of_boarding(*boarding), counters),
        // Whoever began before this request came is waited for once: that look does not count.
        Facts::Outlasted { in_time } => {
            let counters = Counters { looks: counters.looks.saturating_sub(1), ..counters };
            (Next::Look, if *in_time { counters } else { counters.impatient() })
        }
        Facts::Ended(result) => of_wait(*result, counters),
        Facts::Storable(storable) => (of_storable(*storable), counters),
    }
}

#[inline(always)]
fn way_of(arrived: Arrived) -> Next {
    let is_get = arrived.is_get;
    match arrived.document {
        Some(Document::File) => return Next::File,
        Some(Document::Directory) => return Next::Redirect,
        None => {}
    }
    if !arrived.has_origin {
        return Next::Refuse(if is_get { Failure::NO_SUCH_FILE } else { Failure::METHOD });
    }
    if let Some(forward) = arrived.passes_by {
        return Next::Pass { forward, detail: None };
    }
    match (arrived.upgrades, is_get, arrived.has_content) {
        (true, _, _) => Next::Pass { forward: Forward::Bypass, detail: Some("upgrade") },
        (false, true, false) => Next::Look,
        (false, true, true) => Next::Pass { forward: Forward::Bypass, detail: Some("request-body") },
        (false, false, _) => Next::ReadContent,
    }
}

fn of_content(read: ContentRead) -> Next {
    match read {
        ContentRead::All => Next::Look,
        ContentRead::TooLong => Next::Pass { forward: Forward::Bypass, detail: Some("query-too-large") },
        ContentRead::Broken(failure) => Next::Refuse(failure),
    }
}

fn of_miss(missed: Missed, counters: Counters) -> (Next, Counters) {
    // What a disk may have is stored as well.
    if missed.only_if_cached && !missed.may_recall {
        return (Next::Refuse(Failure::ONLY_IF_CACHED), counters);
    }
    // What an application has put there since is newer than anything stale, and spares the origin whatever a mark says.
    if missed.asks_first && !counters.has_recalled {
        return (Next::Recall, counters.after_recall());
    }
    if let Some(StandsIn { ground, asks_itself: false }) = missed.stands_in {
        return (Next::UseStale(ground), counters);
    }
    if missed.may_recall && !counters.has_recalled {
        return (Next::Recall, counters.after_recall());
    }
    if missed.only_if_cached {
        return (Next::Refuse(Failure::ONLY_IF_CACHED), counters);
    }
    let looks = counters.looks.saturating_add(1);
    let alone = counters.alone || missed.for_one || looks > LOOKS_MAX;
    (Next::Forward { alone }, Counters { looks, alone, ..counters })
}

fn of_forwarding(forwarding: Forwarding) -> Next {
    let Forwarding { alone, uses, min_uses, get_would_do } = forwarding;
    let seldom = uses.is_some_and(|uses| uses < min_uses);
    // What is for this client alone, or not to be stored yet, costs the origin no content.
    Next::Board { alone, seldom, as_get: get_would_do && !alone && !seldom }
}

fn of_boarding(boarding: Boarding) -> Next {
    match boarding {
        Boarding::Boarded => Next::Wait,
        Boarding::Preceded => Next::Outlast,
        Boarding::Changed => Next::Look,
        Boarding::Full => Next::Fail(Failure::WAITERS_FULL),
    }
}

fn of_wait(result: WaitResult, counters: Counters) -> (Next, Counters) {
    let alone = Counters { alone: true, ..counters };
    match result {
        WaitResult::Answers => (Next::Answer, counters),
        WaitResult::Unshared | WaitResult::BodyClosed | WaitResult::NotForOthers { has_cookie: true } => {
            (Next::Look, alone)
        }
        WaitResult::Unfit | WaitResult::NotForOthers { has_cookie: false } => (Next::Look, counters),
        WaitResult::Lost if counters.lost == LOST_MAX => (Next::Fail(Failure::FETCH_LOST), counters),
        WaitResult::Lost => (Next::Look, Counters { lost: counters.lost + 1, ..counters }),
        WaitResult::TooLate => (Next::Look, counters.impatient()),
    }
}

fn of_storable(storable: Storable) -> Next {
    match storable {
        Storable { seldom: true, .. } => Next::SendThrough(NotStored::MinUses),
        Storable { is_too_large: true, .. } => Next::SendThrough(NotStored::NoRoom),
        _ => Next::Keep,
    }
}

impl Counters {
    fn impatient(self) -> Self {
        Self { alone: true, is_impatient: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Counters =
        Counters { looks: 0, lost: 0, has_recalled: false, alone: false, is_impatient: false };
    const MISS: Missed = Missed {
        may_recall: false,
        asks_first: false,
        only_if_cached: false,
        stands_in: None,
        for_one: false,
    };
    const ASKS_FIRST: Missed = Missed { may_recall: true, asks_first: true, ..MISS };
    const STANDS_IN: Option<StandsIn> =
        Some(StandsIn { ground: StaleReason::StaleIfError, asks_itself: false });
    const ASKS_ITSELF: Option<StandsIn> =
        Some(StandsIn { ground: StaleReason::StaleIfError, asks_itself: true });
    const ALONE: Counters = Counters { alone: true, ..NEW };
    const IMPATIENT: Counters = Counters { is_impatient: true, ..ALONE };
    const RECALLED: Counters = Counters { has_recalled: true, ..NEW };
    const REFUSED: Next = Next::Refuse(Failure::ONLY_IF_CACHED);

    fn arrived(is_get: bool) -> Arrived {
        Arrived {
            is_get,
            document: None,
            has_origin: true,
            passes_by: None,
            upgrades: false,
            has_content: false,
        }
    }

    fn pass(forward: Forward, detail: impl Into<Option<&'static str>>) -> Next {
        Next::Pass { forward, detail: detail.into() }
    }

    #[test]
    fn the_way_of_a_request_is_decided_when_it_arrives() {
        let (get, post, query) = (true, false, false);
        let of = |document| Arrived { document: Some(document), has_origin: false, ..arrived(get) };
        let bypass = Some(Forward::Bypass);
        let table = [
            (of(Document::File), Next::File),
            (of(Document::Directory), Next::Redirect),
            (Arrived { has_origin: false, ..arrived(get) }, Next::Refuse(Failure::NO_SUCH_FILE)),
            (Arrived { has_origin: false, ..arrived(post) }, Next::Refuse(Failure::METHOD)),
            (Arrived { passes_by: Some(Forward::Method), ..arrived(post) }, pass(Forward::Method, None)),
            (Arrived { passes_by: bypass, upgrades: true, ..arrived(get) }, pass(Forward::Bypass, None)),
            (Arrived { upgrades: true, ..arrived(get) }, pass(Forward::Bypass, "upgrade")),
            (Arrived { has_content: true, ..arrived(get) }, pass(Forward::Bypass, "request-body")),
            (arrived(get), Next::Look),
            (Arrived { has_content: true, ..arrived(query) }, Next::ReadContent),
            (arrived(query), Next::ReadContent),
        ];
        for (arrived, expected) in table {
            let facts = Facts::Arrived(arrived);
            assert_eq!(next(&facts, NEW), (expected, NEW), "{facts:?}");
        }
    }

    #[test]
    fn each_step_has_one_that_follows() {
        let look = |counters| (Next::Look, counters);
        let forward = |alone, counters| (Next::Forward { alone }, counters);
        let looked = |looks, counters| Counters { looks, ..counters };
        let broken = Failure::new(http::StatusCode::BAD_REQUEST, "client-body");
        let forwarding = Forwarding { alone: false, uses: None, min_uses: 3, get_would_do: true };
        let board = |alone, seldom, as_get| (Next::Board { alone, seldom, as_get }, NEW);
        let last = Counters { lost: LOST_MAX, ..NEW };
        let storable = |seldom, is_too_large| Facts::Storable(Storable { seldom, is_too_large });
        let cookie = |has_cookie| Facts::Ended(WaitResult::NotForOthers { has_cookie });
        let table = [
            (Facts::ContentRead(ContentRead::All), NEW, look(NEW)),
            (Facts::ContentRead(ContentRead::TooLong), NEW, (pass(Forward::Bypass, "query-too-large"), NEW)),
            (Facts::ContentRead(ContentRead::Broken(broken)), NEW, (Next::Refuse(broken), NEW)),
            // Looks.
            (Facts::Missed(MISS), NEW, forward(false, looked(1, NEW))),
            (Facts::Missed(MISS), ALONE, forward(true, looked(1, ALONE))),
            (Facts::Missed(Missed { for_one: true, ..MISS }), NEW, forward(true, looked(1, ALONE))),
            (Facts::Missed(MISS), looked(LOOKS_MAX - 1, NEW), forward(false, looked(LOOKS_MAX, NEW))),
            (Facts::Missed(MISS), looked(LOOKS_MAX, NEW), forward(true, looked(LOOKS_MAX + 1, ALONE))),
            (Facts::Missed(Missed { may_recall: true, ..MISS }), NEW, (Next::Recall, RECALLED)),
            (
                Facts::Missed(Missed { may_recall: true, ..MISS }),
                RECALLED,
                forward(false, looked(1, RECALLED)),
            ),
            (Facts::Missed(Missed { only_if_cached: true, ..MISS }), NEW, (REFUSED, NEW)),
            (
                Facts::Missed(Missed { only_if_cached: true, may_recall: true, ..MISS }),
                NEW,
                (Next::Recall, RECALLED),
            ),
            (
                Facts::Missed(Missed { only_if_cached: true, may_recall: true, ..MISS }),
                RECALLED,
                (REFUSED, RECALLED),
            ),
            (
                Facts::Missed(Missed { only_if_cached: true, stands_in: STANDS_IN, ..MISS }),
                NEW,
                (REFUSED, NEW),
            ),
            (
                Facts::Missed(Missed { stands_in: STANDS_IN, may_recall: true, ..MISS }),
                NEW,
                (Next::UseStale(StaleReason::StaleIfError), NEW),
            ),
            (Facts::Missed(Missed { stands_in: ASKS_ITSELF, ..MISS }), NEW, forward(false, looked(1, NEW))),
            // Values of others, before what is stale and under a mark.
            (Facts::Missed(ASKS_FIRST), NEW, (Next::Recall, RECALLED)),
            (Facts::Missed(Missed { stands_in: STANDS_IN, ..ASKS_FIRST }), NEW, (Next::Recall, RECALLED)),
            (
                Facts::Missed(Missed { stands_in: STANDS_IN, ..ASKS_FIRST }),
                RECALLED,
                (Next::UseStale(StaleReason::StaleIfError), RECALLED),
            ),
            (Facts::Missed(Missed { for_one: true, ..ASKS_FIRST }), NEW, (Next::Recall, RECALLED)),
            (Facts::Missed(Missed { only_if_cached: true, ..ASKS_FIRST }), NEW, (Next::Recall, RECALLED)),
            (Facts::Missed(Missed { only_if_cached: true, ..ASKS_FIRST }), RECALLED, (REFUSED, RECALLED)),
            (Facts::Missed(ASKS_FIRST), RECALLED, forward(false, looked(1, RECALLED))),
            // Forwarding.
            (Facts::Forwarding(forwarding), NEW, board(false, false, true)),
            (Facts::Forwarding(Forwarding { alone: true, ..forwarding }), NEW, board(true, false, false)),
            (Facts::Forwarding(Forwarding { uses: Some(2), ..forwarding }), NEW, board(false, true, false)),
            (Facts::Forwarding(Forwarding { uses: Some(3), ..forwarding }), NEW, board(false, false, true)),
            (
                Facts::Forwarding(Forwarding { get_would_do: false, ..forwarding }),
                NEW,
                board(false, false, false),
            ),
            // Flights.
            (Facts::Boarded(Boarding::Boarded), NEW, (Next::Wait, NEW)),
            (Facts::Boarded(Boarding::Preceded), NEW, (Next::Outlast, NEW)),
            (Facts::Boarded(Boarding::Changed), NEW, look(NEW)),
            (Facts::Boarded(Boarding::Full), NEW, (Next::Fail(Failure::WAITERS_FULL), NEW)),
            (Facts::Outlasted { in_time: true }, looked(3, NEW), look(looked(2, NEW))),
            (Facts::Outlasted { in_time: false }, looked(3, NEW), look(looked(2, IMPATIENT))),
            (Facts::Ended(WaitResult::Answers), NEW, (Next::Answer, NEW)),
            (Facts::Ended(WaitResult::Unshared), NEW, look(ALONE)),
            (Facts::Ended(WaitResult::BodyClosed), NEW, look(ALONE)),
            (cookie(true), NEW, look(ALONE)),
            (cookie(false), NEW, look(NEW)),
            (Facts::Ended(WaitResult::Unfit), NEW, look(NEW)),
            (Facts::Ended(WaitResult::Lost), NEW, look(Counters { lost: 1, ..NEW })),
            (Facts::Ended(WaitResult::Lost), last, (Next::Fail(Failure::FETCH_LOST), last)),
            (Facts::Ended(WaitResult::TooLate), NEW, look(IMPATIENT)),
            // Answers.
            (storable(false, false), NEW, (Next::Keep, NEW)),
            (storable(true, false), NEW, (Next::SendThrough(NotStored::MinUses), NEW)),
            (storable(false, true), NEW, (Next::SendThrough(NotStored::NoRoom), NEW)),
            (storable(true, true), NEW, (Next::SendThrough(NotStored::MinUses), NEW)),
        ];
        for (facts, counters, expected) in table {
            assert_eq!(next(&facts, counters), expected, "{facts:?} {counters:?}");
        }
    }

    #[test]
    fn a_request_that_is_always_sent_back_goes_alone_in_the_end() {
        let mut counters = NEW;
        for look in 1.. {
            let (step, after) = next(&Facts::Missed(MISS), counters);
            if step == (Next::Forward { alone: true }) {
                assert_eq!(look, LOOKS_MAX + 1);
                break;
            }
            counters = next(&Facts::Boarded(Boarding::Changed), after).1;
        }
    }
}
