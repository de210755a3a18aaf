//! One client's exchange: what it asked, under which rule, and what is said about how it went.
//!
//! The one [`CacheStatus`] that the steps fill in is what the field, the access log and the metrics are made from, so
//! they cannot disagree.

use std::sync::Arc;
use std::time::Duration;

use http::header::{REFERER, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::{NotStorable, directives};
use larder_http::fields::cache_status::{CACHE_STATUS, CacheStatus, Forward, Outcome};
use larder_http::message::{RequestHead, Response, ResponseHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_observe::{Label, LogRecord, Served, Text, Vocabulary};
use larder_origin::ServerTag;
use larder_store::Loss;

use crate::asked::{Asked, Asker};
use crate::collapse::Storing;
use crate::invalidation::InvalidationKind;
use crate::key;
use crate::proxy::Worker;
use crate::receipt::{Account, Logged, Receipt};
use crate::route::Site;
use crate::settings::{OriginChoice, RuleSettings};

/// The word for a hit on a plain file that somebody put there, or changed.
pub(crate) const BY_HAND: &str = "by-hand";

/// The word for cookies that this client alone is sent: what is stored, and all others get, is without them.
pub(crate) const COOKIES_WITHHELD: &str = "cookies-withheld";

/// The word for a WebSocket handshake on a site without `websocket = true`.
pub(crate) const UPGRADE_IS_OFF: &str = "websocket-off";

/// An exchange from the moment that its site and rule are known: what is asked, who asks, and how it went. A request of
/// larder's own making has the same two parts.
pub(crate) struct Exchange {
    pub(crate) asked: Asked,
    pub(crate) asker: Asker,
    /// The origin that was asked, or whose answer to another request was waited for.
    pub(crate) origin: Option<Arc<str>>,
    /// Whether it was looked up under a key.
    pub(crate) keyed: bool,
    pub(crate) started: Now,
    /// How long it waited for another's fetch.
    pub(crate) collapse_wait: Option<Duration>,
    pub(crate) origin_time: Option<Duration>,
    /// Whether the response that it is sent is stored, where that is known only at the end.
    pub(crate) storing: Option<Arc<Storing>>,
}

/// A response and how it came about.
pub(crate) struct Reply {
    pub(crate) response: Response,
    pub(crate) status: CacheStatus,
}

impl Exchange {
    /// At the beginning. Inlined, because both parts are large.
    #[inline(always)]
    pub(crate) fn new(asked: Asked, asker: Asker, started: Now) -> Self {
        Self {
            asked,
            asker,
            origin: None,
            keyed: false,
            started,
            collapse_wait: None,
            origin_time: None,
            storing: None,
        }
    }

    pub(crate) fn settings(&self) -> &Arc<RuleSettings> {
        self.asked.route.settings()
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        self.asked.route.site()
    }

    /// Keeps the client at the server that answered it, and it alone: an answer that other caches may give to others is left
    /// as it is.
    pub(crate) fn stay(&self, choice: Option<&OriginChoice>, met: ServerTag, fields: &mut HeaderMap) {
        let name = choice.and_then(|choice| choice.sticky.as_ref());
        let is_new = self.asker.server != Some(met);
        let Some(name) = name.filter(|_| is_new && !directives::invites_sharing(fields)) else {
            return;
        };
        let secure = if self.asked.head.scheme == Scheme::Https { "; Secure" } else { "" };
        let cookie = format!("{name}={met}; Path=/; HttpOnly; SameSite=Lax{secure}");
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            fields.append(SET_COOKIE, cookie);
        }
    }

    /// Completes a response: the rule's edits, Cache-Status, counters, log.
    pub(crate) fn close(&self, worker: &Worker, reply: Reply) -> (Response, Receipt) {
        let Reply { mut response, status } = reply;
        let receipt = self.close_in_place(worker, &mut response, status);
        (response, receipt)
    }

    /// The same where the response lies, which is 300 bytes to copy.
    pub(crate) fn close_in_place(
        &self,
        worker: &Worker,
        response: &mut Response,
        status: CacheStatus,
    ) -> Receipt {
        let edits = &self.settings().response;
        if !edits.is_empty() {
            let status = response.head.status;
            let before = std::mem::replace(&mut response.head, ResponseHead::new(status, HeaderMap::new()));
            response.head.fields = before.into_fields();
            edits.apply(&mut response.head.fields);
        }
        let with_key = (self.keyed && self.settings().debug)
            .then(|| status.value_with_key(&key::text(&self.asked.head, &self.settings().key)));
        worker.count(self, response.head.status, &status);
        let log = worker.proxy.log_format().map(|format| {
            let mut record = LogRecord::new(self.started.wall, self.asker.client);
            record.status = response.head.status;
            record.cache_status = Some(&status);
            self.tell(&mut record);
            if let Some(value) = &with_key {
                record.set(Text::CacheStatus, value.as_bytes());
            }
            Logged { line: record.line(format), stored: status.stored, storing: self.storing.clone() }
        });
        match with_key {
            Some(value) => drop(response.head.fields.append(CACHE_STATUS, value)),
            None => response.head.cache_status = Some(status),
        }
        let served = match status.outcome {
            Outcome::Hit => Served::Hit,
            Outcome::Forwarded(_) => Served::Forwarded,
            Outcome::Own => Served::Local,
        };
        let (route, started) = (self.site().settings.route, self.started);
        Receipt(Some(Account { route, started, served, log }))
    }

    /// What a line in the log says of the exchange beside its answer. Filled in where it lies: it is 300 bytes.
    #[inline(always)]
    fn tell<'a>(&'a self, record: &mut LogRecord<'a>) {
        record.collapse_wait = self.collapse_wait;
        record.origin_time = self.origin_time;
        record.set(Text::Site, self.site().settings.name.as_bytes());
        record.set(Text::Origin, self.origin.as_deref().unwrap_or_default().as_bytes());
        tell_head(&self.asked.head, self.asked.raw_target(), record);
    }
}

