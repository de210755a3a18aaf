//! What may be used, as a plain map knows it: when each body was fetched, when its head was, under which names, and what was purged since.
//!
//! In: what was stored, and purges, each at a moment of its own. Out: why a response that was found may not be used in this way. A
//! moment is a number that grows with each step; a body is made of the moments at which its pieces were asked for.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use larder_cache::StoredHead;
use larder_cache::purge::{Expression, PatternText, Scope, Selector};
use larder_http::message::Scheme;

pub(super) const HOSTS: [&str; 2] = ["a.test", "b.test"];
pub(super) const TARGETS: [&str; 5] = ["/", "/x/1", "/x/2?q", "/y/1", "/y/z/1"];
pub(super) const PREFIXES: [&str; 3] = ["/", "/x/", "/y/z/"];
pub(super) const TYPES: [&str; 2] = ["text/html", "image/png"];
/// Tags and groups of each response are of so many.
pub(super) const NAMES: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Url {
    pub(super) host: &'static str,
    pub(super) target: &'static str,
}

/// By what purges know a response beside its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    tags: Vec<String>,
    has_every_tag: bool,
    groups: Vec<String>,
    content_type: String,
}

impl Names {
    pub(super) fn of(head: &StoredHead) -> Self {
        let fields = head.all_fields();
        let content_type = words(&fields, "content-type").concat();
        let tags = words(&fields, "surrogate-key");
        let has_every_tag = head.tags.as_ref().is_some_and(|tags| tags.carries_every());
        Self { tags, has_every_tag, groups: words(&fields, "cache-groups"), content_type }
    }
}

