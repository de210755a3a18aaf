//! What belongs to the cache key besides scheme, host and path.

use http::HeaderName;

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::name::{CookieName, ParameterName};
use crate::value::query::QueryChoice;

/// The parameters that `query = "no-tracking"` leaves out: they say where a visitor came from, and no application
/// answers by them. A `*` at the end covers every name that begins so.
pub const TRACKING_PARAMETERS: &[&str] = &[
    "utm_*",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_openstat",
    "dclid",
    "fbclid",
    "gad_campaignid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "mtm_*",
    "oly_anon_id",
    "oly_enc_id",
    "piwik_*",
    "pk_*",
    "rb_clickid",
    "s_cid",
    "sc_cid",
    "srsltid",
    "ttclid",
    "twclid",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "yclid",
];

section! {
    /// What belongs to the cache key besides scheme, host and path. The origin receives exactly the query that was
    /// keyed: a parameter that is left out of the key is not sent to it either, and sorting sorts what it gets.
    pub struct KeySettings in "`key`" {
        /// Which parameters belong to it: `"all"`, `"none"`, a list of names (these and no other), or `"no-tracking"`
        /// (all but `utm_*`, `gclid`, `fbclid` and their kind; the whole list stands below).
        query: QueryChoice = "all", why "larder cannot know which parameters an application ignores.";
        /// Parameters to leave out as well; with `query = "all"` or `"no-tracking"`.
        query_except: Vec<ParameterName>, why "For parameters of one's own that change nothing.";
        /// Sort parameters by name, so that their order makes no second copy. Those of one name keep their order.
        sort: bool = false, why "A few applications care for the order.";
        /// Cookies whose values belong to it.
        cookies: Vec<CookieName>, why "Each value makes a copy of its own: for a language or a theme, not for a session.";
        /// Request fields whose values belong to it.
        fields: Vec<HeaderName>, why "The origin's `Vary` does this already where it is right.";
    }
}

/// Which parameters of the query belong to the key. A name may end in `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryParts {
    /// Every one.
    #[default]
    All,
    /// None.
    None,
    /// These.
    Only(Vec<String>),
    /// All but these.
    Except(Vec<String>),
}

impl KeySettings {
    /// `query` and `query_except` as one.
    pub fn query_parts(&self) -> QueryParts {
        let own = || self.query_except.iter().map(|name| name.as_str().to_owned());
        match &self.query {
            QueryChoice::None => QueryParts::None,
            QueryChoice::Only(names) => {
                QueryParts::Only(names.iter().map(|name| name.as_str().to_owned()).collect())
            }
            QueryChoice::All if self.query_except.is_empty() => QueryParts::All,
            QueryChoice::All => QueryParts::Except(own().collect()),
            QueryChoice::NoTracking => {
                let tracking = TRACKING_PARAMETERS.iter().map(|name| (*name).to_owned());
                QueryParts::Except(tracking.chain(own()).collect())
            }
        }
    }
}

impl Default for KeySettings {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}

impl Consistent for KeySettings {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        if let Some(node) = table.get("query_except")
            && matches!(self.query, QueryChoice::None | QueryChoice::Only(_))
        {
            let said = "it has no meaning beside this `query`";
            let problem = reading.problem(&node.place, &At::Key(at, "query_except"), said);
            reading
                .refuse(problem.hint("`query` names what belongs to the key already: leave one of them out"));
        }
        for (name, hint) in [
            ("cookie", "name single cookies in `cookies`"),
            ("authorization", "its responses are not shared"),
        ] {
            let Some(node) = table.get("fields").filter(|_| self.fields.iter().any(|field| field == name))
            else {
                continue;
            };
            let fields = At::Key(at, "fields");
            let is_it = |node: &crate::document::Node| matches!(&node.value, Value::Text(text) if text.eq_ignore_ascii_case(name));
            let (node, here) = match &node.value {
                Value::List(items) => match items.iter().enumerate().find(|(_, item)| is_it(item)) {
                    Some((index, item)) => (item, At::Item(&fields, index)),
                    None => (node, fields),
                },
                _ => (node, fields),
            };
            reading.refuse_value(node, &here, "a field that may be part of a key", Some(hint.to_owned()));
        }
    }
}
