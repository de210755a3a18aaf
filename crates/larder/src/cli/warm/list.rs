//! The list: which URLs, in which order, each once; and what was left out of it.
//!
//! In: URLs, and files with one URL a line. Out: the list, with a warning on standard error for each line that is no URL. The other
//! lines count all the same. Empty lines, and lines that begin with `#`, say nothing.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use larder_http::message::Scheme;
use serde::Serialize;

use super::url::WarmUrl;
use crate::cli::output::{printable, say};

/// URLs of one run.
const URLS_MAX: usize = 1_000_000;
/// Bytes that are read of one file.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Warnings that are printed; further ones are counted.
const WARNINGS_MAX: u64 = 20;
/// Characters of a URL that a warning shows.
const SHOWN_MAX: usize = 200;

/// What is not in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Omitted {
    /// Lines that are no URLs, sitemaps that cannot be read to their end, and what exceeds a bound.
    pub(super) faults: u64,
    /// URLs in sitemaps that belong to another site.
    pub(super) other_site: u64,
    /// URLs that are in the list already.
    pub(super) duplicates: u64,
}

/// URLs in their order.
#[derive(Debug, Default)]
pub(super) struct UrlList {
    pub(super) urls: Vec<WarmUrl>,
    pub(super) omitted: Omitted,
    seen: HashSet<WarmUrl>,
    /// In place of the scheme of each URL.
    scheme: Option<Scheme>,
}

impl UrlList {
    pub(super) fn new(scheme: Option<Scheme>) -> Self {
        Self { scheme, ..Self::default() }
    }

    /// The URL as visitors use it.
    pub(super) fn as_asked(&self, url: WarmUrl) -> WarmUrl {
        WarmUrl { scheme: self.scheme.unwrap_or(url.scheme), ..url }
    }

    /// Adds a URL at the end, unless it is there.
    pub(super) fn add(&mut self, url: WarmUrl) {
        let url = self.as_asked(url);
        if self.seen.contains(&url) {
            self.omitted.duplicates += 1;
        } else if self.urls.len() == URLS_MAX {
            self.fault(&url.to_string(), format_args!("more than {URLS_MAX} URLs: it is left out"));
        } else {
            self.seen.insert(url.clone());
            self.urls.push(url);
        }
    }

    /// Adds the URLs of a file; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn add_file(&mut self, path: &Path) -> io::Result<()> {
        if path == Path::new("-") {
            return self.add_lines("standard input", io::stdin().lock());
        }
        self.add_lines(&path.display().to_string(), File::open(path)?)
    }

    fn add_lines(&mut self, name: &str, lines: impl Read) -> io::Result<()> {
        let mut lines = BufReader::new(lines).take(FILE_BYTES_MAX);
        let (mut line, mut number) = (Vec::new(), 0_u64);
        while lines.read_until(b'\n', &mut line)? > 0 {
            number += 1;
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                match WarmUrl::parse(text) {
                    Ok(url) => self.add(url),
                    Err(why) => {
                        let shown = text.get(..text.floor_char_boundary(SHOWN_MAX)).unwrap_or(text);
                        self.fault(&format!("{name}:{number}"), format_args!("{shown}: {why}"));
                    }
                }
            }
            line.clear();
        }
        if lines.limit() == 0 {
            self.fault(name, format_args!("only the first {} MiB are read", FILE_BYTES_MAX >> 20));
        }
        Ok(())
    }

    /// Something is left out that should be in the list.
    pub(super) fn fault(&mut self, place: &str, why: impl std::fmt::Display) {
        self.omitted.faults += 1;
        if self.omitted.faults <= WARNINGS_MAX {
            say(printable(&format!("larder: warning: {place}: {why}")));
        }
    }

    /// Says how many warnings were not printed.
    pub(super) fn finish(&self) {
        if let more @ 1.. = self.omitted.faults.saturating_sub(WARNINGS_MAX) {
            say(format_args!("larder: warning: {more} more of this kind"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn listed(list: &UrlList) -> Vec<String> {
        list.urls.iter().map(WarmUrl::to_string).collect()
    }

    #[test]
    fn a_file_is_read_in_order_each_url_once_and_odd_lines_are_counted() {
        let mut list = UrlList::new(None);
        let text =
            "# shop\nhttp://a/2\r\n\n  http://a/1  \nhttp://A:80/2#top\nnot a url\n\u{1b}[2J\nhttp://a/3";
        list.add_lines("urls", text.as_bytes()).unwrap();
        assert_eq!(listed(&list), ["http://a/2", "http://a/1", "http://a/3"]);
        assert_eq!(list.omitted, Omitted { faults: 2, other_site: 0, duplicates: 1 });
    }

    #[test]
    fn the_scheme_of_visitors_replaces_that_of_the_list() {
        let mut list = UrlList::new(Some(Scheme::Https));
        list.add_lines("urls", "http://a/\nhttps://a/\nhttp://b:8080/\n".as_bytes()).unwrap();
        assert_eq!(listed(&list), ["https://a/", "https://b:8080/"]);
        assert_eq!(list.omitted.duplicates, 1);
    }
}
