//! Who may purge at a site, and what a purge does: a word, or a table of conditions.
//!
//! In: the value of `purge`. Out: a [`PurgeSetting`]. Whether the conditions leave anything to be desired is checked in
//! `checks/purge.rs`; whether a request meets them is decided by the proxy.

use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::section::section;
use crate::schema::{Section, Setting, Shape};
use crate::value::absent_status::AbsentStatus;
use crate::value::cidr::Cidr;
use crate::value::purge_path::PurgePath;
use crate::value::secret::Secret;
use crate::value::secret_field::SecretField;

section! {
    /// Which requests may purge at a site, and what a purge does. A purge request has the method PURGE, BAN, PURGEKEYS,
    /// PURGETAGS or URIBAN, or is a GET below `location`. larder answers it and never sends it to the origin. It may purge if
    /// it meets `from` and carries one of the secrets (`token`, `header`), as far as the table has these keys. One of the
    /// three is required. A request that may not purge is answered 405. A GET with `Cache-Control: no-cache` or `X-Refresh: 1`
    /// that may purge is answered by the origin, whatever is stored.
    pub struct PurgeRules in "`purge`" {
        /// Addresses and networks. A request with Via, Forwarded, X-Forwarded-For or X-Real-IP came through a proxy. It meets
        /// this condition only where every proxy is in `trusted`, and the client that they name is in `from` as well.
        from: Vec<Cidr> = ("any address"), why "An application that has an address of its own needs no secret. Where a proxy in front adds none of these fields, every client comes from the proxy's address, so that a secret is needed too.";
        /// A secret, which the request has in `Authorization: Bearer ...`, `X-Invalidate-Token` or `Fastly-Key`.
        token: Option<Secret>, why "A secret does not depend on what is in front of larder.";
        /// A field that carries a secret, with its value. Beside `token`, either of the two is enough.
        header: Option<SecretField>, why "Some plugins send their secret in a field of the operator's choice.";
        /// Make every purge at this site a soft one. What a soft purge names is stale from then on, and is used as far as a
        /// stale response may be used. A hard purge removes what it names. A request can ask for a soft purge by itself.
        soft: bool = false, why "The old page is gone when a purge is answered, which is what most plugins expect.";
        /// A path below which a GET or PURGE is a purge of the rest of the path: with `"/purge"`, a GET of `/purge/news`
        /// purges `/news`. A `*` at the end purges everything at the host that begins so.
        location: Option<PurgePath>, why "Plugins that were written for nginx purge in this way. Without it no GET purges.";
        /// Take regular expressions. `false` refuses each that is not recognised as something simpler: tags, hosts, a URL or
        /// the beginning of one.
        patterns: bool = true, why "Many plugins send nothing else. While an expression is in force, larder compares it with each older response that is asked for.";
        /// The status of a purge of one URL where nothing was stored for it.
        absent: AbsentStatus = 200, why "Varnish answers so, and plugins written for it take any other status for a failure. Modules of nginx answer 404 or 412.";
        /// Purge what Larder-Purge names in a response to an unsafe request, and take that field out of all responses. It reaches only
        /// what is stored for this site.
        responses: bool = false, why "Any part of the application that can set a response field could purge then.";
    }
}

/// What becomes of purge requests at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeSetting {
    /// No request may purge.
    Closed,
    /// They go to the origin like any method that larder does not know.
    Pass,
    /// Requests that meet these conditions may purge.
    Open(PurgeRules),
}

const WORDS: [&str; 2] = ["closed", "pass"];

impl Setting for PurgeSetting {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Words(&WORDS), Shape::Section(PurgeRules::doc)])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        const EXPECTED: &str = r#""closed", "pass" or a table"#;
        const WITH_TOKEN: &str = "a secret belongs in a table: { token = ... }";
        match &node.value {
            Value::Table(_) => return PurgeRules::read(node, at, reading).map(Self::Open),
            Value::Text(text) => match text.as_str() {
                "closed" => return Some(Self::Closed),
                "pass" => return Some(Self::Pass),
                other => {
                    // It may be a secret in the wrong place, and is not quoted.
                    let problem = reading.problem(&node.place, at, "another text").expected(EXPECTED);
                    let near = nearest(other, WORDS).map(|word| format!("did you mean \"{word}\"?"));
                    reading.refuse(problem.hint(WITH_TOKEN).hint_if(near));
                }
            },
            _ => reading.refuse_value(node, at, EXPECTED, None),
        }
        None
    }
}
