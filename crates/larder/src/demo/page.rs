//! The pages of the demo app: a newspaper of 57 KB, the same in every run but for the stamp of its rendering.
//!
//! In: a path. Out: a [`Template`], and with a [`Stamp`] a page. Whoever receives a page holds it against the template,
//! byte for byte, by a [`Comparison`]: it says where a page differs, and gives back the stamp. Stamps have one length,
//! so every rendering of a page has the same.
//! Deliberately absent: chance. The text comes from `prose`, which writes the same every time.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use larder_http::time::WallTime;

use super::expected::{ExpectedPage, PageArrival, WrongPage};
use super::prose;

/// How many stories there are.
pub(super) const STORIES: usize = prose::HEADLINES.len();
/// Text of one story, in bytes, so that all of them make a page of 57 KB.
const STORY_BYTES: usize = 4368;

/// What the app writes on a page when it has rendered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Counts renderings, from 1.
    pub(super) number: u64,
    /// How long the rendering took, without the wait for its turn.
    pub(super) took_ms: u64,
    /// When it was done.
    pub(super) at: WallTime,
}

impl Stamp {
    /// The stamp as HTML, the same length for all that a demo can come to.
    fn print(&self) -> String {
        let ms = self.at.0;
        let (hours, minutes, seconds) = (ms / 3_600_000 % 24, ms / 60_000 % 60, ms / 1000 % 60);
        format!(
            "<p data-rendered=\"{ms:013}\">Render <b>{:>7}</b> took <b>{:>5} ms</b>, done at \
             <b>{hours:02}:{minutes:02}:{seconds:02}.{:03}</b> UTC</p>",
            self.number,
            self.took_ms,
            ms % 1000,
        )
    }

    /// Reads what [`Stamp::print`] wrote, and nothing else.
    fn parse(text: &str) -> Option<Self> {
        let (at, rest) = text.strip_prefix("<p data-rendered=\"")?.split_once("\">Render <b>")?;
        let (number, rest) = rest.split_once("</b> took <b>")?;
        let (took, _) = rest.split_once(" ms</b>")?;
        let stamp = Self {
            number: number.trim_start().parse().ok()?,
            took_ms: took.trim_start().parse().ok()?,
            at: WallTime(at.parse().ok()?),
        };
        (stamp.print() == text).then_some(stamp)
    }
}

/// A page, but for its stamp.
#[derive(Debug)]
pub(super) struct Template {
    before: String,
    after: String,
    stamp_bytes: usize,
}

impl Template {
    fn new(before: String, after: String) -> Self {
        let stamp_bytes = Stamp { number: 0, took_ms: 0, at: WallTime(0) }.print().len();
        Self { before, after, stamp_bytes }
    }

    /// The page with a stamp.
    pub(super) fn render(&self, stamp: &Stamp) -> Bytes {
        [&self.before, stamp.print().as_str(), &self.after].concat().into()
    }

    /// The length of the page.
    pub(super) fn page_bytes(&self) -> usize {
        self.before.len() + self.stamp_bytes + self.after.len()
    }
}

/// A page on its way in, held against its template piece by piece.
#[derive(Debug)]
pub(super) struct Comparison {
    template: Arc<Template>,
    seen: usize,
    stamp: Vec<u8>,
}

impl Comparison {
    fn new(template: &Arc<Template>) -> Self {
        let stamp = Vec::with_capacity(template.stamp_bytes);
        Self { template: Arc::clone(template), seen: 0, stamp }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// It is not what comes next.
    fn push(&mut self, piece: &[u8]) -> Result<(), WrongPage> {
        let template = Arc::clone(&self.template);
        let piece = self.constant(piece, 0, template.before.as_bytes())?;
        let (stamp, piece) = piece.split_at(piece.len().min(template.stamp_bytes - self.stamp.len()));
        self.stamp.extend_from_slice(stamp);
        self.seen += stamp.len();
        let start = template.before.len() + template.stamp_bytes;
        match self.constant(piece, start, template.after.as_bytes())? {
            [] => Ok(()),
            _ => Err(WrongPage::Long(self.seen)),
        }
    }

    /// Compares as much of `piece` as belongs to `expected`, which stands at `start` of the page; gives the rest.
    fn constant<'p>(
        &mut self,
        piece: &'p [u8],
        start: usize,
        expected: &[u8],
    ) -> Result<&'p [u8], WrongPage> {
        let missing = self.seen.checked_sub(start).and_then(|done| expected.get(done..)).unwrap_or_default();
        let (mine, rest) = piece.split_at(piece.len().min(missing.len()));
        if !missing.starts_with(mine) {
            let same = mine.iter().zip(missing).take_while(|(found, expected)| found == expected).count();
            return Err(WrongPage::Differs(self.seen + same));
        }
        self.seen += mine.len();
        Ok(rest)
    }

    /// The end of the page.
    ///
    /// # Errors
    /// It ended too early, or its stamp is not one.
    fn finish(self) -> Result<Stamp, WrongPage> {
        let expected = self.template.page_bytes();
        if self.seen < expected {
            return Err(WrongPage::Short { found: self.seen, expected });
        }
        str::from_utf8(&self.stamp).ok().and_then(Stamp::parse).ok_or(WrongPage::Stamp)
    }
}

impl ExpectedPage for Template {
    type Arrival = Comparison;

    fn cookie(&self, _: usize) -> Option<HeaderValue> {
        None
    }

    fn arrival(self: &Arc<Self>, _: usize) -> Comparison {
        Comparison::new(self)
    }
}

impl PageArrival for Comparison {
    fn take(&mut self, piece: &[u8]) -> Result<(), WrongPage> {
        self.push(piece)
    }

