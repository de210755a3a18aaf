//! `larder export`: what a running larder has stored, as a tree that any web server can serve.
//!
//! In: a directory, and what URLs begin with. Out: a file per response that a plain file can stand for, beneath the directory of its
//! host, and what was left out and why. In place of templates stand the pages that larder makes of what is stored. Responses come one after the other and their bodies piece by piece, so that memory
//! does not depend on how much is stored. A file gets its name when it is whole.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use larder_files::{ExportSettings, Exported, LeftOut, Page, export as write};
use larder_proxy::explain::Field;
use larder_proxy::objects::{AssembledPage, Object, Objects, StoredObject};
use tokio::runtime::Runtime;

use super::admin::{AdminArguments, AdminClientError, Answer, RunningLarder, encoded};
use super::ended::failed;
use super::exit;
use super::ls::target;
use super::output::{complain, print_all, printable, say};
use super::table::{bytes, counted};

/// Responses asked for at once.
const PAGE: usize = 500;

const WHAT: &str = "shows what it has stored";

/// So often the command says how far it is.
const TOLD_EVERY: u64 = 10_000;

#[derive(Debug, clap::Args)]
pub(super) struct ExportArguments {
    /// The directory; made where it is missing
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Only URLs that begin so: http://HOST/PATH, HOST/PATH, or a HOST; with or without * at the end
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    prefix: String,
    /// The media type that the web server gives to names that show none, where it gives one
    #[arg(long, value_name = "TYPE")]
    default_type: Option<String>,
    #[command(flatten)]
    admin: AdminArguments,
}

pub(super) fn export(arguments: &ExportArguments) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => Arc::new(runtime),
        Err(error) => return failed(&AdminClientError::Start(error)),
    };
    let settings = ExportSettings {
        path: arguments.path.clone(),
        mode: 0o644,
        default_type: arguments.default_type.clone(),
    };
    let larder = match arguments.admin.larder() {
        Ok(larder) => larder,
        Err(error) => return failed(&error),
    };
    let mut stored = Stored {
        runtime,
        larder: &larder,
        prefix: &arguments.prefix,
        cursor: Some(None),
        seen: HashSet::new(),
        waiting: VecDeque::new(),
        told: 0,
        failure: None,
    };
    let exported = write(&settings, &mut stored);
    match (exported, stored.failure) {
        (Err(error), _) => {
            complain(&error);
            ExitCode::from(exit::FAILURE)
        }
        (Ok(exported), failure) => {
            let printed = tell(arguments, &exported);
            failure.map_or(printed, |error| failed(&error))
        }
    }
}

fn tell(arguments: &ExportArguments, exported: &Exported) -> ExitCode {
    for (uri, why) in &exported.left_out {
        say(format_args!("left out: {}: {}", printable(uri), why.reason()));
    }
    let unnamed = exported.left_out_count.saturating_sub(exported.left_out.len() as u64);
    if unnamed > 0 {
        say(format_args!("left out: {unnamed} more"));
    }
    let (files, path) = (exported.files, arguments.path.display());
    let (files, size) = (counted(files, "file", "files"), bytes(exported.bytes));
    let left_out = counted(exported.left_out_count, "response", "responses");
    print_all(format!("{files} with {size} in {path}, {left_out} left out\n").as_bytes())
}

/// Responses of a running larder, asked for as they are written. Ends early where it does not answer.
struct Stored<'a> {
    runtime: Arc<Runtime>,
    larder: &'a RunningLarder,
    prefix: &'a str,
    /// Where the listing goes on; `None` at its end.
    cursor: Option<Option<String>>,
    /// URLs that were looked at: several responses may lie under one.
    seen: HashSet<String>,
    /// What is to be written.
    waiting: VecDeque<Waiting>,
    told: u64,
    failure: Option<AdminClientError>,
}

/// Something to be written.
enum Waiting {
    /// A response, with its URL and its number there.
    Response(String, usize, Box<StoredObject>),
    /// The page of a template, with its URL.
    Page(String),
}

