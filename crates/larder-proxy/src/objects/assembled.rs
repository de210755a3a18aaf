//! Pages of what is stored, for people: `larder get --assembled` and `larder export`.
//!
//! In: the URL of a stored template. Out: the page that a visitor who sends no field would get of what is stored, fresh or stale, with its
//! head; or why there is none. The run is that of `larder explain`; its parts are looked for as they lie ([`super::at_rest`]), so nothing is
//! fetched, refreshed or counted. A page is held in memory, at most `page_size` of its rule, and two of them at a time, until their
//! bytes were sent. What is stored and is no template is shown as it is.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, CONTENT_LENGTH, ETAG};
use larder_assemble::RequestFacts;
use larder_cache::page::PageGround;
use larder_http::body::{Body, Pieces};
use larder_http::message::RequestHead;
use larder_http::template::Language;
use tokio::time::timeout;

use super::at_rest::{NoContent, OpenedPart, PartAtRest, PartLook, missing};
use super::error::ObjectsError;
use super::told::{AssembledPage, PageLeftOut, fields_of};
use super::url::Url;
use crate::assemble::{PartBody, WholePage, page_head_fields};
use crate::explain::{NoPage, Parts, TemplateAtHand, uri_of};
use crate::key;
use crate::serve::Aim;
use crate::settings::RuleSettings;
use crate::worker::Worker;

/// How long a place is waited for.
const PLACE_TIME: Duration = Duration::from_secs(10);

/// A page with its bytes, where there are any.
#[derive(Debug)]
pub struct StoredPage {
    told: AssembledPage,
    body: Body,
}

impl StoredPage {
    /// All but its bytes.
    pub fn told(&self) -> &AssembledPage {
        &self.told
    }

    /// Its bytes. With `for_all` only where they are for everybody.
    ///
    /// # Errors
    /// There is no such page.
    pub fn into_body(self, for_all: bool) -> Result<Body, ObjectsError> {
        let AssembledPage { url, body_bytes, left_out, .. } = self.told;
        match left_out.filter(|_| for_all || body_bytes.is_none()) {
            Some(why) => Err(ObjectsError::NoPage { url, why }),
            None => Ok(self.body),
        }
    }
}

/// What became of a run.
struct Made {
    /// Where it was a template.
    language: Option<Language>,
    fields: HeaderMap,
    page: Result<WholePage, PageLeftOut>,
    left_out: Option<PageLeftOut>,
}

impl Worker {
    /// The page of a URL, put together from what is stored for a visitor who sends no field.
    ///
    /// # Errors
    /// It is no URL, or nothing is stored there for such a visitor.
    ///
    /// # Cancel safety
    /// May be dropped at any time: the page is given up.
    pub async fn page(&self, url: &str) -> Result<StoredPage, ObjectsError> {
        let mut head = Url::parse(url)?.request();
        let places = Arc::clone(&self.proxy.pages_for_people);
        let place = timeout(PLACE_TIME, places.acquire_owned()).await.map_err(|_| ObjectsError::Busy)?;
        let place = place.map_err(|_| ObjectsError::Lost)?;
        let plan = Arc::clone(&self.worker_plan.load().plan);
        let absent = || ObjectsError::NotForAll(url.to_owned());
        let (_, site) = plan.router.site(head.authority.host()).ok_or_else(absent)?;
        let settings = site.settings_for(&head).map_err(|_| absent())?;
        settings.request.apply(&mut head.fields);
        if let Some(target) = key::normalise(&head.target, &settings.key) {
            head.target = target;
        }
        let fragments = &settings.fragments;
        let mut look = PartLook::new(self, &plan, self.proxy.clock.now(), fragments.page_size);
        let opened = look.in_stores(&head, settings).await?.ok_or_else(absent)?;
        let (status, aim) = (opened.0.status.as_u16(), Aim::new(&head, settings, site.settings.origin));
        let making = made(&mut look, &aim, (&head, &**settings), opened);
        let mut made = match timeout(fragments.page_timeout, making).await {
            Ok(made) => made?.ok_or_else(|| ObjectsError::Unreadable(url.to_owned()))?,
            Err(_) => {
                let sentence = "Its parts could not be read within page_timeout of fragments.";
                Made::without(left_out("page-timeout", sentence))
            }
        };
        let mut told = AssembledPage {
            url: url.to_owned(),
            language: made.language.map(|language| language.as_str().to_owned()),
            status,
            fields: Vec::new(),
            body_bytes: None,
            left_out: made.left_out,
        };
        let body = match made.page {
            Ok(mut page) => {
                page.hold_room(Box::new(place));
                settings.response.apply(&mut made.fields);
                told.fields = fields_of(&made.fields);
                let length = page.length();
                told.body_bytes = Some(length);
                let owner: Arc<dyn Pieces> = Arc::new(page);
                if length == 0 { Body::Empty } else { Body::Pieces { owner, range: 0..length } }
            }
            Err(why) => {
                told.left_out = Some(why);
                Body::Empty
            }
        };
        Ok(StoredPage { told, body })
    }
}

