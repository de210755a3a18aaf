//! Values of variables at one place of one page.
//!
//! In: a variable, what the document sees, and the facts of the request. Out: its value, marked as foreign where it came from the
//! request or a document's URI. What is read of the request is noted. Each value counts by its length.

use bytes::Bytes;
use http::header;
use larder_http::target::reference::DocumentUri;
use larder_http::time::WallTime;

use super::budget::Budget;
use super::scope::{Captures, Scope};
use crate::composed::Lookup;
use crate::facts::Asker;
use crate::name::{Variable, esi, ssi};
use crate::value::Value;
use crate::{date, escape};

/// Bytes of a value that count as one operation.
const BYTES_PER_OPERATION: usize = 1024;

/// One place of one page.
pub(super) struct Evaluator<'a> {
    pub(super) asker: Asker<'a>,
    /// Of the document.
    pub(super) uri: &'a DocumentUri,
    pub(super) page_uri: &'a DocumentUri,
    /// Of the page's template.
    pub(super) last_modified: Option<WallTime>,
    pub(super) scope: &'a Scope,
    pub(super) captures: &'a mut Captures,
    pub(super) date_format: &'a [u8],
    pub(super) budget: &'a mut Budget,
}

impl Lookup for Evaluator<'_> {
    fn look_up(&mut self, variable: &Variable) -> Option<Value> {
        let value = match variable {
            Variable::Ssi(name) => self.ssi(name),
            Variable::Esi(name) => self.esi(name),
        };
        if let Some(value) = &value {
            self.spend(1 + value.text().len() / BYTES_PER_OPERATION);
        }
        value
    }

    fn spend(&mut self, operations: usize) {
        // Whether there is more is asked before each operation of the template.
        let _ = self.budget.spend(operations);
    }

    fn captured(&mut self, numbered: Vec<Option<Value>>, named: Vec<(Box<[u8]>, Value)>) {
        *self.captures = Captures { numbered, named };
    }
}

impl Evaluator<'_> {
    fn ssi(&mut self, name: &ssi::SsiName) -> Option<Value> {
        if let Some(ssi::SsiKnown::Capture(number)) = name.known {
            return self.captures.numbered(number).cloned();
        }
        if let Some(value) = self.captures.named(&name.text).or_else(|| self.scope.value(&name.text)) {
            return Some(value.clone());
        }
        let (own, target) = (&self.uri.target, &self.page_uri.target);
        let path = target.path();
        Some(match name.known.as_ref()? {
            ssi::SsiKnown::Capture(_) => return None,
            ssi::SsiKnown::DocumentUri => text(path),
            ssi::SsiKnown::DocumentName => text(path.rsplit('/').next()?),
            ssi::SsiKnown::Query => text(target.query()?),
            ssi::SsiKnown::QueryDecoded => Value::foreign(escape::decoded(target.query()?.as_bytes(), false)),
            ssi::SsiKnown::OwnUri => text(own.path()),
            ssi::SsiKnown::OwnQuery => text(own.query()?),
            ssi::SsiKnown::Method => text(self.asker.method()),
            ssi::SsiKnown::RequestUri => Value::foreign(target.as_bytes().clone()),
            ssi::SsiKnown::Host => text(self.uri.authority.host()),
            ssi::SsiKnown::Authority => text(self.uri.authority.as_str()),
            ssi::SsiKnown::Protocol => text(self.asker.version()),
            ssi::SsiKnown::Scheme => text(self.asker.scheme()),
            ssi::SsiKnown::Client => text(&self.asker.client()),
            ssi::SsiKnown::LastModified => {
                Value::foreign(date::format(self.last_modified?, self.date_format))
            }
            ssi::SsiKnown::Date => Value::foreign(date::format(self.asker.now(), self.date_format)),
            ssi::SsiKnown::Field(field) => Value::foreign(self.asker.field(field)?.into_owned()),
            ssi::SsiKnown::Cookie(key) => copied(self.asker.cookie(|other| other.eq_ignore_ascii_case(key))?),
            ssi::SsiKnown::Argument(key) => {
                copied(argument(own.query()?, |name| name.eq_ignore_ascii_case(key))?)
            }
        })
    }

    fn esi(&mut self, name: &esi::EsiName) -> Option<Value> {
        let value = self.esi_known(&name.known).filter(|value| !value.is_empty());
        value.or_else(|| name.default.clone().map(Value::own))
    }

    fn esi_known(&mut self, known: &esi::EsiKnown) -> Option<Value> {
        let target = &self.uri.target;
        Some(match known {
            esi::EsiKnown::Cookie(key) => copied(self.asker.cookie(|other| other == &**key)?),
            esi::EsiKnown::Query => text(target.query()?),
            esi::EsiKnown::Argument(key) => {
                let found = argument(target.query()?, |name| escape::decoded(name, true) == **key)?;
                Value::foreign(escape::decoded(found, true))
            }
            esi::EsiKnown::Host => text(self.uri.authority.as_str()),
            esi::EsiKnown::Language(tag) => {
                let said = self.asker.field(&header::ACCEPT_LANGUAGE).unwrap_or_default();
                Value::own(Bytes::from_static(if takes(&said, tag) { b"true" } else { b"false" }))
            }
            esi::EsiKnown::Browser => Value::own(Bytes::from_static(browser(&self.agent()?).0)),
            esi::EsiKnown::BrowserVersion => copied(browser(&self.agent()?).1),
            esi::EsiKnown::System => Value::own(Bytes::from_static(system(&self.agent()?))),
            esi::EsiKnown::Method => text(self.asker.method()),
            esi::EsiKnown::Path => text(target.path()),
            esi::EsiKnown::Client => text(&self.asker.client()),
            esi::EsiKnown::Field(field) => Value::foreign(self.asker.field(field)?.into_owned()),
            esi::EsiKnown::Assigned(name) => self.scope.value(name)?.clone(),
            esi::EsiKnown::Nothing => return None,
        })
    }

    fn agent(&mut self) -> Option<Vec<u8>> {
        self.asker.field(&header::USER_AGENT).map(std::borrow::Cow::into_owned)
    }
}

