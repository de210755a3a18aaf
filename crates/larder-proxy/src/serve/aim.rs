//! Where an include of a page leads: to which site and rule, and with which request.
//!
//! In: the page's request, as its own site and rule have it, and the URI of an include. Out: the request for that, under the site and rule of
//! its URI. An include reaches the page's own host, and others only where the config names them and has a site for them: no page
//! chooses an address, a port or a scheme. Of the page's fields all end-to-end ones go along but those that are about the page's
//! own content, its conditions and freshness. Cookie and credentials go to the page's own origin alone.
//! Deliberately absent: what comes of that request. [`ServedFragments`](super::fragment) serves it, and `explain` looks it up.

use std::sync::Arc;

use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, COOKIE, EXPECT, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, PRAGMA, RANGE, TE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use larder_assemble::IncludeFailure;
use larder_http::fields::cache_control::RequestDirectives;
use larder_http::fields::client_cert::CLIENT_CERT;
use larder_http::message::{ClientPolicyId, RequestHead};
use larder_http::target::Target;
use larder_http::target::reference::DocumentUri;

use crate::key;
use crate::plan::Plan;
use crate::route::Site;
use crate::settings::{FragmentSettings, KeySettings, RuleSettings};

/// Fields of the page's request that say nothing of its fragments. Those that begin with `content-` go as well.
const OF_THE_PAGE: [HeaderName; 10] = [
    RANGE,
    IF_MATCH,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    IF_UNMODIFIED_SINCE,
    IF_RANGE,
    EXPECT,
    TE,
    PRAGMA,
    CACHE_CONTROL,
];

/// Aims the includes of one page.
pub(crate) struct Aim {
    /// The page's request, with the fields that its fragments get.
    head: RequestHead,
    settings: Arc<FragmentSettings>,
    /// Fields that the page's rule sets.
    set: Vec<HeaderName>,
    /// The page's origin.
    origin: Option<usize>,
}

/// A request for a fragment, with the numbers of its site and rule.
pub(crate) struct Aimed {
    /// As it will be keyed and sent on.
    pub(crate) head: RequestHead,
    /// As the include names it, where that is something else.
    pub(crate) sent_target: Option<Target>,
    pub(crate) site: usize,
    pub(crate) rule: usize,
    /// Whether the page's own origin is asked.
    pub(crate) is_of_own_origin: bool,
    /// Whether fields of the page's request decide about rule or key, or reach the fragment's request otherwise than in
    /// [`Aim::page`].
    pub(crate) depends_on_fields: bool,
}

impl Aim {
    /// From the request of a page, under its rule, whose site has `origin`.
    pub(crate) fn new(page: &RequestHead, rule: &RuleSettings, origin: Option<usize>) -> Self {
        Self {
            head: RequestHead {
                method: Method::GET,
                scheme: page.scheme,
                authority: page.authority.clone(),
                target: page.target.clone(),
                version: page.version,
                fields: fields_of(&page.fields),
            },
            settings: Arc::clone(&rule.fragments),
            set: rule.request.set.iter().map(|(name, _)| name.clone()).collect(),
            origin,
        }
    }

    /// The page's request, with the fields that its fragments get.
    pub(crate) fn page(&self) -> &RequestHead {
        &self.head
    }

    /// How the page is put together.
    pub(crate) fn settings(&self) -> &Arc<FragmentSettings> {
        &self.settings
    }