/// What a line in the log says of a request.
#[inline(always)]
pub(crate) fn tell_head<'a>(head: &'a RequestHead, target: &'a Target, record: &mut LogRecord<'a>) {
    record.scheme = head.scheme;
    record.version = head.version;
    record.set_target(target.path().as_bytes(), target.query().map(str::as_bytes));
    record.set(Text::Method, head.method.as_str().as_bytes());
    record.set(Text::Host, head.authority.as_str().as_bytes());
    let fields = &head.fields;
    if !fields.is_empty() {
        let field = |name| fields.get(name).map_or(&[][..], HeaderValue::as_bytes);
        record.set(Text::UserAgent, field(USER_AGENT));
        record.set(Text::Referer, field(REFERER));
    }
}

impl Worker {
    #[inline]
    fn count(&self, exchange: &Exchange, status: StatusCode, said: &CacheStatus) {
        self.metrics.request(exchange.site().settings.route, &exchange.asked.head.method, status);
        let cache = exchange.settings().store_id;
        match said.outcome {
            Outcome::Hit => {
                self.metrics.hit(cache);
                if said.detail == Some(BY_HAND) {
                    self.metrics.by_hand(cache);
                }
            }
            Outcome::Forwarded(reason) => self.metrics.forwarded(cache, &ForwardLabel(reason)),
            Outcome::Own => {}
        }
        if let Some(waited) = exchange.collapse_wait.filter(|_| said.collapsed) {
            self.metrics.collapsed(cache, waited);
        }
    }
}

impl Label for InvalidationKind {
    const NAME: &'static str = "kind";
    const TOKENS: &'static [&'static str] = &["unsafe-method", "purge"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// Why something is fetched that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefreshKind {
    /// It is stale and was used all the same.
    Behind,
    /// It is in use and its lifetime ends soon.
    Ahead,
    /// The last attempt failed, and it stands in meanwhile.
    Down,
    /// A disk did not keep up with a body when it was sent, twice.
    Gaps,
}

impl Label for RefreshKind {
    const NAME: &'static str = "kind";
    const TOKENS: &'static [&'static str] = &["behind", "ahead", "down", "gaps"];

    fn index(&self) -> usize {
        *self as usize
    }
}

/// The words that counters are told apart by.
pub fn vocabulary() -> Vocabulary {
    Vocabulary::of::<ForwardLabel, NotStoredLabel, InvalidationKind, RefreshKind>()
}

