//! Plain files, as people are told of them.
//!
//! In: a page, or a URL. Out: what is served for each file, as a stored response without its body; and why a response is no file.
//! Nothing here counts as use.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use larder_cache::{CachePolicy, Freshness, StoredHead};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_tier::cursor::NoCursor;
use larder_tier::tier::{ListedEntry, ListedHead, PlainFile, TierPage};
use larder_tier::{CacheKey, HeldBack, Inspect, TargetUri};

use super::hit::freshness_by_hand;
use super::list::Listed;
use super::tier::{HttpCaching, ListedFile};
use super::{FileStore, FilesCursor, NotAFile, Refused, may_hold};

impl Inspect<HttpCaching> for FileStore {
    fn letter(&self) -> char {
        FilesCursor::LETTER
    }

    fn first_page(&self) -> String {
        FilesCursor::default().to_string()
    }

    fn page(
        self: Arc<Self>,
        from: &str,
        most: usize,
        now: Now,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<TierPage<StoredHead>, NoCursor> {
        let from = from.parse()?;
        let page = self.list(from, most, wanted);
        Ok(TierPage {
            entries: page.files.into_iter().filter_map(|listed| entry(&self, listed, now)).collect(),
            unreadable: 0,
            unseen: page.unread,
            next: page.next.map(|next| next.to_string()),
        })
    }

    fn under(self: Arc<Self>, key: &CacheKey, now: Now) -> Vec<ListedEntry<StoredHead>> {
        let listed = TargetUri::of_base(key, Scheme::Http).and_then(|uri| Self::under(&self, &uri));
        listed.and_then(|listed| entry(&self, listed, now)).into_iter().collect()
    }

    fn directories(&self) -> Vec<PathBuf> {
        vec![self.directory().to_owned()]
    }

    fn would_hold_back(&self, key: &CacheKey, head: &StoredHead) -> Option<HeldBack> {
        not_a_file(key, head).or_else(|| self.refuses().map(refused))
    }

    fn holds_back(&self, key: &CacheKey, head: &StoredHead, _identity: u64) -> Option<HeldBack> {
        Some(not_a_file(key, head).unwrap_or(HeldBack::QUEUED))
    }
}

fn refused(why: Refused) -> HeldBack {
    let sentence = match why {
        Refused::Counting => {
            "The files of the store are being counted: until then none will be written, and it will not be stored."
        }
        Refused::Absent => {
            "The directory of the files is not there, or cannot be used: no file is written, and it is not stored."
        }
        _ => "The file system failed a moment ago: no file will be written, and it will not be stored.",
    };
    HeldBack { token: why.token(), sentence: sentence.into() }
}

fn not_a_file(key: &CacheKey, head: &StoredHead) -> Option<HeldBack> {
    let why = may_hold(&TargetUri::of_key(key)?, head, key.has_more_parts()).err()?;
    let sentence: Cow<'static, str> = match why {
        NotAFile::Status => {
            "A file is served as 200 and whole, which this is not: it stays in memory.".into()
        }
        NotAFile::Template => {
            "It is a template, and other servers would show its markup: it stays in memory.".into()
        }
        NotAFile::Varies => "It varies, and a file answers every request alike: it stays in memory.".into(),
        NotAFile::KeyParts => {
            "Its key has cookies, fields or content in it, which no name shows: it stays in memory.".into()
        }
        NotAFile::Encoded => "It has a content coding, which no name shows: it stays in memory.".into(),
        NotAFile::NotShareable => {
            "It has to be validated before each use, which no file says: it stays in memory.".into()
        }
        NotAFile::LargeHead => "Its fields are more than fits beside a file: it stays in memory.".into(),
        NotAFile::Unnameable(why) => format!("No file can have its name ({why}): it stays in memory.").into(),
    };
    Some(HeldBack { token: why.token(), sentence })
}

/// A plain file as what it is served as. One by hand is listed under `http`, and as old as it lies there unchanged.
fn entry(files: &Arc<FileStore>, listed: Listed, now: Now) -> Option<ListedEntry<StoredHead>> {
    let fields = files.fields_of(&listed);
    let (path, is_by_hand) = (files.path_of(&listed), listed.meta.is_none());
    let (name, target, query) = listed.uri?;
    let target = query.map_or_else(|| target.clone(), |query| format!("{target}?{query}"));
    let scheme = listed.scheme.unwrap_or(Scheme::Http);
    let mut key = CacheKey::new(&name, &target);
    key.push_part(scheme.as_str().as_bytes());
    // What no request can ask for is not served.
    let authority = Authority::parse(Bytes::from(name.clone()), scheme).ok()?;
    let target = Target::parse(Bytes::from(target)).ok()?;
    (authority.as_str() == name).then_some(())?;
    let (freshness, number) = match &listed.meta {
        Some(meta) => (meta.times.freshness(now), meta.number),
        None => {
            let lain = now.wall.since(listed.modified).min(now.monotonic);
            let since = Now { wall: listed.modified, monotonic: now.monotonic.saturating_sub(lain) };
            let initial_age = now.wall.since(listed.modified).saturating_sub(lain);
            (Freshness { initial_age, ..freshness_by_hand(since) }, 0)
        }
    };
    let request = RequestHead {
        method: Method::GET,
        scheme,
        authority: authority.clone(),
        target,
        version: Version::HTTP_11,
        fields: HeaderMap::new(),
    };
    let mut head = StoredHead::new(&request, StatusCode::OK, fields, freshness, &CachePolicy::default());
    if let Some(meta) = &listed.meta {
        head.relieved = meta.relieved.clone().and(&head.relieved);
    }
    Some(ListedEntry {
        at: Box::new(ListedFile { store: Arc::clone(files), key: key.clone(), scheme, number }),
        key,
        origin: Some((scheme, authority)),
        identity: None,
        // As where it is served: a file is the same for everybody. Whether one by hand is a template is its rule's to say.
        head: ListedHead::Made(Box::new(StoredHead { vary: Default::default(), template: None, ..head })),
        body_bytes: listed.size,
        number,
        file: Some(PlainFile { path, is_by_hand }),
    })
}
