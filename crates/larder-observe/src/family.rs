//! Every metric family, declared once: name, kind, labels, what it says and why it is there.
//!
//! `/metrics` and docs/reference/metrics.md are both made from this table. Names follow Prometheus's rules: prefix
//! `larder_`, base units, `_total` for counters; what all programs report keeps its common `process_` name.
//! Who fills a family: the counters of this crate, or, for levels that others keep already (stores, runtimes), the
//! binary at the moment of a scrape. The listener and the way to the origins count and declare their own.

/// What kind of numbers a family holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, from the start of the process.
    Counter,
    /// A level.
    Gauge,
    /// Observations in buckets, with their sum and count.
    Histogram,
}

impl Kind {
    /// Of a family that another crate counts, by the ending of its name; no crate but this one keeps histograms.
    pub fn of(name: &str) -> Self {
        if name.ends_with("_total") { Self::Counter } else { Self::Gauge }
    }

    /// The word of the text format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A family's declaration.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Full name, with prefix and unit.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// What one unit of the value is: `requests`, `seconds`, `bytes`.
    pub unit: &'static str,
    /// Label names, in the order they are printed.
    pub labels: &'static [&'static str],
    /// One sentence for the HELP line.
    pub help: &'static str,
    /// Why it is measured: what to look at it for.
    pub reason: &'static str,
}

macro_rules! families {
    ($($id:ident = $name:literal $kind:ident $unit:literal [$($label:literal),*] $help:literal $reason:literal;)*) => {
        $(
            #[doc = $help]
            pub const $id: Family = Family {
                name: $name,
                kind: Kind::$kind,
                unit: $unit,
                labels: &[$($label),*],
                help: $help,
                reason: $reason,
            };
        )*
        /// All families, in the order of the reference page.
        pub const ALL: &[Family] = &[$($id),*];
    };
}

