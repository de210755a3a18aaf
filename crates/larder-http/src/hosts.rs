//! Host names to sites: of requests, and of the names that TLS clients ask for.
//!
//! In: the hosts of each site. Out: the number of the site that a host belongs to. Exact names come before the longest wildcard, and that comes before
//! the site without hosts.

/// Its keys are the config's, so nobody outside can aim at it.
type HashMap<K, V> = hashbrown::HashMap<K, V, foldhash::fast::RandomState>;

/// Exact names, wildcards by their suffix, and the site for all others.
#[derive(Debug, Default)]
pub struct HostTable {
    exact: HashMap<String, usize>,
    /// `example.com` for `*.example.com`.
    below: HashMap<String, usize>,
    otherwise: Option<usize>,
}

impl HostTable {
    /// Of the canonical hosts of each site: a name or `*.` and a domain. A site without hosts is the one for all others. Where sites share a host,
    /// the first has it.
    pub fn new<'a>(sites: impl Iterator<Item = &'a [String]>) -> Self {
        let mut table = Self::default();
        for (index, hosts) in sites.enumerate() {
            if hosts.is_empty() {
                table.otherwise.get_or_insert(index);
            }
            for host in hosts {
                match host.strip_prefix("*.") {
                    Some(parent) => table.below.entry(parent.to_owned()).or_insert(index),
                    None => table.exact.entry(host.clone()).or_insert(index),
                };
            }
        }
        table
    }

    /// The site of a host in lower case. Walks up the labels, so the longest wildcard is met first; bounded by the length of a host.
    pub fn find(&self, host: &str) -> Option<usize> {
        if let Some(index) = self.exact.get(host) {
            return Some(*index);
        }
        if !self.below.is_empty() {
            let mut rest = host;
            while let Some((_, parent)) = rest.split_once('.') {
                if let Some(index) = self.below.get(parent) {
                    return Some(*index);
                }
                rest = parent;
            }
        }
        self.otherwise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_beats_the_longest_wildcard_beats_the_rest() {
        let sites: [&[&str]; 4] =
            [&["a.example.com"], &["*.example.com"], &["*.b.example.com", "other.org"], &[]];
        let sites = sites.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>());
        let table = HostTable::new(sites.iter().map(Vec::as_slice));
        for (host, site) in [
            ("a.example.com", Some(0)),
            ("x.example.com", Some(1)),
            ("x.y.example.com", Some(1)),
            ("x.b.example.com", Some(2)),
            ("b.example.com", Some(1)),
            ("example.com", Some(3)),
            ("other.org", Some(2)),
            ("192.0.2.1", Some(3)),
        ] {
            assert_eq!(table.find(host), site, "{host}");
        }
    }

    #[test]
    fn without_a_site_for_all_others_a_host_is_unknown() {
        let hosts = [vec!["a.org".to_owned()]];
        assert_eq!(HostTable::new(hosts.iter().map(Vec::as_slice)).find("b.org"), None);
    }
}
