//! The page of the demo, in both of its forms: the template with its includes, and what a visitor should get.
//!
//! In: fragments as text, and whole pages as they arrive. Out: pages, and whether one is that of its visitor: the layout byte for byte, and
//! in each place the right fragment, for this visitor. How old each fragment was on arrival is noted on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use larder_http::time::{Clock, WallTime};

use super::super::expected::{ExpectedPage, PageArrival, WrongPage};
use super::fragment::{COUNT, FRAGMENTS};

/// The visitors of a load, one for each client.
pub(super) const VISITORS: [&str; 6] = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances"];
/// The cookie that names a visitor.
pub(super) const VISITOR_COOKIE: &str = "visitor";
/// Longer than any page of the demo.
const PAGE_BYTES_MAX: usize = 64 * 1024;

const BEFORE: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>The Pantry Shop</title>\n",
    "<link rel=\"icon\" type=\"image/svg+xml\" href=\"/assets/jars.svg\">\n<style>\n",
    include_str!("../assets/fragments.css"),
    "</style>\n</head>\n<body>\n<header><img src=\"/assets/jars.svg\" width=\"240\" height=\"96\" alt=\"\">\n",
    "<h1>The Pantry Shop</h1>\n<p>One page, four fragments, each with a life of its own</p></header>\n<main>\n",
);
const AFTER: &str = concat!(
    "</main>\n<p class=\"visitors\">Be <button data-visitor=\"Ada\">Ada</button>\n",
    "<button data-visitor=\"Grace\">Grace</button>\n<button data-visitor=\"Edsger\">Edsger</button></p>\n<script>\n",
    include_str!("../assets/fragments.js"),
    "</script>\n</body>\n</html>\n",
);

/// The page with these in the places of its fragments.
pub(super) fn page(fragments: &[String; COUNT]) -> String {
    [BEFORE, &fragments.concat(), AFTER].concat()
}

/// The page as a template in ESI.
pub(super) fn template() -> String {
    page(&FRAGMENTS.map(|fragment| format!("<esi:include src=\"/fragment/{}\"/>", fragment.name)))
}

/// What the visitors of a load should get.
pub(super) struct ExpectedFragments {
    /// The greatest age on arrival of each fragment, in milliseconds.
    oldest_ms: [AtomicU64; COUNT],
    clock: Clock,
}

impl ExpectedFragments {
    pub(super) fn new() -> Self {
        Self { oldest_ms: [const { AtomicU64::new(0) }; COUNT], clock: Clock::default() }
    }

    /// How old each fragment was at most when its page had arrived.
    pub(super) fn oldest(&self) -> [Duration; COUNT] {
        self.oldest_ms.each_ref().map(|ms| Duration::from_millis(ms.load(Ordering::Relaxed)))
    }

    /// Compares a page with what `visitor` should get. Gives the moment of the oldest fragment.
    fn judge(&self, visitor: &str, text: &str) -> Result<WallTime, WrongPage> {
        let differs = |text: &str, expected: &str| {
            let pairs = text.bytes().zip(expected.bytes());
            WrongPage::Differs(pairs.take_while(|(found, expected)| found == expected).count())
        };
        let now = self.clock.now().wall;
        let mut rest = text.strip_prefix(BEFORE).ok_or_else(|| differs(text, BEFORE))?;
        let mut oldest = now;
        for (fragment, oldest_ms) in FRAGMENTS.iter().zip(&self.oldest_ms) {
            let (stamp, behind) = fragment.read(visitor, rest).ok_or(WrongPage::Fragment(fragment.name))?;
            let age = u64::try_from(now.since(stamp.at).as_millis()).unwrap_or(u64::MAX);
            oldest_ms.fetch_max(age, Ordering::Relaxed);
            oldest = WallTime(oldest.0.min(stamp.at.0));
            rest = behind;
        }
        if rest == AFTER { Ok(oldest) } else { Err(WrongPage::Differs(text.len() - rest.len())) }
    }
}