fn text(text: &str) -> Value {
    copied(text.as_bytes())
}

fn copied(bytes: &[u8]) -> Value {
    Value::foreign(Bytes::copy_from_slice(bytes))
}

/// The first argument of that name, as it came.
fn argument(query: &str, is_it: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    query.as_bytes().split(|byte| *byte == b'&').find_map(|pair| {
        let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = pair.split_at(end);
        (!pair.is_empty() && is_it(name)).then(|| value.get(1..).unwrap_or_default())
    })
}

/// Whether Accept-Language names a tag, with a weight above zero.
fn takes(said: &[u8], tag: &[u8]) -> bool {
    said.split(|byte| *byte == b',').any(|member| {
        let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(tag));
        let is_refused = |part: &[u8]| match part {
            [b'q' | b'Q', b'=', weight @ ..] => weight.iter().all(|byte| matches!(byte, b'0' | b'.')),
            _ => false,
        };
        is_it && !parts.any(is_refused)
    })
}

/// Name and version of a browser, as far as ESI tells them apart.
fn browser(agent: &[u8]) -> (&'static [u8], &[u8]) {
    let version_at = |at: usize| {
        let rest = agent.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        rest.get(..length).unwrap_or_default()
    };
    let find = |name: &[u8]| memchr::memmem::find(agent, name).map(|at| at + name.len() + 1);
    if let Some(at) = find(b"MSIE") {
        (b"MSIE", version_at(at))
    } else if let Some(at) = find(b"Mozilla") {
        (b"MOZILLA", version_at(at))
    } else {
        (b"OTHER", b"")
    }
}

fn system(agent: &[u8]) -> &'static [u8] {
    let has = |name: &[u8]| memchr::memmem::find(agent, name).is_some();
    if has(b"Windows") || has(b"Win9") || has(b"WinNT") {
        b"WIN"
    } else if has(b"Mac") {
        b"MAC"
    } else if [&b"X11"[..], b"Linux", b"BSD", b"SunOS", b"Unix"].into_iter().any(has) {
        b"UNIX"
    } else {
        b"OTHER"
    }
}