/// What is made of a stored response; `None` where it cannot be read any more.
async fn made(
    look: &mut PartLook<'_>,
    aim: &Aim,
    (head, settings): (&RequestHead, &RuleSettings),
    (part, body): OpenedPart,
) -> Result<Option<Made>, ObjectsError> {
    let content = match part.language() {
        Some(_) => look.content(&part, body).await,
        None => look.stored_content(body).await,
    };
    let content = match content {
        Ok(content) => content,
        Err(NoContent::TooLarge) => return Ok(Some(Made::without(left_out_for(&NoPage::TooLarge)))),
        Err(NoContent::Gone | NoContent::Coding) => return Ok(None),
    };
    Ok(Some(match look.template(&part, (head, settings), content.copy()).await? {
        Some(template) if template.program.has_operations() => {
            assembled(look, aim, (head, settings), (&part, template)).await?
        }
        _ => plain(&part, content),
    }))
}

impl Made {
    fn without(why: PageLeftOut) -> Self {
        Self { language: None, fields: HeaderMap::new(), page: Err(why), left_out: None }
    }
}

/// What is stored, as it is.
fn plain(part: &PartAtRest, content: PartBody) -> Made {
    let mut page = WholePage::default();
    if let Some((chunks, owner)) = content.into_whole() {
        chunks.into_iter().for_each(|chunk| page.push(chunk));
        page.hold(owner);
    }
    let mut fields = part.fields.clone();
    measured(&mut fields, &page, part.age_seconds);
    Made { language: None, fields, page: Ok(page), left_out: None }
}

/// The page of a template.
async fn assembled(
    look: &mut PartLook<'_>,
    aim: &Aim,
    (head, settings): (&RequestHead, &RuleSettings),
    (part, template): (&PartAtRest, TemplateAtHand),
) -> Result<Made, ObjectsError> {
    let facts = RequestFacts {
        fields: &head.fields,
        method: &head.method,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        scheme: head.scheme,
        version: head.version,
        now: look.now().wall,
    };
    let (policy, fragments) = (&settings.policy.templates, &*settings.fragments);
    let of_template = (template, part.said.clone());
    let mut parts = Parts::new(uri_of(head), of_template, facts, (fragments, policy.escapes_html));
    while let Some(wanted) = parts.next() {
        // What a disk does not give in time is not there.
        let looked = timeout(fragments.timeout, look.fragment(aim, &wanted)).await;
        parts.give(looked.unwrap_or_else(|_| Ok(missing()))?);
        if look.is_full() {
            return Ok(Made::without(left_out_for(&NoPage::TooLarge)));
        }
    }
    if policy.strict && parts.has_problems() {
        let sentence = "The template has problems, and its rule says strict.";
        return Ok(Made::without(left_out("template-invalid", sentence)));
    }
    let page = match parts.page(fragments.page_size) {
        Ok(page) => page,
        Err(why) => return Ok(Made::without(left_out_for(&why))),
    };
    let (control, ground) = parts.control(&part.fields, false);
    let mut fields = page_head_fields(&part.fields, &control, &settings.policy.controls.targets);
    if let Some(tag) = page.tag() {
        fields.insert(ETAG, tag.clone());
    }
    measured(&mut fields, &page, control.age_seconds);
    let failed = || {
        let sentence = "A part fails, and SSI's error text stands in its place.";
        parts.has_error_text().then(|| left_out("fragment-failed", sentence))
    };
    let left_out = ground.and_then(not_for_all).or_else(failed);
    Ok(Made { language: part.language(), fields, page: Ok(page), left_out })
}

/// What is known of a page of which all is there.
fn measured(fields: &mut HeaderMap, page: &WholePage, age_seconds: Option<u64>) {
    fields.insert(CONTENT_LENGTH, page.length().into());
    if let Some(age) = age_seconds {
        fields.insert(AGE, age.into());
    }
}

fn left_out(token: &str, sentence: impl Into<String>) -> PageLeftOut {
    PageLeftOut { token: token.to_owned(), sentence: sentence.into() }
}

/// Why there is no page.
fn left_out_for(why: &NoPage) -> PageLeftOut {
    match why {
        NoPage::Missing(Some(uri)) => {
            let (scheme, authority) = (uri.scheme.as_str(), uri.authority.as_str());
            let sentence = format!("A part is not stored: {scheme}://{authority}{}", uri.target);
            left_out("part-missing", sentence)
        }
        NoPage::Missing(None) => left_out("part-missing", "A part is not stored."),
        NoPage::Failed(reason) => {
            let sentence = format!("A part fails, and nothing stands in its place: {}", reason.as_str());
            left_out("fragment-failed", sentence)
        }
        NoPage::TooLarge => {
            left_out("page-too-large", "The page with its parts is longer than page_size of fragments.")
        }
    }
}

/// Why a page is not for everybody.
fn not_for_all(ground: PageGround) -> Option<PageLeftOut> {
    match ground {
        PageGround::NoStore(_) => Some(left_out("no-store", ground.sentence())),
        PageGround::Private(_) | PageGround::Personal | PageGround::ManyNames => {
            Some(left_out("personal", ground.sentence()))
        }
        PageGround::Open
        | PageGround::NoCache(_)
        | PageGround::Failed
        | PageGround::Silent
        | PageGround::EndsFirst(_) => None,
    }
}

#[cfg(test)]
mod tests;
