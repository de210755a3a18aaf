//! Pages as tables: a template, its fragments, and what a client gets.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;
use larder_http::target::reference::DocumentUri;
use larder_http::template::Language;
use larder_http::time::WallTime;

use crate::delivery::{Delivered, Delivery, Given};
use crate::{IncludeFailure, RequestFacts, RunSettings};

mod broken;
mod esi;
mod limits;
mod order;
mod ssi;

pub(super) const ERROR: &str = "[an error occurred while processing the directive]";

/// A page and its surroundings.
pub(super) struct Case {
    pub(super) language: Language,
    pub(super) uri: &'static str,
    pub(super) settings: RunSettings,
    pub(super) fields: HeaderMap,
    pub(super) fragments: Vec<(String, Given)>,
    pub(super) piece_bytes: usize,
    /// Whether the page's own template breaks off.
    pub(super) breaks: bool,
}

pub(super) fn uri(host: &'static str, target: &str) -> DocumentUri {
    DocumentUri {
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(host.as_bytes()), Scheme::Http).expect("a host"),
        target: Target::parse(Bytes::copy_from_slice(target.as_bytes())).expect("a target"),
    }
}

impl Case {
    pub(super) fn new(language: Language) -> Self {
        let mut fragments = Vec::new();
        for name in ["a", "b", "c"] {
            fragments.push((format!("/{name}"), Given::Body(name.to_uppercase().into_bytes())));
        }
        fragments.push(("/empty".to_owned(), Given::Body(Vec::new())));
        fragments.push(("/bad".to_owned(), Given::Failed(IncludeFailure::Status)));
        Self {
            language,
            uri: "/p/page?x=1&y=a%20b",
            settings: RunSettings::default(),
            fields: HeaderMap::new(),
            fragments,
            piece_bytes: 0,
            breaks: false,
        }
    }

    pub(super) fn field(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        self.fields.append(HeaderName::from_static(name), value);
        self
    }

    pub(super) fn ssi(mut self, target: &str, body: &str) -> Self {
        self.fragments.push((target.to_owned(), Given::Template(Language::Ssi, body.into())));
        self
    }

    pub(super) fn esi(mut self, target: &str, body: &str) -> Self {
        self.fragments.push((target.to_owned(), Given::Template(Language::Esi, body.into())));
        self
    }

    /// A template that breaks off.
    pub(super) fn broken(mut self, target: &str, language: Language, body: &str) -> Self {
        self.fragments.push((target.to_owned(), Given::Broken(language, body.into())));
        self
    }

    pub(super) fn body(mut self, target: &str, body: &str) -> Self {
        self.fragments.push((target.to_owned(), Given::Body(body.into())));
        self
    }

    pub(super) fn deliver(&self, body: &str, choose: &mut dyn FnMut(usize) -> usize) -> Delivered {
        let fragments = |name: &str| {
            let found = self.fragments.iter().rev().find(|(other, _)| other == name);
            found.map_or(Given::Failed(IncludeFailure::Status), |(_, given)| given.clone())
        };
        let method = Method::GET;
        let facts = RequestFacts {
            fields: &self.fields,
            method: &method,
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
            scheme: Scheme::Http,
            version: Version::HTTP_11,
            now: WallTime::from_secs(1_770_613_567),
        };
        let delivery = Delivery {
            language: self.language,
            uri: uri("own.example", self.uri),
            settings: self.settings.clone(),
            facts,
            fragments: &fragments,
            piece_bytes: self.piece_bytes,
            breaks: self.breaks,
        };
        delivery.deliver(body.as_bytes(), choose)
    }

    /// The page, with what ended it behind a bar.
    pub(super) fn page(&self, body: &str) -> String {
        let delivered = self.deliver(body, &mut |_| 0);
        let output = String::from_utf8_lossy(&delivered.output).into_owned();
        output + &delivered.failed.map_or(String::new(), |reason| format!("|{}", reason.as_str()))
    }

    #[track_caller]
    pub(super) fn check(&self, body: &str, expected: &str) {
        assert_eq!(self.page(body), expected, "{body}");
    }

    #[track_caller]
    pub(super) fn check_asked(&self, body: &str, expected: &[&str]) {
        assert_eq!(self.deliver(body, &mut |_| 0).asked, expected, "{body}");
    }
}
