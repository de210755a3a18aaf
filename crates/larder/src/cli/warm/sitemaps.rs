//! Sitemaps, fetched through larder as visitors would fetch them.
//!
//! In: URLs of sitemaps. Out: the URLs that they and the sitemaps of their indexes have, in the order of a reader. An index may name
//! indexes, whose sitemaps are read as well; deeper ones are not. A sitemap speaks for its own host: other hosts are left out. What cannot be
//! read is a fault of the list, and everything before it counts.

use std::collections::{HashSet, VecDeque};

use http::header::{CONTENT_ENCODING, LOCATION};
use http::{HeaderValue, StatusCode};
use larder_sitemap::{BYTES_MAX, Kind};
use tokio::time::timeout;

use super::client::{Unfetched, WHOLE_TIME, WarmClient, next_piece};
use super::list::UrlList;
use super::url::WarmUrl;
use crate::cli::output::chain;

/// How many indexes may lead to a sitemap.
const DEPTH_MAX: usize = 2;
/// Sitemaps of one run: as many as an index may name.
const SITEMAPS_MAX: usize = larder_sitemap::LOCATIONS_MAX;

/// Why a sitemap was not fetched.
#[derive(Debug, thiserror::Error)]
enum NotFetched {
    #[error(transparent)]
    Unfetched(#[from] Unfetched),
    #[error("answered {0}")]
    Status(StatusCode),
    #[error("answered {0}, to {1}: redirects are not followed")]
    Redirected(StatusCode, String),
    #[error("has the content coding {0}, which was not asked for")]
    Coding(String),
    #[error("larger than {} MiB", BYTES_MAX >> 20)]
    TooLarge,
}

/// Adds the URLs of `sitemaps` to `list`.
pub(super) async fn add(sitemaps: &[WarmUrl], client: &mut WarmClient, list: &mut UrlList) {
    let mut waiting: VecDeque<(WarmUrl, usize)> =
        sitemaps.iter().map(|url| (list.as_asked(url.clone()), 0)).collect();
    let mut seen: HashSet<WarmUrl> = waiting.iter().map(|(url, _)| url.clone()).collect();
    while let Some((url, depth)) = waiting.pop_front() {
        let fetched = timeout(WHOLE_TIME, fetch(&url, client)).await;
        let content = match fetched.unwrap_or(Err(Unfetched::Endless(WHOLE_TIME).into())) {
            Ok(content) => content,
            Err(error) => {
                client.forget();
                list.fault(&url.to_string(), chain(&error));
                continue;
            }
        };
        let sitemap = larder_sitemap::read(&content);
        if let Some(fault) = sitemap.fault {
            list.fault(&url.to_string(), fault);
        }
        let mut named = Vec::new();
        for location in sitemap.locations {
            match WarmUrl::parse(&location) {
                Err(why) => list.fault(&url.to_string(), format_args!("{location}: {why}")),
                Ok(page) if page.authority != url.authority => list.omitted.other_site += 1,
                Ok(page) if sitemap.kind == Kind::Pages => list.add(page),
                Ok(inner) => named.push(list.as_asked(inner)),
            }
        }
        if depth == DEPTH_MAX && !named.is_empty() {
            list.fault(&url.to_string(), "an index behind two others: its sitemaps are left out");
            continue;
        }
        let mut is_cut = false;
        named.retain(|inner| {
            let (is_known, has_room) = (seen.contains(inner), seen.len() < SITEMAPS_MAX);
            is_cut |= !is_known && !has_room;
            has_room && seen.insert(inner.clone())
        });
        if is_cut {
            list.fault(
                &url.to_string(),
                format_args!("more than {SITEMAPS_MAX} sitemaps: some are left out"),
            );
        }
        // Before those that wait already, so that the order is that of a reader.
        for inner in named.into_iter().rev() {
            waiting.push_front((inner, depth + 1));
        }
    }
}

async fn fetch(url: &WarmUrl, client: &mut WarmClient) -> Result<Vec<u8>, NotFetched> {
    let response = client.ask(url, &HeaderValue::from_static("gzip")).await?;
    let status = response.status();
    let field = |name| response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    match (status, field(LOCATION)) {
        (StatusCode::OK, _) => {}
        (_, Some(location)) if status.is_redirection() => {
            return Err(NotFetched::Redirected(status, location.into_owned()));
        }
        _ => return Err(NotFetched::Status(status)),
    }
    // gzip is known by the content itself.
    if let Some(coding) = field(CONTENT_ENCODING)
        && !["gzip", "x-gzip", "identity"].iter().any(|known| coding.eq_ignore_ascii_case(known))
    {
        return Err(NotFetched::Coding(coding.into_owned()));
    }
    let (mut body, mut content) = (response.into_body(), Vec::new());
    while let Some(piece) = next_piece(&mut body).await? {
        if content.len() + piece.len() > BYTES_MAX {
            return Err(NotFetched::TooLarge);
        }
        content.extend_from_slice(&piece);
    }
    Ok(content)
}