/// A forward reason as a label.
pub(crate) struct ForwardLabel(pub(crate) Forward);

impl Label for ForwardLabel {
    const NAME: &'static str = "status";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = [""; Forward::ALL.len()];
        let mut index = 0;
        while index < tokens.len() {
            tokens[index] = Forward::ALL[index].token();
            index += 1;
        }
        tokens
    };

    fn index(&self) -> usize {
        self.0 as usize
    }
}

/// Why a response was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotStored {
    /// A rule of caching forbids it.
    Rule(NotStorable),
    /// No room could be made.
    NoRoom,
    /// It was invalidated while it was fetched.
    Invalidated,
    /// A later one was stored while its body arrived.
    Superseded,
    /// It outgrew its room, or nobody was left, or it broke.
    Incomplete,
    /// Its URL has not been asked for often enough yet.
    MinUses,
    /// A HEAD caused the fetch, and nobody asked for so much content.
    Unread,
    /// What it was written to did not keep up.
    QueueFull,
    /// What it was written to failed.
    Failing,
}

impl NotStored {
    /// For what its body was lost.
    pub(crate) fn of(loss: Loss) -> Self {
        match loss {
            Loss::NoRoom => Self::NoRoom,
            Loss::QueueFull => Self::QueueFull,
            Loss::Failing => Self::Failing,
        }
    }

    /// What a store's operator has to know of it; nothing where it is no store's doing.
    pub(crate) fn says_of_store(self) -> Option<&'static str> {
        match self {
            Self::QueueFull => Some(
                "what it is written to does not keep up, and nobody waits for that; larder_disk_refused_total counts \
                 the pieces, and what is there of it is completed by later requests where the origin answers ranges",
            ),
            Self::NoRoom => {
                Some("there is no room for it in the store's memory, or its body is larger than max_object")
            }
            Self::Failing => Some("what it is written to failed, or lost some of it"),
            Self::Rule(_)
            | Self::Invalidated
            | Self::Superseded
            | Self::Incomplete
            | Self::MinUses
            | Self::Unread => None,
        }
    }

    /// What is told of the last attempt.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::QueueFull => {
                "What it was written to did not keep up with the client: it was served, and not stored whole."
            }
            Self::NoRoom => "There was no room for it in the store, or it was larger than max_object.",
            Self::Failing => "What it was written to failed, or lost some of it.",
            Self::Invalidated => "It was invalidated while it was fetched.",
            Self::Superseded => "A later one was stored while its body arrived.",
            Self::Incomplete => "Its body did not come to its end, or nobody was left to read it.",
            Self::MinUses => "Its URL had not been asked for often enough.",
            Self::Unread => "A HEAD caused its fetch, and no client asked for so much content.",
            Self::Rule(_) => "A rule of caching forbade it.",
        }
    }

    /// The fixed word for Cache-Status, log and metric.
    pub(crate) fn token(self) -> &'static str {
        NotStoredLabel(self).token()
    }
}

pub(crate) struct NotStoredLabel(pub(crate) NotStored);

impl Label for NotStoredLabel {
    const NAME: &'static str = "reason";
    const TOKENS: &'static [&'static str] = &{
        let mut tokens = ["no-room"; NotStorable::ALL.len() + 8];
        let mut index = 0;
        while index < NotStorable::ALL.len() {
            tokens[index] = NotStorable::ALL[index].token();
            index += 1;
        }
        tokens[index + 1] = "invalidated";
        tokens[index + 2] = "superseded";
        tokens[index + 3] = "incomplete";
        tokens[index + 4] = "min-uses";
        tokens[index + 5] = "unread";
        tokens[index + 6] = "queue-full";
        tokens[index + 7] = "failing";
        tokens
    };

    fn index(&self) -> usize {
        let rules = NotStorable::ALL.len();
        match self.0 {
            NotStored::Rule(reason) => reason as usize,
            NotStored::NoRoom => rules,
            NotStored::Invalidated => rules + 1,
            NotStored::Superseded => rules + 2,
            NotStored::Incomplete => rules + 3,
            NotStored::MinUses => rules + 4,
            NotStored::Unread => rules + 5,
            NotStored::QueueFull => rules + 6,
            NotStored::Failing => rules + 7,
        }
    }
}