fn words(fields: &HeaderMap, name: &str) -> Vec<String> {
    let values = fields.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let words = values.flat_map(|value| value.split([' ', ',']));
    words.map(|word| word.trim_matches('"').to_owned()).filter(|word| !word.is_empty()).collect()
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Url(Url),
    Tag(u64),
    Group(&'static str, u64),
    Prefix(&'static str),
    Host(&'static str),
    Pattern { below: &'static str, content_type: &'static str },
    All,
}

#[derive(Clone, Debug)]
pub(super) struct Purge {
    pub(super) at: u64,
    pub(super) what: What,
    pub(super) is_soft: bool,
    /// The only host that its sender may purge.
    pub(super) only: Option<&'static str>,
}

impl Purge {
    pub(super) fn names(&self, url: Url, names: &Names) -> bool {
        let path = url.target.split('?').next().unwrap_or_default();
        let is_named = match &self.what {
            What::Url(named) => *named == url,
            What::Tag(tag) => names.has_every_tag || names.tags.contains(&format!("t{tag}")),
            What::Group(host, group) => *host == url.host && names.groups.contains(&format!("g{group}")),
            What::Prefix(prefix) => path.starts_with(prefix),
            What::Host(host) => *host == url.host,
            What::Pattern { below, content_type } => {
                url.target.starts_with(below) && names.content_type == *content_type
            }
            What::All => true,
        };
        is_named && self.only.is_none_or(|only| only == url.host)
    }

    pub(super) fn selector(&self) -> Selector {
        match &self.what {
            What::Url(Url { host, target }) => Selector::Url(format!("http://{host}{target}").into()),
            What::Tag(tag) => Selector::Tag(format!("t{tag}").into_bytes().into()),
            What::Group(host, group) => Selector::Group {
                scheme: Scheme::Http,
                authority: (*host).into(),
                name: format!("g{group}").into(),
            },
            What::Prefix(path) => Selector::Prefix { host: None, path: (*path).into() },
            What::Host(host) => Selector::Host((*host).into()),
            What::Pattern { below, content_type } => {
                let target = Some(Expression { text: format!("{below}[a-z0-9/?]*$").into(), at_start: true });
                let content_type =
                    Some(Expression { text: format!("^{content_type}").into(), at_start: false });
                Selector::Pattern(PatternText { target, content_type, ..PatternText::default() })
            }
            What::All => Selector::All,
        }
    }

    pub(super) fn scope(&self) -> Arc<Scope> {
        Arc::new(self.only.map_or_else(Scope::any, |only| Scope::of_sites([(only, true)], false)))
    }
}

/// A response that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// As its entity tag says.
    pub(super) version: u64,
    /// When its oldest piece was asked for.
    pub(super) oldest: u64,
    /// When its head was asked for, or confirmed.
    pub(super) confirmed: u64,
    pub(super) names: Names,
    /// Whether it may be used while it is refreshed.
    pub(super) has_window: bool,
}

/// In which way it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    AsItIs,
    BehindARefresh,
    /// The origin is asked whether it may be.
    ToValidate,
}

/// What was stored of a body's names.
struct Head {
    /// From when on.
    since: u64,
    /// When the answer that gave them was asked for.
    confirmed: u64,
    names: Names,
}

#[derive(Default)]
pub(super) struct Map {
    last: u64,
    purges: Vec<Purge>,
    /// What was invalidated by an unsafe request.
    posts: Vec<(u64, Url)>,
    /// The last crash. It takes along what was not written yet: a response may then be again what it was before a 304.
    crashed: u64,
    /// The heads of each body, by its URL, version and oldest piece.
    heads: HashMap<(Url, u64, u64), Vec<Head>>,
}

impl Map {
    pub(super) fn now(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn purged(&mut self, purge: Purge) {
        self.purges.push(purge);
    }

    pub(super) fn posted(&mut self, url: Url) {
        let now = self.now();
        self.posts.push((now, url));
    }

    /// It is stored under these names now, which were asked for at `confirmed`.
    pub(super) fn stored(&mut self, url: Url, (version, oldest): (u64, u64), confirmed: u64, names: Names) {
        let since = self.last;
        let heads = self.heads.entry((url, version, oldest)).or_default();
        if heads.last().is_none_or(|last| (last.confirmed, &last.names) != (confirmed, &names)) {
            heads.push(Head { since, confirmed, names });
        }
    }

    pub(super) fn crashed(&mut self) {
        self.crashed = self.now();
    }

    /// Whether a purge named it: by the names that it had then, or was stored under first, where that was later.
    fn is_named(&self, purge: &Purge, url: Url, found: &Found) -> bool {
        let heads = self.heads.get(&(url, found.version, found.oldest)).into_iter().flatten();
        let (before, after): (Vec<_>, Vec<_>) = heads.partition(|head| head.since < purge.at);
        if is_apart(purge, url, (&before, &after), found) {
            return false;
        }
        let is_sure = before.iter().chain(&after).all(|head| head.since > self.crashed);
        let then = match (is_sure, &before[..]) {
            (true, [.., last]) => vec![&last.names],
            (false, [_, ..]) => before.iter().map(|head| &head.names).collect(),
            (_, []) => vec![after.first().map_or(&found.names, |head| &head.names)],
        };
        then.into_iter().all(|names| purge.names(url, names))
    }

    /// Why it may not be used in this way by a request that came at `arrived`.
    pub(super) fn objection(&self, url: Url, found: &Found, way: Way, arrived: u64) -> Option<String> {
        for purge in self.purges.iter().filter(|purge| purge.at <= arrived) {
            if !self.is_named(purge, url, found) {
                continue;
            }
            let is_forbidden = match purge.is_soft {
                false => purge.at > found.oldest,
                true => purge.at > found.confirmed && (way == Way::AsItIs || !may_be_stale(found, way)),
            };
            if is_forbidden {
                return Some(format!("{purge:?}"));
            }
        }
        let mut posts = self.posts.iter().filter(|(at, posted)| *posted == url && *at <= arrived);
        let post = posts.find(|(at, _)| *at > found.confirmed && way != Way::ToValidate);
        post.map(|(at, _)| format!("a POST at {at}"))
    }
}

/// Whether the purge was of one of two 304s only. Of two that were asked for at once before it, one may give the name and the other
/// not. The purge concerns the first of them and what that left in the store. The other answer is no worse than a 200 without that name.
fn is_apart(purge: &Purge, url: Url, (before, after): (&[&Head], &[&Head]), found: &Found) -> bool {
    let last = Head { since: u64::MAX, confirmed: found.confirmed, names: found.names.clone() };
    after.iter().copied().chain([&last]).any(|head| {
        let mut offered = before.iter().filter(|offered| offered.since < head.confirmed);
        head.confirmed < purge.at
            && !purge.names(url, &head.names)
            && offered.next_back().is_some_and(|offered| !purge.names(url, &offered.names))
    })
}

fn may_be_stale(found: &Found, way: Way) -> bool {
    way == Way::ToValidate || found.has_window
}
