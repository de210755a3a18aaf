//! The table of endpoints: path, methods, class, parameters, and what is answered.
//!
//! In: nothing. Out: [`ENDPOINTS`], in the order in which the page at `/` and the reference list them. A path that is not here does
//! not exist. The sentences are those of the reference.

use super::line::{Action, Class, Deed, Endpoint, Parameter};
use crate::purges::api::PurgeApi;

const GET: &[&str] = &["GET", "HEAD"];
const POST: &[&str] = &["POST"];
const DELETE: &[&str] = &["DELETE"];

/// The parameter with the URL that is meant.
const URL: Parameter = Parameter { name: "url", about: "The absolute URL; required." };

const BUSY: (u16, &str) = (503, "too many ask for this at once");

/// Statuses of purges, in every form in which one is asked for.
const PURGE_ERRORS: &[(u16, &str)] = &[
    (400, "the purge cannot be read, or names a site that does not exist; nothing was purged"),
    (403, "it is neither JSON nor has a field with a token, or `Origin` names another site"),
    (413, "the content is longer than 1 MiB, or broke off"),
    (429, "too many purges are under way"),
    (503, "the purge is in force, but a disk or a member of the fleet has not confirmed it"),
];

const LIVE_ERRORS: &[(u16, &str)] =
    &[(400, "the filter or a parameter cannot be read; `column` says where in the filter")];

const SPAN: [Parameter; 3] = [
    Parameter {
        name: "from",
        about: "The answer begins so many seconds ago, at most 86400; 600 by default.",
    },
    Parameter { name: "to", about: "It ends so many seconds ago; 0 by default." },
    Parameter {
        name: "step",
        about: "Seconds between two points, at most 2000 of them. By default 1, 10 or 60, by how far the answer reaches back.",
    },
];

const SPAN_ERRORS: &[(u16, &str)] =
    &[(400, "a parameter cannot be read or is beyond its bound, which the message tells")];
const FIGURES_ERRORS: &[(u16, &str)] =
    &[(400, "a parameter stands twice or cannot be read; the message names the values that it may have")];

