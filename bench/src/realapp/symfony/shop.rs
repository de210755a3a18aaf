//! The shop, its pages, and who visits it.
//!
//! In: the stage. Out: a [`Shop`] with two addresses, its own and that of Symfony's HttpCache around it; visitors who know
//! how they have to be greeted.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::super::apache::Apache;
use super::super::fetch::{Answer, Client, MadeAnew};
use super::super::stage::Stage;
use harness::children::free_port;

/// The moment at which a part was made, once for programs and once for people.
pub(super) const MADE_ANEW: &MadeAnew = &[(b"data-page=\"", b'<'), (b"data-list=\"", b'<')];
pub(super) const PAGES: [&str; 3] = ["/esi", "/ssi", "/prices"];
/// What is in the addresses of the two fragments.
pub(super) const GREETING: &str = "ShopController%253A%253Agreeting";
pub(super) const LIST: &str = "ShopController%253A%253Alist";

pub(super) const VISITORS: [Visitor; 3] =
    [Visitor { cookie: Some("Ada") }, Visitor { cookie: Some("Grace") }, Visitor { cookie: None }];

/// Whoever has a cookie is greeted by the name in it.
#[derive(Clone, Copy)]
pub(super) struct Visitor {
    cookie: Option<&'static str>,
}

impl Visitor {
    pub(super) fn name(self) -> &'static str {
        self.cookie.unwrap_or("stranger")
    }

    /// The field of a request.
    pub(super) fn field(self) -> Option<String> {
        self.cookie.map(|name| format!("Cookie: visitor={name}"))
    }

    pub(super) fn ask(self, client: &Client, page: &str) -> Result<Answer> {
        client.send(page, &self.field().into_iter().collect::<Vec<_>>(), &[])
    }

    /// Fails unless the page is whole, and greets this visitor and no other.
    pub(super) fn is_greeted(self, page: &str, answer: &Answer) -> Result<()> {
        let text = answer.text();
        let status = &answer.cache_status;
        ensure!(answer.status == 200, "{page}: {} {status}", answer.status);
        ensure!(text.ends_with("</html>\n") && text.contains("data-list"), "{page}: not whole: {text}");
        ensure!(!text.contains("<esi:") && !text.contains("<!--#"), "{page}: a directive was left: {text}");
        let greeted: Vec<&str> = values(&text, "data-visitor=\"").collect();
        let expected: &[&str] = if has_greeting(page) { &[self.name()] } else { &[] };
        ensure!(greeted == expected, "{page}: {} is greeted as {greeted:?}: {status}", self.name());
        Ok(())
    }
}

pub(super) fn has_greeting(page: &str) -> bool {
    page != "/prices"
}

/// Each value of an attribute; `start` ends with its quote.
pub(super) fn values<'a>(text: &'a str, start: &str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).filter_map(|rest| rest.split('"').next())
}

/// The application, which runs.
pub(super) struct Shop {
    /// Where HttpCache answers.
    pub(super) cached: SocketAddr,
    apache: Apache,
}

impl Shop {
    pub(super) fn start(stage: &Stage<'_>) -> Result<Self> {
        fs::create_dir(stage.work.join("var"))?;
        copy(&stage.data.join("app"), &stage.work.join("app"))?;
        let cached = free_port()?;
        let marks = [("@CACHED_PORT@", cached.port().to_string())];
        let apache = Apache::start_with(&stage.data.join("apache.conf"), stage.work, &marks)?;
        Ok(Self { cached, apache })
    }

    /// Where the application answers by itself.
    pub(super) fn address(&self) -> SocketAddr {
        self.apache.address
    }

    /// All that larder is told.
    pub(super) fn config(&self) -> String {
        format!("[origins.shop]\nservers = \"http://{}\"\n\n[[site]]\norigin = \"shop\"\n", self.address())
    }

    /// Requests from larder in Apache's log whose target has this in it.
    pub(super) fn asked(&self, part: &str) -> Result<usize> {
        self.apache.asked_where(|target| target.contains(part))
    }

    pub(super) fn still_runs(&mut self) -> Result<()> {
        self.apache.still_runs()
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page(visitor: &str) -> Answer {
        let body = format!("<b data-visitor=\"{visitor}\">{visitor}</b> <i data-list=\"7\">x</i></html>\n");
        Answer { status: 200, body: body.into_bytes(), ..Answer::default() }
    }

    #[test]
    fn a_greeting_of_another_visitor_is_found() {
        let [ada, grace, stranger] = VISITORS;
        ada.is_greeted("/esi", &page("Ada")).unwrap();
        stranger.is_greeted("/ssi", &page("stranger")).unwrap();
        assert!(grace.is_greeted("/esi", &page("Ada")).is_err());
        assert!(stranger.is_greeted("/esi", &page("Ada")).is_err());
        assert!(ada.is_greeted("/prices", &page("Ada")).is_err());
    }

    #[test]
    fn a_page_with_a_directive_or_without_its_end_is_not_whole() {
        let [ada, ..] = VISITORS;
        for (old, new) in [("</html>\n", ""), ("data-list", "data"), ("<i ", "<esi:include/><i ")] {
            let mut answer = page("Ada");
            answer.body = answer.text().replace(old, new).into_bytes();
            assert!(ada.is_greeted("/esi", &answer).is_err(), "{old}");
        }
    }
}