    fn end(self) -> Result<WallTime, WrongPage> {
        Ok(self.finish()?.at)
    }
}

/// All pages of the app, written once.
#[derive(Debug)]
pub(super) struct Pages {
    front: Arc<Template>,
    stories: Vec<Arc<Template>>,
}

impl Pages {
    pub(super) fn new() -> Self {
        let articles: Vec<String> = (1..=STORIES).map(article).collect();
        let front = template("The Pantry Post", articles.iter());
        let stories = (0..STORIES)
            .map(|first| {
                let others = articles.iter().enumerate().filter(|(index, _)| *index != first);
                template(
                    prose::HEADLINES[first].title,
                    [&articles[first]].into_iter().chain(others.map(|(_, it)| it)),
                )
            })
            .collect();
        Self { front, stories }
    }

    /// `/` and `/story/N`; `None` for every other path.
    pub(super) fn at(&self, path: &str) -> Option<&Arc<Template>> {
        let Some(number) = path.strip_prefix("/story/") else {
            return (path == "/").then_some(&self.front);
        };
        let number: usize = number.parse().ok()?;
        self.stories.get(number.checked_sub(1)?)
    }
}

fn article(number: usize) -> String {
    let headline = &prose::HEADLINES[number - 1];
    let mut html = format!(
        "<article><header><p class=\"section\">{}</p><h2><a href=\"/story/{number}\">{}</a></h2>\
         <p class=\"byline\">{}</p></header>\n",
        headline.section, headline.title, headline.byline
    );
    for paragraph in prose::paragraphs(number, STORY_BYTES) {
        html.push_str("<p>");
        html.push_str(&paragraph);
        html.push_str("</p>\n");
    }
    html.push_str("</article>\n");
    html
}

fn template<'a>(title: &str, articles: impl Iterator<Item = &'a String>) -> Arc<Template> {
    let before = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" type=\"image/svg+xml\" href=\"/assets/jars.svg\">\n\
         <link rel=\"stylesheet\" href=\"/assets/demo.css\">\n<script src=\"/assets/demo.js\" defer></script>\n\
         </head>\n<body>\n<header class=\"masthead\"><a href=\"/\"><img src=\"/assets/jars.svg\" width=\"240\" \
         height=\"96\" alt=\"\"></a>\n<h1>The Pantry Post</h1>\n<p>All that keeps, every day</p></header>\n\
         <div class=\"receipt\">\n"
    );
    let mut after = "\n<p id=\"arrival\"></p>\n</div>\n<main>\n".to_owned();
    articles.for_each(|article| after.push_str(article));
    after.push_str(
        "</main>\n<footer>This app takes 180 ms for a page and makes one page at a time. \
         Reload, and look at the stamp.</footer>\n</body>\n</html>\n",
    );
    Arc::new(Template::new(before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { number: 42, took_ms: 181, at: WallTime(1_763_719_471_123) };

    fn compare(template: &Arc<Template>, body: &[u8], piece_bytes: usize) -> Result<Stamp, WrongPage> {
        let mut comparison = Comparison::new(template);
        body.chunks(piece_bytes).try_for_each(|piece| comparison.push(piece))?;
        comparison.finish()
    }

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let text = STAMP.print();
        assert_eq!(Stamp::parse(&text), Some(STAMP));
        assert!(text.contains("<b>     42</b>") && text.contains("10:04:31.123"), "{text}");
        assert_eq!(Stamp::parse(&text.replace("181", "1x1")), None);
        assert_eq!(Stamp::parse(&text.replace("10:04", "10:05")), None);
    }

    #[test]
    fn every_page_has_57_kilobytes_and_differs_from_run_to_run_by_its_stamp_alone() {
        let (pages, again) = (Pages::new(), Pages::new());
        let paths =
            std::iter::once("/".to_owned()).chain((1..=STORIES).map(|number| format!("/story/{number}")));
        for path in paths {
            let page = pages.at(&path).unwrap();
            assert!((56_500..57_500).contains(&page.page_bytes()), "{path}: {}", page.page_bytes());
            let body = page.render(&STAMP);
            assert_eq!(body.len(), page.page_bytes());
            assert_eq!(compare(again.at(&path).unwrap(), &body, 16_384), Ok(STAMP), "{path}");
        }
    }

    #[test]
    fn only_pages_of_the_paper_are_there() {
        let pages = Pages::new();
        for path in ["", "/story/0", "/story/13", "/story/", "/story/x", "/story/-1", "/other", "//"] {
            assert!(pages.at(path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_page_is_compared_byte_for_byte_however_it_is_cut() {
        let pages = Pages::new();
        let page = pages.at("/").unwrap();
        let body = page.render(&STAMP);
        let stamp_at = page.before.len();
        let changed = |at: usize| {
            let mut body = body.to_vec();
            body[at] ^= 1;
            body
        };
        for piece in [1, 7, 1000, body.len()] {
            let check =
                |body: &[u8], expected| assert_eq!(compare(page, body, piece), expected, "pieces of {piece}");
            check(&body, Ok(STAMP));
            check(&changed(0), Err(WrongPage::Differs(0)));
            check(&changed(stamp_at - 1), Err(WrongPage::Differs(stamp_at - 1)));
            check(&changed(stamp_at + 20), Err(WrongPage::Stamp));
            check(&changed(body.len() - 1), Err(WrongPage::Differs(body.len() - 1)));
            check(&body[..100], Err(WrongPage::Short { found: 100, expected: body.len() }));
            check(&[], Err(WrongPage::Short { found: 0, expected: body.len() }));
            check(&[&body[..], b"x"].concat(), Err(WrongPage::Long(body.len())));
        }
    }
}
