//! Purges of the catalogue: something changes at the origin, a purge names it, and nothing older may be served once that is answered.
//!
//! In: a kind of purge and one of the resources. Out: the request, in the words of a plugin or of the admin address, and which
//! resources it names. All of them change before the request is sent, and count as acknowledged once it is answered with 200.

use larder_testkit::client::Request;
use serde_json::json;

use super::catalogue::{Catalogue, Draws, Resource};

const TOKEN: &str = "5f2c81d09b7ae3465f2c81d0";

/// The line of a site that lets these purges in.
pub(crate) fn site_line() -> String {
    format!("purge = {{ token = {TOKEN:?} }}\n")
}

/// What a purge names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PurgeKind {
    Url,
    Tag,
    Group,
    Prefix,
    Host,
    Pattern,
    All,
}

impl PurgeKind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Url, Self::Tag, Self::Group, Self::Prefix, Self::Host, Self::Pattern, Self::All];
}

/// Who answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedAt {
    Listener,
    Admin,
}

/// A purge of what has a name in common with one of the resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purge {
    pub(crate) kind: PurgeKind,
    pub(crate) like: Resource,
    pub(crate) is_soft: bool,
}

/// A purge that is about to be sent, and the new version of each resource that it names.
pub(crate) struct Changed(Purge, Vec<(Resource, u64)>);

impl Purge {
    pub(crate) fn names(&self, other: Resource) -> bool {
        let like = self.like;
        match self.kind {
            PurgeKind::Url => other == like,
            PurgeKind::Tag => other.tag() == like.tag() || other.has_every_tag(),
            PurgeKind::Group => (other.host(), other.group()) == (like.host(), like.group()),
            PurgeKind::Prefix => other.shelf() == like.shelf(),
            PurgeKind::Host => other.host() == like.host(),
            PurgeKind::Pattern => {
                (other.shelf(), other.content_type()) == (like.shelf(), like.content_type())
            }
            PurgeKind::All => true,
        }
    }

    /// Where it can be asked for.
    pub(crate) fn at(&self, draws: &mut Draws) -> AskedAt {
        match self.kind {
            PurgeKind::Group => AskedAt::Admin,
            _ => draws.one_of(&[AskedAt::Listener, AskedAt::Admin]),
        }
    }

    pub(crate) fn request(&self, at: AskedAt) -> Request {
        match at {
            AskedAt::Listener => self.in_a_plugins_words(),
            AskedAt::Admin => self.in_our_words(),
        }
    }

    fn in_a_plugins_words(&self) -> Request {
        let like = self.like;
        let (method, target, host) = match self.kind {
            PurgeKind::Url => ("PURGE", like.target(), like.host()),
            PurgeKind::Tag => ("PURGEKEYS", "/".to_owned(), "localhost"),
            PurgeKind::Prefix => ("BAN", format!("/{}/.*", like.shelf()), "localhost"),
            _ => ("BAN", "/".to_owned(), "localhost"),
        };
        let mut request = Request::new(method, &target, host)
            .field("Authorization", &format!("Bearer {TOKEN}"))
            .field("X-Purge-Soft", if self.is_soft { "1" } else { "0" });
        match self.kind {
            PurgeKind::Tag => {
                let name = if self.is_soft { "xkey-softpurge" } else { "xkey-purge" };
                request = request.field(name, &like.tag());
            }
            PurgeKind::Host => {
                request = request.field("X-Host", &format!("^{}$", like.host().replace('.', "\\.")));
            }
            PurgeKind::Pattern => {
                request = request
                    .field("X-Url", &format!("^/{}/[0-9]+/", like.shelf()))
                    .field("X-Content-Type", &format!("^{}", like.content_type()));
            }
            _ => {}
        }
        request
    }

    fn in_our_words(&self) -> Request {
        let like = self.like;
        let mut words = match self.kind {
            PurgeKind::Url => json!({ "urls": [like.url()] }),
            PurgeKind::Tag => json!({ "tags": [like.tag()] }),
            PurgeKind::Group => {
                json!({ "groups": [{ "origin": format!("http://{}", like.host()), "name": like.group() }] })
            }
            PurgeKind::Prefix => json!({ "prefixes": [format!("/{}/", like.shelf())] }),
            PurgeKind::Host => json!({ "hosts": [like.host()] }),
            PurgeKind::Pattern => {
                let url = format!("^/{}/\\d+/", like.shelf());
                json!({ "patterns": [{ "url": url, "content_type": like.content_type() }] })
            }
            PurgeKind::All => json!({ "all": true }),
        };
        words["soft"] = self.is_soft.into();
        Request::new("POST", "/api/v1/purges", "localhost")
            .field("Content-Type", "application/json")
            .body(words.to_string())
    }

    /// All that it names changes at the origin.
    pub(crate) fn change(&self, catalogue: &Catalogue) -> Changed {
        let named = catalogue.resources.iter().filter(|resource| self.names(**resource));
        Changed(*self, named.map(|resource| (*resource, catalogue.change(*resource))).collect())
    }
}

impl Changed {
    /// The purge was answered: nothing older may be served from now on, except for those that `may_be_older` says.
    pub(crate) fn acknowledge(&self, catalogue: &Catalogue, may_be_older: impl Fn(Resource) -> bool) {
        let Self(purge, named) = self;
        let named = named.iter().filter(|(resource, _)| !may_be_older(*resource));
        named.for_each(|(resource, version)| {
            catalogue.acknowledge(*resource, *version, &format!("{purge:?}"))
        });
    }
}
