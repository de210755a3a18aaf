//! By which part of a request its server is chosen, as a number that is the same on every worker and after a restart.
//!
//! In: the request as the origin receives it and its client. Out: a hash of the configured part; `None` where the
//! request does not have that part, and any server will do.

use std::net::IpAddr;

use larder_http::fields::cookie;
use larder_http::message::RequestHead;
use larder_origin::stable_hash;

use crate::settings::HashBy;

/// The hash of the part that `by` names.
pub(crate) fn hash(by: &HashBy, head: &RequestHead, client: IpAddr) -> Option<u64> {
    let (target, host) = (head.target.as_str(), head.authority.as_str());
    let path = target.split('?').next().unwrap_or_default();
    let query = || target.split_once('?').map_or("", |(_, query)| query);
    match by {
        HashBy::Url => Some(stable_hash(format!("{host}{target}").as_bytes())),
        HashBy::Path => Some(stable_hash(path.as_bytes())),
        HashBy::Host => Some(stable_hash(host.as_bytes())),
        HashBy::Client => Some(stable_hash(client.to_canonical().to_string().as_bytes())),
        HashBy::Field(name) => head.fields.get(name).map(|value| stable_hash(value.as_bytes())),
        HashBy::Cookie(name) => cookie::pairs(&head.fields)
            .find(|(other, _)| *other == name.as_bytes())
            .map(|(_, value)| stable_hash(value)),
        HashBy::Query(name) => query()
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .find(|(other, _)| other == name)
            .map(|(_, value)| stable_hash(value.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_named_part_counts() {
        let client = |text: &str| text.parse::<IpAddr>().unwrap_or(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
        let head = |target: &'static str, field: &'static str| {
            let mut head = crate::testing::request(target);
            head.fields.insert("x-a", HeaderValue::from_static(field));
            head.fields.insert("cookie", HeaderValue::from_static(field));
            head
        };
        let (a, b) = (head("/p?x=1&y=2", "c=1"), head("/p?y=2&x=1", "c=2"));
        let same = |by: &HashBy| hash(by, &a, client("::1")) == hash(by, &b, client("::1"));
        assert!(!same(&HashBy::Url) && same(&HashBy::Path) && same(&HashBy::Host) && same(&HashBy::Client));
        assert!(!same(&HashBy::Field(http::HeaderName::from_static("x-a"))));
        assert!(!same(&HashBy::Cookie("c".to_owned())));
        assert!(same(&HashBy::Query("x".to_owned())) && same(&HashBy::Query("y".to_owned())));
        assert_eq!(hash(&HashBy::Query("z".to_owned()), &a, client("::1")), None);
        assert_eq!(hash(&HashBy::Cookie("z".to_owned()), &a, client("::1")), None);
        let by_client = |text| hash(&HashBy::Client, &a, client(text));
        assert_eq!(by_client("::ffff:192.0.2.1"), by_client("192.0.2.1"));
        assert_ne!(by_client("192.0.2.1"), by_client("192.0.2.2"));
    }
}
