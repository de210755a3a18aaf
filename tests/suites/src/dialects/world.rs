//! Which requests go to which peer, what its application tags its responses with, and what larder's config says then.
//!
//! A world is one file of requests, one configuration of a peer, and one of larder. In: nothing. Out: [`WORLDS`], and `WITHOUT_PEER`
//! for the files that no peer here can answer.

/// The cache that a client was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Varnish with this VCL of tests/dialects/peers.
    Varnish(&'static str),
    /// nginx with its purge module.
    Nginx(&'static str),
}

impl Peer {
    /// For people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Varnish(_) => "varnish",
            Self::Nginx(_) => "nginx",
        }
    }
}

/// A field of responses that carries tags, and what separates them.
pub(crate) type TagField = (&'static str, &'static str);

/// See above.
#[derive(Debug)]
pub(crate) struct World {
    /// The file of requests, without its ending.
    pub(crate) requests: &'static str,
    pub(crate) peer: Peer,
    /// What carries the tags of stored responses.
    pub(crate) tags: &'static [TagField],
    /// What larder's site says of `tags`, beyond the fields above.
    pub(crate) more_tags: &'static [&'static str],
    /// What larder's site says of `purge`.
    pub(crate) purge: &'static str,
}

impl World {
    const fn new(requests: &'static str, config: &'static str, tags: &'static [TagField]) -> Self {
        let peer = Peer::Varnish(config);
        Self { requests, peer, tags, more_tags: &[], purge: r#"{ from = ["127.0.0.1"] }"# }
    }

    const fn nginx(requests: &'static str) -> Self {
        let purge = r#"{ from = ["127.0.0.1"], location = "/purge" }"#;
        Self { requests, peer: Peer::Nginx("nginx.conf"), tags: &[], more_tags: &[], purge }
    }
}

/// All worlds; those that take longest first.
pub(crate) const WORLDS: &[World] = &[
    World::new("foshttpcache-varnish", "foshttpcache-varnish.vcl", &[("X-Cache-Tags", ","), ("xkey", " ")]),
    World {
        more_tags: &["TYPO3-Pid", "TYPO3-Sitename"],
        ..World::new("typo3-ops-one", "typo3-ops-one.vcl", &[("xkey", " ")])
    },
    World::new("drupal-purger", "drupal-purger.vcl", DRUPAL),
    World::new("drupal-zero-config", "drupal-zero-config.vcl", &[("Cache-Tags", " ")]),
    World::new("proxy-cache-purge", "proxy-cache-purge.vcl", &[("X-Cache-Tags", ",")]),
    World { more_tags: &["X-Pool"], ..World::new("magento", "magento.vcl", &[("X-Magento-Tags", ",")]) },
    World::new("elgentos", "elgentos.vcl", &[("X-Magento-Tags", ",")]),
    World::new("api-platform", "api-platform.vcl", &[("Cache-Tags", ","), ("xkey", " ")]),
    World::new("shopware", "shopware.vcl", &[("xkey", " ")]),
    World::new("typo3-aoe", "typo3-aoe.vcl", &[("X-Tags", ",")]),
    World::new("neos", "neos.vcl", &[("X-Cache-Tags", ",")]),
    World {
        purge: r#"{ token = "5f2c81d09b7ae346" }"#,
        ..World::new("ibexa", "ibexa.vcl", &[("xkey", " ")])
    },
    World::new("mediawiki", "plain.vcl", &[]),
    World::new("joomla", "joomla.vcl", &[]),
    World::new("w3-total-cache", "w3-total-cache.vcl", &[]),
    World::new("plone", "plain.vcl", &[]),
    World::new("wagtail", "plain.vcl", &[]),
    World::new("b13-proxycachemanager", "plain.vcl", &[]),
    World::nginx("foshttpcache-nginx"),
    World::nginx("nginx-helper"),
    World::nginx("nginx-modules"),
];

const DRUPAL: &[TagField] = &[("Cache-Tags", " "), ("X-Cache-Tags", " "), ("Purge-Cache-Tags", " ")];

/// Files whose peer is not here, and what it is.
#[cfg(test)]
const WITHOUT_PEER: &[(&str, &str)] = &[
    ("foshttpcache-symfony", "the cache in Symfony itself, which runs within an application in PHP"),
    ("souin", "a cache in Caddy, which Debian does not have with this module"),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn each_file_of_requests_is_sent_to_its_peer_or_has_none_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: BTreeSet<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let worlds = WORLDS.iter().map(|world| world.requests);
        let named = worlds.chain(WITHOUT_PEER.iter().map(|(file, _)| *file)).map(str::to_owned);
        assert_eq!(named.collect::<BTreeSet<_>>(), files);
    }
}