families! {
    REQUESTS = "larder_requests_total" Counter "requests" ["site", "method", "code_class"]
        "Requests answered, by site, method and class of status code."
        "The rate of traffic and of errors. `site` is the name of the site, or its first host; unknown methods are `other`.";
    REQUESTS_TURNED_AWAY = "larder_requests_turned_away_total" Counter "requests" ["reason"]
        "Requests that belong to no site, by reason."
        "`unknown-host` (421), `climbing-path` (400) and `loop` (508): the words of `Cache-Status` and of the log.";
    REQUEST_SECONDS = "larder_request_duration_seconds" Histogram "seconds" ["served"]
        "Time from a request's head to the end of its response."
        "What clients wait for, apart for `hit`, `forwarded` and `local` (static files and errors).";
    RESPONSE_BYTES = "larder_response_body_bytes_total" Counter "bytes" ["site"]
        "Response body bytes handed to the kernel."
        "Traffic towards clients; beside the origin's own figures it shows what caching saves.";
    RESPONSES_ABORTED = "larder_responses_aborted_total" Counter "responses" ["site"]
        "Responses that did not reach their end."
        "Clients that left or stalled, and bodies that broke at the origin.";
    LOOKUPS = "larder_cache_lookups_total" Counter "lookups" ["store", "status"]
        "Cache look-ups by outcome."
        "The hit ratio. `status` is `hit` or the reason why the request was forwarded, as in Cache-Status (RFC 9211).";
    MISSES = "larder_misses_total" Counter "requests" ["store", "before"]
        "Requests for URLs under which nothing is stored, by what became of them."
        "`evicted` asks for a larger store. `idle` was not asked for in a while, `new` not at all lately, `purged` and `invalidated` were taken out, and of `not-stored` ones `larder_not_stored_total` has the reasons. `unknown` was stored once.";
    COLLAPSED = "larder_collapsed_requests_total" Counter "requests" ["store"]
        "Requests that joined another request's fetch instead of asking the origin."
        "How much load collapsing takes off the origin.";
    LOCK_WAIT_SECONDS = "larder_lock_wait_seconds" Histogram "seconds" []
        "Time a request waited for another request's fetch to produce a head."
        "The price of collapsing: it should stay near the origin's own response time.";
    COLLAPSE_ALONE = "larder_collapse_went_alone_total" Counter "requests" []
        "Requests that waited `collapse_wait` for another request's fetch and then asked the origin themselves."
        "When this rises, the origin is slower than what its clients are said to wait.";
    REFRESHES = "larder_refreshes_total" Counter "fetches" ["kind"]
        "Fetches that nobody waits for."
        "`behind` a stale answer, `ahead` of a lifetime's end, `down` while the last attempt has failed, `gaps` of a body with which a disk did not keep up twice.";
    REFRESHES_PUT_OFF = "larder_refreshes_put_off_total" Counter "fetches" []
        "Fetches that nobody waits for and that did not begin, because too many were under way."
        "When this rises, more goes stale than the origins can bring again: longer lifetimes, or `jitter`, help.";
    COOKIES_WITHHELD = "larder_cookies_withheld_total" Counter "responses" []
        "Answers of origins with cookies that may be one person's: what is stored is without them."
        "Each is a cookie that a client would have shared with all others. `detail=cookies-withheld` in the log tells the URLs.";
    STORED = "larder_stored_total" Counter "responses" ["store"]
        "Responses stored."
        "The rate of fills.";
    FILES_BY_HAND = "larder_files_by_hand_total" Counter "requests" ["store"]
        "Requests answered by a plain file that somebody put there or changed."
        "`detail=by-hand` in Cache-Status: which answers are not the origin's own.";
    NOT_STORED = "larder_not_stored_total" Counter "responses" ["reason"]
        "Responses that were not stored, by reason."
        "Why the hit ratio is not higher: the reasons are those of the log and of `Cache-Status`.";
    RULE_REQUESTS = "larder_rule_requests_total" Counter "requests" ["site", "rule", "result"]
        "Requests answered, by rule and by who answered them."
        "`memory`, `disk`, `file` and `remote` are fresh hits by where the bytes came from, `stale` ones that were not fresh. `joined` waited for another request's fetch, `asked` went to the origin, `own` is larder's answer. Together they are all requests but those in `larder_requests_refused_total`.";
    RULE_FORWARDED = "larder_rule_forwarded_total" Counter "requests" ["site", "rule", "status"]
        "Requests that were no hit, by rule and by the reason."
        "Which rule costs the hit ratio, and why. The words are those of `larder_cache_lookups_total`.";
    RULE_BYTES = "larder_rule_body_bytes_total" Counter "bytes" ["site", "rule", "from"]
        "Response body bytes handed to the kernel, by rule and by where they came from."
        "`store`, `origin` (also by another request's fetch) and `own`: what the origin would have sent without a cache.";
    RULE_STORED = "larder_rule_stored_total" Counter "responses" ["site", "rule"]
        "Responses stored, by rule."
        "The rate of fills of each rule.";
    RULE_NOT_STORED = "larder_rule_not_stored_total" Counter "responses" ["site", "rule", "reason"]
        "Responses that were not stored, by rule and reason."
        "Which rule's responses cannot be stored, and why.";
    RULE_MISSES = "larder_rule_misses_total" Counter "requests" ["site", "rule", "before"]
        "Requests for URLs under which nothing is stored, by rule and by what became of them."
        "The words are those of `larder_misses_total`.";
    RULE_ORIGIN_ANSWERS = "larder_rule_origin_answers_total" Counter "answers" ["site", "rule"]
        "Final heads of origins, by the rule of the request that they were asked for."
        "Beside the requests of the rule it shows how many of them the origin was spared.";
    RULE_ORIGIN_SECONDS = "larder_rule_origin_seconds_total" Counter "seconds" ["site", "rule"]
        "Time from asking an origin to its final head, by rule."
        "Divided by the answers it is the mean time that a hit of the rule saves the origin.";
    RULE_RECEIVED = "larder_rule_received_bytes_total" Counter "bytes" ["site", "rule"]
        "Bytes of content that origins sent, by the rule of the request that they were asked for."
        "Beside `larder_rule_body_bytes_total` it shows what of the origin's traffic the cache saves, rule by rule.";
    LET_GO = "larder_slow_readers_total" Counter "responses" ["outcome"]
        "Responses whose client read a large body so slowly that its store let go of it."
        "`resumed` ones went on from a new fetch of the rest; `cut` ones could not: no strong `ETag`, or an origin that answers no ranges.";
    CACHE_BYTES = "larder_cache_bytes" Gauge "bytes" ["store", "tier"]
        "Bytes held by a store."
        "Fill level; it includes bytes that an evicted response still holds for its last reader.";
    CACHE_OBJECTS = "larder_cache_objects" Gauge "responses" ["store", "tier"]
        "Responses held by a store."
        "Fill level in responses; beside the bytes it gives their mean size.";
    CACHE_MAX_BYTES = "larder_cache_max_bytes" Gauge "bytes" ["store", "tier"]
        "The most bytes that a store may hold."
        "The denominator of the fill level.";
    CACHE_HIGH_WATER_BYTES = "larder_cache_high_water_bytes" Gauge "bytes" ["store", "tier"]
        "The most bytes that a store has ever held."
        "Never more than the store may hold, at any moment; noted at every change and not by sampling.";
    EVICTIONS = "larder_cache_evictions_total" Counter "responses" ["store", "reason"]
        "Responses that a store gave up, by reason."
        "A cache that is too small evicts for room what is asked for again.";
    EVICTED_SECONDS = "larder_cache_evicted_age_seconds_total" Counter "seconds" ["store"]
        "How old the responses were that a store's memory gave up for room, together."
        "Divided by the evictions for `room`: the mean age at eviction. A store that evicts within minutes is too small.";
    PROMOTIONS = "larder_cache_promotions_total" Counter "responses" ["store"]
        "Large bodies that came from disks into memory because they were read again."
        "Stands still where what is in use is larger than memory; then a larger one helps.";
    STORE_DEGRADED = "larder_store_degraded" Gauge "stores" ["store"]
        "1 while a store goes on without a disk, or without its directory of files, else 0."
        "Alert on 1: the store works with less than it was given. `larder stats` says what is missing.";
    FLIGHTS = "larder_flights" Gauge "fetches" []
        "Origin fetches of GET and HEAD in flight."
        "Beside the clients that wait for them: how much the origin is spared at this moment.";
    FLIGHTS_WAITING = "larder_flights_waiting" Gauge "requests" []
        "Clients that wait for such a fetch, those that caused it included."
        "Grows where many ask for the same page and the origin is slow. At most 10 000 wait for one fetch.";
    INVALIDATIONS = "larder_invalidations_total" Counter "invalidations" ["kind"]
        "Invalidations, by kind."
        "Writes through larder and purges, each of which costs later hits.";
    INVALIDATED = "larder_requests_invalidated_total" Counter "requests" []
        "Requests that asked the origin because an unsafe request had invalidated what is stored for them."
        "What the writes cost: with `invalidate = \"validate\"` a 304 each where the page did not change.";
    CERTIFICATE_NOT_AFTER = "larder_certificate_not_after_seconds" Gauge "seconds" ["certificate"]
        "When each certificate that clients are shown expires, in seconds since 1970."
        "Alert where less than 14 days are left: renewal should have happened by then.";
    ACME_ORDERS = "larder_acme_orders_total" Counter "orders" ["result"]
        "Orders of certificates, by result: `issued`, or why they failed."
        "What is served stays while orders fail; `larder certs` has the words of the authority.";
    ACME_NEXT_RENEWAL = "larder_acme_next_renewal_seconds" Gauge "seconds" ["certificate"]
        "When each ordered certificate is ordered next, in seconds since 1970."
        "One that lies in the past for long is an order that does not come to its end.";
    ACME_FAILING = "larder_acme_failing" Gauge "certificates" ["certificate", "type"]
        "1 where the last order of a certificate has failed, and how; else 0 with `none`."
        "Alert on 1 for a day: a certificate is renewed a third of its life before its end.";
    TLS_HANDSHAKE_SECONDS = "larder_tls_handshake_seconds" Histogram "seconds" ["resumed"]
        "Durations of TLS handshakes with clients, from the accepted connection on, by whether a session was resumed."
        "Most of it is the way to the client and back. Where it grows beside `larder_tls_handshakes_paused_total`, handshakes wait for each other.";
    TLS_TICKETS = "larder_tls_tickets_total" Counter "tickets" ["result"]
        "Tickets of TLS clients: `issued`, `opened`, or `refused` since their key or their rules for client certificates have gone."
        "Few `opened` for many `issued`: clients come to larders that do not share `ticket_keys`, or later than `tickets`.";
    PURGES = "larder_purges_total" Counter "predicates" ["kind", "mode", "dialect", "result"]
        "What was purged, by kind, `hard` or `soft`, in whose words, and `held` or `not-held`."
        "`not-held`: a journal did not confirm the purge, which may be forgotten after a crash. larder tries on.";
    PURGE_SECONDS = "larder_purge_seconds" Histogram "seconds" ["part"]
        "Time that purges took: `table` until every look-up sees them, `journal` from then until every journal has them."
        "A slow `journal` is a slow disk: whoever purges waits for that. No client does.";
    PURGES_REFUSED = "larder_purges_refused_total" Counter "requests" ["reason"]
        "Requests for purges that were refused, by reason."
        "A plugin that is not let in changes nothing: visitors see old pages. `purge` in the site says who may.";
    PURGED_OBJECTS = "larder_purged_objects_total" Counter "responses" []
        "Responses that purges took out or made stale, as far as they were met."
        "What purges cost later hits.";
    PURGE_PREDICATES = "larder_purge_predicates" Gauge "predicates" ["kind"]
        "Names and patterns that stored responses are compared with, since they were purged."
        "They retire when no response is left from before the purge. At 262144 names or 1024 patterns the oldest goes.";
    PURGE_RETIRED = "larder_purge_predicates_retired_total" Counter "predicates" []
        "Names and patterns that were forgotten because no response was left that they could concern."
        "Where it stands still and predicates grow in number, a disk cannot be read, or old fetches do not end.";
    PURGE_HEADS = "larder_purge_heads_read_total" Counter "heads" []
        "Heads that were read on disks and in directories to find what purges have ended."
        "At most 2048 a second, 4 KiB each.";
    PURGE_FLOOR_RAISED = "larder_purge_floor_raised_total" Counter "times" []
        "How often an old purge was dropped because there were too many, or a journal did not have it."
        "What was fetched before that purge is asked about at the origin before it is used again.";
    ORIGIN_SECONDS = "larder_origin_request_duration_seconds" Histogram "seconds" ["origin"]
        "Time from asking an origin to its final response head."
        "The origin's speed as larder sees it; its count is the number of answered fetches.";
    PAGES = "larder_pages_total" Counter "pages" ["site", "how"]
        "Pages put together from a template and its fragments, by site."
        "`kept`: used again as it was put together before. `whole`: all parts were in memory. `open`: sent while parts were on their way, which costs validators and ranges.";
    PAGES_OPEN = "larder_pages_open" Gauge "pages" []
        "Pages that are being sent while parts of them are on their way."
        "What they hold in memory is not the stores': see the formula in the guide on operating. Many for long: slow fragments, or slow clients.";
    FRAGMENTS = "larder_fragments_total" Counter "fragments" ["store", "status"]
        "Fragments that pages asked for, by outcome of the look-up."
        "The hit ratio of fragments. `status` has the words of `larder_cache_lookups_total`, which does not count them.";
    FRAGMENT_FAILURES = "larder_fragment_failures_total" Counter "includes" ["reason"]
        "Includes that failed, by reason, whatever stood in for them."
        "Visitors see a page without something, or no page. A message in the log names page and fragment.";
    ASSEMBLY_LIMITS = "larder_assembly_limits_total" Counter "includes" ["limit"]
        "Includes that failed at a limit of page assembly."
        "`depth`, `count`, `budget`, `loop`: a template asks for too much, or for itself. `page-timeout`, `too-large`: see whether `fragments` of the rule suits the page.";
    FRAGMENT_WAIT_SECONDS = "larder_fragment_wait_seconds" Histogram "seconds" []
        "Time in which a page had nothing to send because it waited for a fragment."
        "What slow fragments cost visitors. A fragment that comes while others are sent costs nothing.";
    FRAGMENT_COOKIES_DROPPED = "larder_fragment_cookies_dropped_total" Counter "fields" []
        "Set-Cookie fields that fragments came with, and that no client gets."
        "A cookie belongs into the page's own answer, or into a request of the browser's.";
    TEMPLATES_COMPILED = "larder_templates_compiled_total" Counter "templates" ["language"]
        "Templates compiled, by language."
        "One for each template that an origin sends or a disk brings. Many more: templates that are too large to be kept compiled.";
    TEMPLATE_PROBLEMS = "larder_template_problems_total" Counter "problems" ["language", "problem"]
        "Problems of templates that were compiled, by language and kind."
        "What other programs may read otherwise, or not at all. `larder explain URL` tells line and column.";
    REMOTE_LOOKUPS = "larder_remote_lookups_total" Counter "lookups" ["store", "server", "result"]
        "Look-ups in memcached and Redis, by result."
        "`failed`: no reply in time, or none that can be used. `skipped`: the server is left alone. `malformed`, `other-variant`: a value that is not used.";
    REMOTE_LOOKUP_SECONDS = "larder_remote_lookup_seconds" Histogram "seconds" ["store", "server"]
        "Time that look-ups in memcached and Redis took, connecting included."
        "What a miss in memory waits before the origin is asked, never more than `timeout`. Skipped look-ups are left out.";
    REMOTE_WRITES = "larder_remote_writes_total" Counter "writes" ["store", "server", "result"]
        "Values and deletions for memcached and Redis, by result."
        "`full`, `failing`, `too-large`: not sent. `refused`: the server said no. `lost`: no reply to a value. `unconfirmed`: no reply to a deletion, which is sent again.";
    REMOTE_QUEUE_BYTES = "larder_remote_queue_bytes" Gauge "bytes" ["store", "server"]
        "Bytes that wait to be written to memcached and Redis."
        "At most 16 MiB. Near that, values are not written: the server is slower than the origin.";
    REMOTE_SERVER_UP = "larder_remote_server_up" Gauge "one" ["store", "server"]
        "1 while the server is asked, 0 while it is left alone after failures."
        "Its keys are misses while this is 0.";
    REMOTE_BREAKER_OPENS = "larder_remote_breaker_opens_total" Counter "times" ["store", "server"]
        "How often the server was left alone after failures."
        "When this rises, the server or the way to it is unwell, or `timeout` is too short.";
    REMOTE_REPLIES_LATE = "larder_remote_replies_late_total" Counter "replies" ["store", "server"]
        "Replies that came after the request had gone on without them."
        "They are read and dropped. Many of them: `timeout` is too short for this server.";
    LOG_LINES = "larder_log_lines_total" Counter "lines" []
        "Access log lines written."
        "Stands against the dropped ones.";
    LOG_DROPPED = "larder_log_dropped_total" Counter "lines" []
        "Access log lines dropped because the queue was full or the target failed."
        "The log never makes a request wait; when this rises, its disk or pipe is too slow.";
    LIVE_SAMPLES = "larder_live_samples_total" Counter "samples" []
        "Exchanges that were sampled for what the admin address shows."
        "Each stands for as many exchanges as its weight says. Without the admin address nothing is sampled.";
    LIVE_DROPPED = "larder_live_dropped_total" Counter "samples" ["why"]
        "Samples that were dropped before anything could see them, by reason."
        "`full`: a worker had more of them than its buffer holds until the next drain. `held`: its buffer was just being taken. Sums made of samples are too low by these.";
    LIVE_SKIPPED = "larder_live_skipped_total" Counter "samples" []
        "Samples and events that a subscription asked for and did not get."
        "More than 100 per second, unless all are asked for; or what waited for the reader had no room. The reader is told the number.";
    LIVE_SUBSCRIBERS = "larder_live_subscribers" Gauge "subscriptions" []
        "Open subscriptions to samples and events."
        "How many look on now; at most 32.";
    LIVE_TURNED_AWAY = "larder_live_turned_away_total" Counter "subscriptions" ["why"]
        "Subscriptions that were refused or ended, by reason."
        "`full`: there were 32 already. `slow`: the reader took nothing for ten seconds of what waited for it.";
    LIVE_BYTES = "larder_live_bytes" Gauge "bytes" []
        "Memory of the samples and events that are remembered."
        "At most 3 MiB of samples and 512 KiB of events; the oldest go first.";
    LIVE_WAITING_BYTES = "larder_live_waiting_bytes" Gauge "bytes" []
        "Memory of the samples and events that wait for subscriptions to read them."
        "At most 1 MiB for one and 8 MiB for all. What is remembered or waits for several counts each time.";
    LIVE_SERIES = "larder_live_series" Gauge "series" []
        "Figures whose past is remembered."
        "One is made when its figure is first not zero. The reference of the API lists all figures.";
    LIVE_SERIES_FOLDED = "larder_live_series_folded" Gauge "series" []
        "Figures whose past is not remembered, because there was no room."
        "More than 0: the memory for figures over time is used up. Their values of the moment are there all the same.";
    LIVE_HISTORY_BYTES = "larder_live_history_bytes" Gauge "bytes" []
        "Memory of figures over time."
        "At most `memory` in `[live]`, and the names of figures.";
    LIVE_TABLE_BYTES = "larder_live_table_bytes" Gauge "bytes" []
        "Memory of the tables of frequent URLs, misses, errors, hosts and parameters."
        "At most 6 MiB. Each table has its share of that.";
    LIVE_TABLE_FOLDED = "larder_live_table_folded_total" Counter "keys" ["table", "window"]
        "Keys that gave way to others in a table of frequent URLs, misses, errors, hosts or parameters."
        "The table had more keys than room, so its lesser rates have an `error`. `window` is in seconds.";
    MESSAGES_DROPPED = "larder_messages_dropped_total" Counter "messages" []
        "Messages for standard error that were not written because the queue was full or the target failed."
        "Messages never make larder wait or end; when this rises, the disk or the pipe behind standard error is stuck.";
    CONFIG_RELOADS = "larder_config_reloads_total" Counter "reloads" ["result"]
        "Configuration reloads, by `ok` or `error`."
        "A rise of `error` means that the file on disk is not what runs.";
    CONNECTIONS_MAX = "larder_connections_max" Gauge "connections" []
        "The most client connections at once."
        "What the file descriptors of the process allow beside stores and origins; beyond it connections wait in the kernel.";
    TASKS = "larder_tasks" Gauge "tasks" ["worker"]
        "Tasks alive on a worker's runtime."
        "A check that none leak: idle, it returns to its base.";
    FLEET_MEMBERS = "larder_fleet_members" Gauge "members" []
        "Larders of the fleet that may use what they have stored, this one included."
        "One that is missing asks the origin for everything, or is not running.";
    FLEET_LEASE_SECONDS = "larder_fleet_lease_seconds" Gauge "seconds" []
        "How long stored responses are used without hearing from Redis; 0: the origin is asked first, 9007199254740992: no end."
        "It falls while Redis is away. At 0 the origin has all the load.";
    FLEET_POSITION = "larder_fleet_position" Gauge "entries" []
        "How many entries of the fleet's log are applied here."
        "The difference between two members is how far one of them is behind.";
    FLEET_INCOMPLETE = "larder_fleet_incomplete_purges" Gauge "purges" []
        "Purges of this larder that some other member has not confirmed."
        "Where it stays above 0, a member hangs or Redis is away.";
    FLEET_SERVER_UP = "larder_fleet_server_up" Gauge "one" []
        "1 while Redis answers the fleet's calls."
        "At 0 purges stay here, and leases end.";
    RECORDS_REFUSED = "larder_records_refused_total" Counter "records" ["store", "reason"]
        "Shared responses that were found in Redis and not used."
        "`position` and `invalidated` come with purges and starts. `damaged` and `other-key` mean that something else writes there.";
    RECORDS_LEADS = "larder_records_leads_total" Counter "fetches" ["store", "result"]
        "Fetches before which it was asked whether another larder makes the same: `led` by this one, `waited` for another, `found` what had just come, `apart`."
        "Many `apart`: responses that are not for others, or a Redis that fails.";
    RECORDS_NOT_SHARED = "larder_records_not_shared_total" Counter "responses" ["store", "reason"]
        "Stored responses of which no record was written to Redis."
        "`queue`: the server fails, or does not keep up. `position`: this larder had no lease when it fetched them.";
    RECORDS_SAVED = "larder_records_saved_bytes_total" Counter "bytes" ["store"]
        "Bytes that compression has saved when shared responses were written to Redis."
        "For stores with `compress`. Nothing is saved where the origin compresses already, or sends what does not shrink.";
    VERSION_READS = "larder_version_reads_total" Counter "versions" ["server", "result"]
        "Versions that requests have read: `read`, `absent` where the application has set none, `unknown` where they could not be had."
        "Those that are known without reading are not counted. Many `read`: the versions change faster than they are used.";
    VERSIONS_KNOWN = "larder_versions_known" Gauge "versions" ["server"]
        "Versions that are known without reading."
        "At 65536 those go that were not used for longest.";
    VERSIONS_WENT_BACK = "larder_versions_went_back_total" Counter "versions" ["server"]
        "Versions that have become a lower number than they were."
        "The server has lost its newest data, or was set back. Stores with disks may hold older responses under the same numbers.";
    VERSIONS_SERVER_UP = "larder_versions_server_up" Gauge "one" ["server"]
        "1 while the server of versions answers."
        "At 0 the origin is asked for each request whose rule has versions.";
    ADMIN_REFUSED = "larder_admin_refused_total" Counter "requests" ["reason"]
        "Requests to the admin address that were refused, by reason."
        "`wrong-token` and `wrong-tokens`: a client guesses, or has an old token. From the eleventh within a minute on they are `wrong-tokens`.";
    ADMIN_FORGOTTEN = "larder_admin_addresses_forgotten_total" Counter "addresses" []
        "Addresses whose wrong tokens were forgotten within their minute, since 256 others came after them."
        "Many addresses guess at once.";
    BUILD_INFO = "larder_build_info" Gauge "one" ["version"]
        "Always 1; the version is in the label."
        "Which version runs where, and when that changed.";
    PROCESS_START_SECONDS = "process_start_time_seconds" Gauge "seconds" []
        "Start of the process, in seconds since 1970."
        "Uptime and restarts.";
    PROCESS_OPEN_FDS = "process_open_fds" Gauge "descriptors" []
        "Open file descriptors."
        "A check that none leak, and the distance to the limit.";
    PROCESS_MAX_FDS = "process_max_fds" Gauge "descriptors" []
        "The most file descriptors the process may have."
        "The limit for the line above.";
    PROCESS_RESIDENT_BYTES = "process_resident_memory_bytes" Gauge "bytes" []
        "Resident memory."
        "Memory beyond what the stores account for.";
    PROCESS_THREADS = "process_threads" Gauge "threads" []
        "Threads of the process."
        "Workers and their helpers; it should not move after start.";
    PROCESS_CPU_SECONDS = "process_cpu_seconds_total" Counter "seconds" []
        "Processor time used, user and system."
        "Divided by the requests, the cost of one.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for family in ALL {
            let Family { name, kind, help, reason, .. } = family;
            assert!(name.starts_with("larder_") || name.starts_with("process_"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
            assert!(help.ends_with('.') && reason.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = ALL.iter().map(|family| family.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