/// Everything that is answered.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/",
        actions: &[Action {
            deed: Deed::Index,
            methods: GET,
            class: Class::Open,
            parameters: &[],
            purpose: "Shows the dashboard, or lists the endpoints.",
            answer: "The dashboard for clients that accept `text/html`, and a list of the endpoints as plain text for others.",
            errors: &[],
            command: None,
        }],
    },
    Endpoint {
        path: "/ui/PATH",
        actions: &[Action {
            deed: Deed::File,
            methods: GET,
            class: Class::Open,
            parameters: &[],
            purpose: "Has the files of the dashboard.",
            answer: "A file, with an `ETag`. They are the same for every larder of a version.",
            errors: &[(404, "there is no such file")],
            command: None,
        }],
    },
    Endpoint {
        path: "/healthz",
        actions: &[Action {
            deed: Deed::Health,
            methods: GET,
            class: Class::Open,
            parameters: &[],
            purpose: "Says whether new work should be sent here.",
            answer: "`ok`; `degraded` while a store works without a disk or without its directory of files; `draining`.",
            errors: &[(503, "larder is draining")],
            command: None,
        }],
    },
    Endpoint {
        path: "/metrics",
        actions: &[Action {
            deed: Deed::Metrics,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Shows all metrics.",
            answer: "The text format of Prometheus; every family is on [its page](metrics.md).",
            errors: &[],
            command: None,
        }],
    },
    Endpoint {
        path: "/stats",
        actions: &[Action {
            deed: Deed::Stats,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Shows figures by site, rule, store and origin, with latencies.",
            answer: "JSON.",
            errors: &[],
            command: Some("larder stats"),
        }],
    },
    Endpoint {
        path: "/explain",
        actions: &[Action {
            deed: Deed::Explain,
            methods: GET,
            class: Class::Costs,
            parameters: &[
                URL,
                Parameter { name: "method", about: "The method of the request; `GET` by default." },
                Parameter { name: "field", about: "A field as `Name:%20value`; up to 128 of them." },
                Parameter { name: "content", about: "The content of a `QUERY`." },
                Parameter { name: "offline", about: "`true` leaves the origin alone." },
            ],
            purpose: "Explains the decision about one request.",
            answer: "[The JSON of `larder explain`](explain.md).",
            errors: &[
                (400, "a parameter is unknown, stands twice or cannot be read"),
                (422, "the request cannot be explained, for example because no site has its host"),
                BUSY,
            ],
            command: Some("larder explain"),
        }],
    },
    Endpoint {
        path: "/objects",
        actions: &[Action {
            deed: Deed::List,
            methods: GET,
            class: Class::Costs,
            parameters: &[
                Parameter { name: "prefix", about: "What the URLs begin with." },
                Parameter { name: "store", about: "The only store to list." },
                Parameter { name: "cursor", about: "Where the page before ended." },
                Parameter { name: "limit", about: "The most that the page has: 1 to 1000, 100 by default." },
                Parameter { name: "remote", about: "`true` lists shared responses in Redis as well." },
                Parameter { name: "names", about: "The most names that Redis may look at for a page." },
            ],
            purpose: "Lists stored responses, a page at a time.",
            answer: "JSON; `cursor` leads to the next page.",
            errors: &[(400, "a parameter is unknown, stands twice or cannot be read"), BUSY],
            command: Some("larder ls"),
        }],
    },
    Endpoint {
        path: "/object",
        actions: &[
            Action {
                deed: Deed::Object,
                methods: GET,
                class: Class::Costs,
                parameters: &[
                    URL,
                    Parameter {
                        name: "body",
                        about: "The number of the response whose body is wanted, from 1.",
                    },
                    Parameter {
                        name: "assembled",
                        about: "`page` shows the page of a template, and `export` only one that is for all clients.",
                    },
                ],
                purpose: "Shows what is stored under a URL.",
                answer: "JSON. With `body` the stored bytes as `application/octet-stream` and as an attachment, whatever their type is.",
                errors: &[
                    (400, "a parameter is unknown, stands twice or cannot be read"),
                    (404, "nothing is stored there"),
                    BUSY,
                ],
                command: Some("larder get"),
            },
            Action {
                deed: Deed::Remove,
                methods: DELETE,
                class: Class::Changes,
                parameters: &[URL],
                purpose: "Removes what is stored under a URL from all stores.",
                answer: "JSON with the number of responses, once the removal holds after a crash. `Larder-Receipt` names the purge.",
                errors: &[
                    (400, "there is no `url`, or it is not absolute"),
                    (500, "a disk has not confirmed the removal"),
                ],
                command: Some("larder rm"),
            },
        ],
    },
    Endpoint {
        path: "/api/v1/requests",
        actions: &[Action {
            deed: Deed::Requests,
            methods: GET,
            class: Class::Looks,
            parameters: &[
                Parameter { name: "where", about: "[A filter](filter.md); all requests without it." },
                Parameter {
                    name: "limit",
                    about: "The most that the answer has: up to 1000, 100 by default.",
                },
            ],
            purpose: "Shows requests that are remembered, newest first.",
            answer: "JSON: `requests`, each with [these members](#a-request). Of the last 4096 samples, those that the filter takes.",
            errors: LIVE_ERRORS,
            command: Some("larder log --recent"),
        }],
    },
    Endpoint {
        path: "/api/v1/events",
        actions: &[Action {
            deed: Deed::Events,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Shows what happened to larder itself, newest first.",
            answer: "JSON: `events`, each with `at` (seconds since 1970), `kind`, `text`, and where there is one `subject`; the last 256: 128 that clients can cause (`message`, `purge`, `tokens`), and 128 of the other kinds. Kinds: `reload` (what changed, or why not), `message` (a warning or an error of larder's own; the same thing once in ten seconds), `ejected` and `recovered` (a server of an origin), `disk` (a disk or a directory of files), `purge` (who asked for what), `drain` (larder is ending) and `tokens` (an address has sent ten wrong tokens).",
            errors: &[],
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/now",
        actions: &[Action {
            deed: Deed::Now,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Shows the figures of this moment.",
            answer: "JSON: `at` and `values` of the last second ([figures](#figures); zeros are left out), `minute` and `hour` with the means over them, `uptime` in seconds, and `stats` with what `/stats` answers.",
            errors: &[],
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/series",
        actions: &[Action {
            deed: Deed::Series,
            methods: GET,
            class: Class::Looks,
            parameters: &[
                Parameter {
                    name: "names",
                    about: "[Figures](#figures), up to 64, comma between them; required. One that ends in `*` stands for all that begin so, up to 512 together.",
                },
                SPAN[0],
                SPAN[1],
                SPAN[2],
            ],
            purpose: "Shows figures over time.",
            answer: "JSON: `from` and `at` (the ends of the first and of the last point, in seconds since 1970), `step`, `newest` (the end of the last second that is in it), and `values`: by name a list with the mean at each point, oldest first. `null` stands where nothing is known, also where `history` in `[live]` is 0. The last point may not be over: its end then lies ahead.",
            errors: SPAN_ERRORS,
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/latency",
        actions: &[Action {
            deed: Deed::Latency,
            methods: GET,
            class: Class::Looks,
            parameters: &[
                Parameter {
                    name: "of",
                    about: "`hit`, `forwarded`, `local` or `all` for responses to clients; `origin/NAME` for an origin's heads; required.",
                },
                SPAN[0],
                SPAN[1],
                SPAN[2],
            ],
            purpose: "Shows how durations lay over time.",
            answer: "JSON: `from`, `at` and `step` as in `/api/v1/series`, `bounds` (22 upper bounds in seconds, each twice the one before), and `counts`: for each point how many per second lie below each bound and above the one before, or `null`.",
            errors: SPAN_ERRORS,
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/live",
        actions: &[Action {
            deed: Deed::Live,
            methods: &["GET"],
            class: Class::Looks,
            parameters: &[
                Parameter { name: "requests", about: "[A filter](filter.md); all requests without it." },
                Parameter {
                    name: "all",
                    about: "`true` leaves out nothing, up to 20 000 requests a second and worker. Without it, a stream has a sample: at most 100 a second, of hits one in 64.",
                },
                Parameter { name: "recent", about: "Begins with so many remembered requests, up to 1000." },
                Parameter {
                    name: "tick",
                    about: "`1` adds the figures of each second, beginning with the last one.",
                },
                Parameter { name: "samples", about: "`0` leaves requests out: figures and events remain." },
            ],
            purpose: "Streams requests as they happen, and figures.",
            answer: "`text/event-stream`, as `EventSource` reads it: `request` with [a request](#a-request), `tick` with `at` and `values` ([figures](#figures)), `event` with an event, `skipped` with the number of requests that were left out, `too-slow` before the end of a stream that was not read for ten seconds. A comment comes every 15 s.",
            errors: &[
                (400, "the filter or a parameter cannot be read; `column` says where in the filter"),
                (503, "32 streams are open already"),
            ],
            command: Some("larder log"),
        }],
    },
    Endpoint {
        path: "/api/v1/top",
        actions: &[Action {
            deed: Deed::Top,
            methods: GET,
            class: Class::Looks,
            parameters: &[
                Parameter {
                    name: "of",
                    about: "The table; `urls` by default. `urls` and `bytes`: URLs by requests, and by bytes of bodies that were sent. `misses`: reasons and URLs of forwarded requests. `before`: what URLs were before a request missed them. `errors`: words and servers of failed requests. `hosts`: those that no site has. `parameters`: names in the queries of forwarded requests.",
                },
                Parameter {
                    name: "window",
                    about: "`600` or `86400` seconds; `600` by default. A request counts half after five minutes, or after twelve hours.",
                },
                Parameter {
                    name: "where",
                    about: "A glob over whole keys, up to 256 bytes: `*` stands for any text, `?` for one character. Case counts. Between the parts of a key is a space.",
                },
                Parameter { name: "limit", about: "The most rows: 1 to 1000, 50 by default." },
            ],
            purpose: "Shows the most frequent URLs, misses, errors, unknown hosts and parameters.",
            answer: "JSON: `of`, `window`, `rows` by falling rate, and `folded`: how often a key gave way to another since the start. Each row has `key`, `rate` (requests or bytes per second), `error` (so much of the rate may be another's) and `last` (seconds since 1970). `key` is a list: a URL, host or name, or a word with a URL or server. The server is `null` where none was asked. All is made of samples.",
            errors: FIGURES_ERRORS,
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/breakdown",
        actions: &[Action {
            deed: Deed::Breakdown,
            methods: GET,
            class: Class::Looks,
            parameters: &[
                Parameter {
                    name: "by",
                    about: "Up to four of these words, with commas between them: `result` (the default), `reason`, `before`, `not_stored`, `detail`, `status`, `site`, `rule`, `store`, `origin`, `server`, `method`, `host`, `path`, `type`, `folder`, `url`. `folder` is the first segment of the path.",
                },
                Parameter { name: "from", about: "How many seconds back: 1 to 86400, 600 by default." },
                Parameter { name: "where", about: "[A filter](filter.md); all requests without it." },
                Parameter { name: "limit", about: "The most rows: 1 to 1000, 100 by default." },
            ],
            purpose: "Divides requests by up to four things that they have in common.",
            answer: "JSON: `source`, `samples` (how many there are, where it is `samples`), `from` and `to` (seconds since 1970), `total` (requests per second), `rows` by falling rate, and `other` with the `rate` and `share` of what has no row. Each row has `key`, `rate` (requests per second), `share` (0 to 1), `bytes` (of bodies that were sent, per second) and `origin_seconds` (of fetches, per second). `key` is a list with a value or `null` for each word of `by`. `source` is `history` without `where` for `result`, `reason`, `before` or `not_stored`, alone or with `site` and `rule`: counters of all requests, without `bytes` and `origin_seconds`. Otherwise it is `samples`, the last 4096. `from` is later than asked for where the samples do not reach back so far.",
            errors: FIGURES_ERRORS,
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/about",
        actions: &[Action {
            deed: Deed::About,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Says which larder this is, and what its words mean.",
            answer: "JSON: `version`, `started` and `now` (seconds since 1970), `instance` (the name of the host), `workers`, `health`, `config` (`file`, `loaded`), `memory` (`series`, `series_folded`, `bytes`, `bytes_max`), `history` (seconds), and `may_change`: whether the token of the request lets it purge. `words` has a list for each of `result`, `reason`, `not_stored`, `before`, `detail`, `failure`, `refused` and `server_state`: `word`, `sentence`, where it is known `section` and `helps`, and `forbids` where the request or the origin's answer forbids storing.",
            errors: &[],
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/certificates",
        actions: &[
            Action {
                deed: Deed::Certificates,
                methods: GET,
                class: Class::Looks,
                parameters: &[],
                purpose: "Lists the certificates that clients are shown.",
                answer: "JSON: `certificates`, each with `site`, `source` (`file` or `acme`), `file` (or `null`), `key` (its kind and size), `names`, `not_before`, `not_after` (seconds since 1970, 0 where there is none yet), `days_left`, and `expires_soon`, by `expiry_warning` in `[tls]`. An ordered one has `next` (seconds since 1970), and `failure` where the last order failed, `failures` times since one succeeded.",
                errors: &[],
                command: Some("larder certs"),
            },
            Action {
                deed: Deed::Renew,
                methods: POST,
                class: Class::Changes,
                parameters: &[Parameter {
                    name: "name",
                    about: "The host whose certificate it is; required.",
                }],
                purpose: "Orders a new certificate for a host now, whatever its schedule says.",
                answer: "JSON: `asked`, the host. The list above tells what comes of it: another `not_before`, or a `failure`.",
                errors: &[(400, "there is no `name`"), (404, "larder orders no certificate for this host")],
                command: Some("larder certs renew"),
            },
        ],
    },
    Endpoint {
        path: "/api/v1/config",
        actions: &[Action {
            deed: Deed::Config,
            methods: GET,
            class: Class::Costs,
            parameters: &[],
            purpose: "Shows the config in force, without its secrets, and how the file differs by now.",
            answer: "JSON: `file` and `text`, `***` in place of secrets (`null` and empty where larder runs without a file); `loaded` (seconds since 1970); `sites` and `rules`, each with its first line and its last one (`line`, `end`); `warnings` of the check. `differs` is `null`, or has `why`: `changed`, `unseen` (secrets or ends of lines alone), `absent` or `unreadable` (no good config, or no regular file). Its `diff` has up to 2000 lines, each with `kind` (`-`, `+` or a blank), `line` and `text`; `left_out` says how many more there are.",
            errors: &[BUSY],
            command: None,
        }],
    },
    Endpoint {
        path: "/api/v1/purges",
        actions: &[
            Action {
                deed: Deed::Purges,
                methods: GET,
                class: Class::Looks,
                parameters: &[],
                purpose: "Lists the last purges, newest first.",
                answer: "JSON.",
                errors: &[],
                command: Some("larder purges"),
            },
            Action {
                deed: Deed::Purge(PurgeApi::Own),
                methods: POST,
                class: Class::Changes,
                parameters: &[],
                purpose: "Purges what the JSON of the request names.",
                answer: "JSON, once the purge holds after a crash. `Larder-Receipt` names the purge. [The guide](../guide/purging.md#the-api) has the members of the request.",
                errors: PURGE_ERRORS,
                command: Some("larder purge"),
            },
        ],
    },
    Endpoint {
        path: "/api/v1/purges/ID",
        actions: &[Action {
            deed: Deed::PurgeOf,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Shows one of the last purges.",
            answer: "JSON.",
            errors: &[(404, "there is no such purge, or it is too long ago")],
            command: Some("larder purges"),
        }],
    },
    Endpoint {
        path: "/api/v1/fleet",
        actions: &[Action {
            deed: Deed::Fleet,
            methods: GET,
            class: Class::Looks,
            parameters: &[],
            purpose: "Shows the larders that purge together with this one.",
            answer: "JSON.",
            errors: &[(404, "this larder is in no fleet")],
            command: Some("larder fleet"),
        }],
    },
    Endpoint {
        path: "/service/ID/purge",
        actions: &[fastly(
            "Purges the tags in `Surrogate-Key` or in the JSON of the request, as clients of Fastly ask for it.",
        )],
    },
    Endpoint {
        path: "/service/ID/purge/KEY",
        actions: &[fastly("Purges one tag, as clients of Fastly ask for it.")],
    },
    Endpoint {
        path: "/service/ID/purge_all",
        actions: &[fastly("Purges everything of a site, as clients of Fastly ask for it.")],
    },
    Endpoint { path: "/purge/URL", actions: &[fastly("Purges one URL, as clients of Fastly ask for it.")] },
    Endpoint {
        path: "/client/v4/zones/ID/purge_cache",
        actions: &[Action {
            deed: Deed::Purge(PurgeApi::Cloudflare),
            methods: POST,
            class: Class::Changes,
            parameters: &[],
            purpose: "Purges what the JSON of the request names, as clients of Cloudflare ask for it.",
            answer: "JSON in the form of Cloudflare's API. `ID` is a host of the site, or `all`; the token may stand in `X-Auth-Key`.",
            errors: PURGE_ERRORS,
            command: None,
        }],
    },
];

/// A purge in the words of Fastly.
const fn fastly(purpose: &'static str) -> Action {
    Action {
        deed: Deed::Purge(PurgeApi::Fastly),
        methods: POST,
        class: Class::Changes,
        parameters: &[],
        purpose,
        answer: "JSON in the form of Fastly's API. `ID` is a host of the site, or `all`; the token may stand in `Fastly-Key`.",
        errors: PURGE_ERRORS,
        command: None,
    }
}