fn visitor_of(client: usize) -> &'static str {
    VISITORS.iter().cycle().nth(client).copied().unwrap_or_default()
}

impl ExpectedPage for ExpectedFragments {
    type Arrival = FragmentsArrival;

    fn cookie(&self, client: usize) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{VISITOR_COOKIE}={}", visitor_of(client))).ok()
    }

    fn arrival(self: &Arc<Self>, client: usize) -> FragmentsArrival {
        FragmentsArrival { expected: Arc::clone(self), visitor: visitor_of(client), text: Vec::new() }
    }
}

/// A page on its way in. It is short, so it is compared when all of it is there.
pub(super) struct FragmentsArrival {
    expected: Arc<ExpectedFragments>,
    visitor: &'static str,
    text: Vec<u8>,
}

impl PageArrival for FragmentsArrival {
    fn take(&mut self, piece: &[u8]) -> Result<(), WrongPage> {
        if self.text.len() + piece.len() > PAGE_BYTES_MAX {
            return Err(WrongPage::Long(self.text.len()));
        }
        self.text.extend_from_slice(piece);
        Ok(())
    }

    fn end(self) -> Result<WallTime, WrongPage> {
        let text = str::from_utf8(&self.text).map_err(|error| WrongPage::Differs(error.valid_up_to()))?;
        self.expected.judge(self.visitor, text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fragment::FragmentStamp;
    use super::*;

    fn page_of(visitor: &str, at: u64) -> String {
        let at = WallTime(at);
        page(&FRAGMENTS.map(|fragment| fragment.print(visitor, &FragmentStamp { number: 3, at })))
    }

    fn judged(client: usize, text: &str, piece_bytes: usize) -> Result<WallTime, WrongPage> {
        let expected = Arc::new(ExpectedFragments::new());
        let mut arrival = expected.arrival(client);
        text.as_bytes().chunks(piece_bytes).try_for_each(|piece| arrival.take(piece))?;
        arrival.end()
    }

    #[test]
    fn a_page_is_that_of_its_visitor_or_wrong() {
        let text = page_of("Ada", 1_763_719_471_123);
        for piece_bytes in [1, 1000, text.len()] {
            assert_eq!(judged(0, &text, piece_bytes), Ok(WallTime(1_763_719_471_123)));
            assert_eq!(judged(1, &text, piece_bytes), Err(WrongPage::Fragment("greeting")));
        }
        assert_eq!(judged(0, &text[1..], 9), Err(WrongPage::Differs(0)));
        let cut = text.len() - 5;
        assert!(matches!(judged(0, &text[..cut], 9), Err(WrongPage::Differs(_))));
        assert!(matches!(judged(0, &(text.clone() + "x"), 9), Err(WrongPage::Differs(_))));
        assert_eq!(judged(0, &template(), 9), Err(WrongPage::Fragment("news")));
        let swapped = text.replace("data-name=\"offers\"", "data-name=\"archive\"");
        assert_eq!(judged(0, &swapped, 9), Err(WrongPage::Fragment("offers")));
    }

    #[test]
    fn ages_are_those_of_the_oldest() {
        let expected = Arc::new(ExpectedFragments::new());
        let now = expected.clock.now().wall.0;
        for at in [now - 500, now - 2000, now - 100] {
            let mut arrival = expected.arrival(0);
            arrival.take(page_of("Ada", at).as_bytes()).unwrap();
            arrival.end().unwrap();
        }
        for oldest in expected.oldest() {
            assert!((2000..60_000).contains(&oldest.as_millis()), "{oldest:?}");
        }
    }

    #[test]
    fn each_client_has_a_visitor_of_its_own() {
        let expected = ExpectedFragments::new();
        let cookies: std::collections::HashSet<_> =
            (0..VISITORS.len()).map(|client| expected.cookie(client).unwrap()).collect();
        assert_eq!(cookies.len(), VISITORS.len());
        assert_eq!(expected.cookie(0).unwrap(), "visitor=Ada");
    }
}
