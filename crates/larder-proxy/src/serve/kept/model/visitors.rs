//! Who asks, and how: visitors with cookies, languages, credentials and addresses of their own.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, COOKIE, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::{HeaderName, HeaderValue, Method};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;

use super::Dice;

pub(super) const HOST: &str = "a.test";
const LANGUAGE: HeaderName = HeaderName::from_static("x-lang");

/// Somebody who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visitor {
    pub(super) cookie: Option<&'static str>,
    language: Option<&'static str>,
    has_credentials: bool,
    address: [u8; 4],
}

const NOBODY: Visitor =
    Visitor { cookie: None, language: None, has_credentials: false, address: [10, 0, 0, 1] };

pub(super) const VISITORS: [Visitor; 9] = [
    NOBODY,
    Visitor { language: Some("de"), ..NOBODY },
    // Like the one before in all but the address.
    Visitor { language: Some("de"), address: [10, 0, 0, 3], ..NOBODY },
    Visitor { language: Some("en"), address: [10, 0, 0, 4], ..NOBODY },
    Visitor { cookie: Some("name=ada"), address: [10, 0, 0, 5], ..NOBODY },
    Visitor { cookie: Some("name=bob"), address: [10, 0, 0, 6], ..NOBODY },
    Visitor { cookie: Some("name=ada"), language: Some("de"), address: [10, 0, 0, 7], ..NOBODY },
    Visitor { cookie: Some("session=1; name=eve"), address: [10, 0, 0, 8], ..NOBODY },
    Visitor { has_credentials: true, address: [10, 0, 0, 9], ..NOBODY },
];

/// What a request wants beside the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Head,
    IfNoneMatch,
    Range,
    IfRange,
    IfModifiedSince,
    NoCache,
}

impl Wish {
    /// Nothing, mostly.
    pub(super) fn any(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..70 => Self::Nothing,
            70..80 => Self::Head,
            80..87 => Self::IfNoneMatch,
            87..93 => Self::Range,
            93..96 => Self::IfRange,
            96..99 => Self::IfModifiedSince,
            _ => Self::NoCache,
        }
    }
}

impl Visitor {
    pub(super) fn ip(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(self.address))
    }

    /// A request; `tag` is the entity tag of the page that somebody got last.
    pub(super) fn asks(&self, target: &'static str, wish: Wish, tag: &HeaderValue) -> RequestHead {
        let mut head = RequestHead {
            authority: Authority::parse(Bytes::from_static(HOST.as_bytes()), Scheme::Http).unwrap(),
            target: Target::parse(Bytes::from_static(target.as_bytes())).unwrap(),
            ..crate::testing::request("/")
        };
        let named = [(COOKIE, self.cookie), (LANGUAGE, self.language)];
        let named =
            named.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_static(value?))));
        head.fields.extend(named);
        if self.has_credentials {
            head.fields.insert(AUTHORIZATION, HeaderValue::from_static("Basic QTpC"));
        }
        let mut says = |name: HeaderName, value: HeaderValue| drop(head.fields.insert(name, value));
        match wish {
            Wish::Nothing | Wish::Head => {}
            Wish::IfNoneMatch => says(IF_NONE_MATCH, tag.clone()),
            Wish::Range => says(RANGE, HeaderValue::from_static("bytes=2-11")),
            Wish::IfRange => {
                says(RANGE, HeaderValue::from_static("bytes=3-"));
                says(IF_RANGE, tag.clone());
            }
            Wish::IfModifiedSince => {
                says(IF_MODIFIED_SINCE, HeaderValue::from_static("Sun, 06 Nov 2044 08:49:37 GMT"));
            }
            Wish::NoCache => says(CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        }
        if wish == Wish::Head {
            head.method = Method::HEAD;
        }
        head
    }
}