    /// The request for a fragment.
    ///
    /// # Errors
    /// It may not be asked for.
    pub(crate) fn at(&self, plan: &Plan, uri: &DocumentUri) -> Result<Aimed, IncludeFailure> {
        let is_own_host = uri.authority == self.head.authority;
        if !is_own_host && !is_named(&self.settings.hosts, uri.authority.host()) {
            return Err(IncludeFailure::Host);
        }
        let (index, site) = plan.router.site(uri.authority.host()).ok_or(IncludeFailure::Host)?;
        // Its clients have to show a certificate to be served, and of the page's client that is not known.
        let own_policy =
            || plan.router.site(self.head.authority.host()).and_then(|(_, own)| client_policy(own));
        if !is_own_host && client_policy(site).is_some_and(|policy| own_policy() != Some(policy)) {
            return Err(IncludeFailure::Host);
        }
        let scheme = if is_own_host { self.head.scheme } else { uri.scheme };
        let (authority, target) = (uri.authority.clone(), uri.target.clone());
        let mut head = RequestHead { scheme, authority, target, ..self.head.clone() };
        if !is_own_host {
            // It was asked for by the rules of another site.
            head.fields.remove(CLIENT_CERT);
        }
        let is_of_own_origin = site.settings.origin.is_some() && site.settings.origin == self.origin;
        if !is_of_own_origin {
            head.fields.remove(COOKIE);
            let fields = &mut head.fields;
            let credentials: Vec<HeaderName> =
                fields.keys().filter(|name| larder_cache::is_credentials(name)).cloned().collect();
            credentials.iter().for_each(|name| drop(fields.remove(name)));
            // What the config says to one origin is not for another.
            for name in &self.set {
                head.fields.remove(name);
            }
        }
        let rule = site.rule_for(&head).map_err(|_| IncludeFailure::Climbing)?;
        let settings = site.settings_at(rule);
        settings.request.apply(&mut head.fields);
        let KeySettings { cookies, fields, .. } = &settings.key;
        let has_own_key = !cookies.is_empty() || !fields.is_empty();
        let has_edits = !is_of_own_origin || !settings.request.is_empty();
        let depends_on_fields = has_edits || has_own_key || site.asks_for_fields();
        let normal = key::normalise(&head.target, &settings.key);
        let sent_target = normal.map(|target| std::mem::replace(&mut head.target, target));
        Ok(Aimed { head, sent_target, site: index, rule, is_of_own_origin, depends_on_fields })
    }
}

/// The rules for the certificates of a site's clients, where it has any.
fn client_policy(site: &Site) -> Option<ClientPolicyId> {
    let tls = site.settings.tls.as_ref()?;
    Some(tls.client_policy).filter(|policy| *policy != ClientPolicyId::default())
}

/// The fields that fragments get of the page's.
fn fields_of(page: &HeaderMap) -> HeaderMap {
    let is_of_the_page =
        |name: &HeaderName| OF_THE_PAGE.contains(name) || name.as_str().starts_with("content-");
    let mut fields = HeaderMap::with_capacity(page.len() + 1);
    for (name, value) in page.iter().filter(|(name, _)| !is_of_the_page(name)) {
        fields.append(name, value.clone());
    }
    fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if page.contains_key(CACHE_CONTROL) && RequestDirectives::read(page).no_store {
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    fields
}

/// Whether a list of hosts names this one: exactly, or by `*.` one above it.
fn is_named(hosts: &[String], host: &str) -> bool {
    hosts.iter().any(|named| match named.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.ends_with('.')),
        None => named == host,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_named_hosts_are_asked_beside_the_own() {
        let hosts = ["static.example".to_owned(), "*.parts.example".to_owned()];
        for (host, is) in [
            ("static.example", true),
            ("a.static.example", false),
            ("parts.example", false),
            ("a.parts.example", true),
            ("a.b.parts.example", true),
            ("xparts.example", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(is_named(&hosts, host), is, "{host}");
        }
    }

    #[test]
    fn a_fragment_gets_the_fields_that_are_not_about_the_page() {
        let page = [
            ("cookie", "a=b"),
            ("accept-language", "de"),
            ("accept-encoding", "br"),
            ("range", "bytes=1-"),
            ("if-none-match", "\"a\""),
            ("content-type", "text/plain"),
            ("cache-control", "no-cache"),
            ("pragma", "no-cache"),
            ("x-own", "1"),
        ];
        let page = page.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let fields = fields_of(&HeaderMap::from_iter(page));
        let mut names: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "accept-language", "cookie", "x-own"]);
        assert_eq!(fields[ACCEPT_ENCODING], "identity");
        let wish = HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"))]);
        assert_eq!(fields_of(&wish)[CACHE_CONTROL], "no-store");
    }
}