impl Stored<'_> {
    fn ask_for<T: serde::de::DeserializeOwned>(&self, target: &str) -> Result<T, AdminClientError> {
        self.runtime.block_on(self.larder.ask_for(Method::GET, target, WHAT))
    }

    /// The next page of the listing: every URL in it with all that lies under it.
    fn fill(&mut self, cursor: Option<&str>) -> Result<(), AdminClientError> {
        let page: Objects = self.ask_for(&target(self.prefix, None, PAGE, cursor))?;
        self.cursor = page.next.map(Some);
        for listed in page.objects {
            if !self.seen.insert(listed.url.clone()) {
                continue;
            }
            let under: Object = match self.ask_for(&format!("/object?url={}", encoded(&listed.url))) {
                Ok(under) => under,
                // It went meanwhile.
                Err(AdminClientError::Refused(StatusCode::NOT_FOUND, _)) => continue,
                Err(error) => return Err(error),
            };
            let responses = under.responses.into_iter().enumerate();
            let usable = responses.filter(|(_, response)| !response.invalidated && response.part.is_none());
            let mut has_page = false;
            for (at, response) in usable {
                let url = listed.url.clone();
                if response.language.is_none() {
                    self.waiting.push_back(Waiting::Response(url, at + 1, Box::new(response)));
                } else if !std::mem::replace(&mut has_page, true) {
                    self.waiting.push_back(Waiting::Page(url));
                }
            }
        }
        Ok(())
    }

    /// The page of a template.
    fn assembled(&self, url: &str) -> Result<Option<Page>, AdminClientError> {
        let target = format!("/object?url={}&assembled=export", encoded(url));
        let told: AssembledPage = match self.ask_for(&target) {
            Ok(told) => told,
            Err(AdminClientError::Refused(code, message)) => {
                let why = match code {
                    // What is stored is for requests with other fields.
                    StatusCode::NOT_FOUND => LeftOut::Varies,
                    StatusCode::INTERNAL_SERVER_ERROR => LeftOut::Body,
                    _ => return Err(AdminClientError::Refused(code, message)),
                };
                let page = self.page(url, (StatusCode::OK, &[]), target);
                return Ok(page.map(|page| Page { left_out: Some(why), ..page }));
            }
            Err(error) => return Err(error),
        };
        let left_out = told.left_out.map(|why| reason(&why.token));
        let page = self.page(url, (status(told.status), &told.fields), format!("{target}&body=1"));
        Ok(page.map(|page| Page { left_out, ..page }))
    }

    /// What is written for a URL, with these fields; its content is had by asking for `content`.
    fn page(&self, url: &str, (status, fields): (StatusCode, &[Field]), content: String) -> Option<Page> {
        let (_, rest) = url.split_once("://")?;
        let (authority, target) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let fields: HeaderMap = fields
            .iter()
            .filter_map(|field| {
                let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
                Some((name, HeaderValue::from_str(&field.value).ok()?))
            })
            .collect();
        let body = Reading {
            runtime: Arc::clone(&self.runtime),
            asked: Asked::NotYet(self.larder.clone(), content),
            left: Bytes::new(),
        };
        Some(Page {
            authority: authority.to_owned(),
            path: path.to_owned(),
            query,
            status,
            fields,
            body: Box::new(body),
            left_out: None,
        })
    }

    fn try_next(&mut self) -> Result<Option<Page>, AdminClientError> {
        loop {
            if let Some(waiting) = self.waiting.pop_front() {
                self.told += 1;
                if self.told.is_multiple_of(TOLD_EVERY) {
                    say(format_args!("larder: {} responses looked at", self.told));
                }
                let page = match waiting {
                    Waiting::Page(url) => self.assembled(&url)?,
                    Waiting::Response(url, number, response) => {
                        let target = format!("/object?url={}&body={number}", encoded(&url));
                        self.page(&url, (status(response.status), &response.fields), target)
                    }
                };
                if page.is_some() {
                    return Ok(page);
                }
                continue;
            }
            match self.cursor.take() {
                Some(cursor) => self.fill(cursor.as_deref())?,
                None => return Ok(None),
            }
        }
    }
}

impl Iterator for &mut Stored<'_> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        match self.try_next() {
            Ok(page) => page,
            Err(error) => {
                self.failure = Some(error);
                None
            }
        }
    }
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY)
}

/// Why a page is left out, by larder's word for it.
fn reason(token: &str) -> LeftOut {
    match token {
        "part-missing" => LeftOut::PartMissing,
        "fragment-failed" => LeftOut::FragmentFailed,
        "template-invalid" => LeftOut::TemplateInvalid,
        "page-too-large" => LeftOut::PageTooLarge,
        "page-timeout" => LeftOut::PageTimeout,
        "no-store" => LeftOut::NoStore,
        // Whatever the reason is: it is not for everybody.
        _ => LeftOut::Personal,
    }
}

/// A stored body, asked for when it is wanted.
struct Reading {
    runtime: Arc<Runtime>,
    asked: Asked,
    left: Bytes,
}

enum Asked {
    NotYet(RunningLarder, String),
    Answering(Answer),
    Over,
}

impl Reading {
    /// The next bytes; none at the end.
    fn next(&mut self) -> Result<Bytes, AdminClientError> {
        if let Asked::NotYet(larder, target) = &self.asked {
            self.asked = Asked::Answering(self.runtime.block_on(larder.ask(Method::GET, target, WHAT))?);
        }
        let Asked::Answering(answer) = &mut self.asked else { return Ok(Bytes::new()) };
        let next = self.runtime.block_on(answer.next())?;
        if next.is_none() {
            self.asked = Asked::Over;
        }
        Ok(next.unwrap_or_default())
    }
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left.is_empty() && !matches!(self.asked, Asked::Over) {
            self.left = self.next().map_err(io::Error::other)?;
        }
        let length = buffer.len().min(self.left.len());
        self.left.copy_to_slice(buffer.get_mut(..length).unwrap_or_default());
        Ok(length)
    }
}
