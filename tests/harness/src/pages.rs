//! Pages of fragments: what the origin of measurements answers for a template, for each of its fragments, and for the same page stored whole.
//!
//! In: a target that says what the page is made of. Out: content, type and delay. Like all else that this origin answers, it follows from the
//! target alone, so whoever asks can tell a wrong byte: `/page/ssi/plain/10x700/9300` is a template of ten fragments of 700 bytes, whose
//! page has 9300, and `/page/whole/plain/10x700/9300` is that page. A fragment is `/page/part/plain/3/700`.
//! Deliberately absent: directives of any other kind. What the languages mean is for the tests of larder.

use std::fmt::Write as _;
use std::time::Duration;

/// Bytes of a line of text, its tags and its end included.
const LINE: usize = 80;
/// More is no page but a mistake.
const FRAGMENTS_MAX: usize = 1000;
const BYTES_MAX: usize = 1 << 24;
/// How long a slow fragment takes.
pub const SLOW: Duration = Duration::from_millis(200);
/// Cookies of visitors are three digits. Those from here on are greeted in the second way.
const SECOND_FROM: usize = 500;
/// What a page says to each half of its visitors, of one length, so that answers are as long as each other.
const GREETINGS: [&str; 2] = ["<p>welcome back</p>\n", "<p>how do you do</p>"];

/// How a page is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// As the client gets it.
    Whole,
    /// As a template with Server Side Includes.
    Ssi,
    /// As a template with Edge Side Includes.
    Esi,
}

/// What is special about a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// Nothing: everything may be stored for an hour.
    Plain,
    /// It greets its visitor by the first digit of the cookie `visitor`. The page as a whole is that of the first half.
    Visitor,
    /// Its template reads the client's address into a variable, and makes nothing of it.
    Address,
    /// Its fragments may not be stored.
    Unstored,
    /// They take their time besides.
    Slow,
}

/// A page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentedPage {
    /// How it is written down.
    pub form: Form,
    /// What is special about it.
    pub theme: Theme,
    /// How many fragments it has.
    pub fragments: usize,
    /// Of each fragment.
    pub fragment_bytes: usize,
    /// Of the page as the client gets it.
    pub bytes: usize,
}

/// What the origin answers for a target of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The body.
    pub content: Vec<u8>,
    /// A template of ESI says so to caches that read it.
    pub is_esi: bool,
    /// For an hour.
    pub may_be_stored: bool,
    /// How long the origin takes over it.
    pub delay: Duration,
}

impl FragmentedPage {
    /// What it is asked for by.
    pub fn target(&self) -> String {
        let Self { fragments, fragment_bytes, bytes, .. } = self;
        format!("/page/{}/{}/{fragments}x{fragment_bytes}/{bytes}", self.form.word(), self.theme.word())
    }

    /// What its fragments are asked for by.
    pub fn parts(&self) -> impl Iterator<Item = String> {
        (0..self.fragments).map(|number| self.part(number))
    }

    fn part(&self, number: usize) -> String {
        format!("/page/part/{}/{number}/{}", self.theme.word(), self.fragment_bytes)
    }

    /// The same page in another form.
    pub fn written(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// The page as a visitor with this cookie gets it, whatever its form.
    pub fn page(&self, visitor: usize) -> Vec<u8> {
        let greeting = GREETINGS[usize::from(visitor >= SECOND_FROM)];
        self.written(Form::Whole).joined(greeting, |number| part(number, self.fragment_bytes))
    }

    /// As it is written.
    pub fn content(&self) -> Vec<u8> {
        let greeting = match self.form {
            Form::Ssi if self.theme == Theme::Address => {
                "<!--#set var=\"address\" value=\"$remote_addr\" -->".to_owned()
            }
            Form::Esi if self.theme == Theme::Address => {
                "<esi:assign name=\"ADDRESS\" value=\"$(REMOTE_ADDR)\"/>".to_owned()
            }
            Form::Ssi => {
                // nginx takes `$` for the beginning of a name in patterns too, so the end of a value cannot decide.
                let [first, second] = GREETINGS;
                format!(
                    "<!--#if expr=\"$cookie_visitor = /^[0-4]/\" -->{first}<!--#else -->{second}<!--#endif -->"
                )
            }
            Form::Esi | Form::Whole => GREETINGS[0].to_owned(),
        };
        self.joined(&greeting, |number| {
            let target = self.part(number);
            match self.form {
                Form::Whole => part(number, self.fragment_bytes),
                Form::Ssi => format!("<!--#include virtual=\"{target}\" -->"),
                Form::Esi => format!("<esi:include src=\"{target}\"/>"),
            }
        })
    }

    /// Text, a fragment, text, and so on. The greeting stands behind the first text.
    fn joined(&self, greeting: &str, fragment: impl Fn(usize) -> String) -> Vec<u8> {
        let greets = self.theme == Theme::Visitor;
        let reads = self.theme == Theme::Address && self.form != Form::Whole;
        let greeting_bytes = if greets { GREETINGS[0].len() } else { 0 };
        let own = self.bytes.saturating_sub(self.fragments * self.fragment_bytes + greeting_bytes);
        let runs = self.fragments + 1;
        let mut page = String::new();
        for number in 0..runs {
            // What does not divide evenly stands in the last.
            let rest = if number == self.fragments { own % runs } else { 0 };
            text(&mut page, own / runs + rest);
            if number == 0 && (greets || reads) {
                page.push_str(greeting);
            }
            if number < self.fragments {
                page.push_str(&fragment(number));
            }
        }
        page.into_bytes()
    }

    fn of(target: &str) -> Option<Self> {
        let mut segments = target.strip_prefix("/page/")?.split('/');
        let mut next = || segments.next();
        let (form, theme) = (Form::of(next()?)?, Theme::of(next()?)?);
        let (fragments, fragment_bytes) = next()?.split_once('x')?;
        let number = |text: &str, most| text.parse::<usize>().ok().filter(|number| *number <= most);
        let page = Self {
            form,
            theme,
            fragments: number(fragments, FRAGMENTS_MAX)?,
            fragment_bytes: number(fragment_bytes, BYTES_MAX)?,
            bytes: number(next()?, BYTES_MAX)?,
        };
        next().is_none().then_some(page)
    }
}

impl Form {
    const ALL: [Self; 3] = [Self::Whole, Self::Ssi, Self::Esi];

    /// As targets have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Ssi => "ssi",
            Self::Esi => "esi",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.word() == word)
    }
}

impl Theme {
    const ALL: [Self; 5] = [Self::Plain, Self::Visitor, Self::Address, Self::Unstored, Self::Slow];

    /// As targets have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Visitor => "visitor",
            Self::Address => "address",
            Self::Unstored => "unstored",
            Self::Slow => "slow",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.word() == word)
    }
}

/// What the origin answers for this path; `None` where it is of no page.
pub fn answer(path: &str) -> Option<Answer> {
    if let Some(page) = FragmentedPage::of(path) {
        let is_esi = page.form == Form::Esi;
        return Some(Answer { content: page.content(), is_esi, may_be_stored: true, delay: Duration::ZERO });
    }
    let mut segments = path.strip_prefix("/page/part/")?.split('/');
    let theme = Theme::of(segments.next()?)?;
    let is_slow = theme == Theme::Slow;
    let may_be_stored = !is_slow && theme != Theme::Unstored;
    let number = segments.next()?.parse().ok()?;
    let bytes = segments.next()?.parse().ok().filter(|bytes| *bytes <= BYTES_MAX)?;
    let delay = if is_slow { SLOW } else { Duration::ZERO };
    let content = part(number, bytes).into_bytes();
    segments.next().is_none().then_some(Answer { content, is_esi: false, may_be_stored, delay })
}

/// A fragment. It begins with its number, so that two of a page are not the same.
fn part(number: usize, bytes: usize) -> String {
    let mut part = String::new();
    let _ = writeln!(part, "<h2>part {number}</h2>");
    if part.len() > bytes {
        part.truncate(bytes);
        return part;
    }
    let rest = bytes - part.len();
    text(&mut part, rest);
    part
}

/// So many bytes of paragraphs, a line each.
fn text(page: &mut String, bytes: usize) {
    const OPEN: &str = "<p>";
    const CLOSE: &str = "</p>\n";
    let mut left = bytes;
    while left > 0 {
        let line = left.min(LINE);
        match line.checked_sub(OPEN.len() + CLOSE.len()) {
            Some(within) => {
                let words = "the larder keeps what was cooked once and serves it as if it were fresh. "
                    .chars()
                    .cycle()
                    .take(within);
                page.push_str(OPEN);
                page.extend(words);
                page.push_str(CLOSE);
            }
            None => page.extend(std::iter::repeat_n('\n', line)),
        }
        left -= line;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page(form: Form, theme: Theme) -> FragmentedPage {
        FragmentedPage { form, theme, fragments: 10, fragment_bytes: 700, bytes: 9300 }
    }

    fn content_of(path: &str) -> String {
        String::from_utf8(answer(path).unwrap().content).unwrap()
    }

    /// Puts a page together from what the origin answers, as a cache does.
    fn assembled(page: FragmentedPage, visitor: usize) -> String {
        let mut text = content_of(&page.target());
        for (begins, ends) in [("<!--#include virtual=\"", "\" -->"), ("<esi:include src=\"", "\"/>")] {
            while let Some(at) = text.find(begins) {
                let end = text[at..].find(ends).unwrap() + at;
                let part = content_of(&text[at + begins.len()..end]);
                text.replace_range(at..end + ends.len(), &part);
            }
        }
        for (begins, ends) in [("<!--#set ", "-->"), ("<esi:assign ", "/>")] {
            if let Some(at) = text.find(begins) {
                let end = text[at..].find(ends).unwrap() + at + ends.len();
                text.replace_range(at..end, "");
            }
        }
        if let Some(at) = text.find("<!--#if ") {
            let (then, end) =
                (text[at..].find("-->").unwrap() + at + 3, text.find("<!--#endif -->").unwrap());
            let branch =
                text[then..end].split("<!--#else -->").nth(visitor / SECOND_FROM).unwrap().to_owned();
            text.replace_range(at..end + "<!--#endif -->".len(), &branch);
        }
        text
    }

    #[test]
    fn every_template_comes_to_the_page_as_it_is_stored_whole() {
        for theme in Theme::ALL {
            let whole = page(Form::Whole, theme);
            assert_eq!(whole.content().len(), 9300);
            assert_eq!(whole.content(), whole.page(0));
            for form in [Form::Ssi, Form::Esi] {
                let template = page(form, theme);
                assert_ne!(template.content(), whole.content());
                assert_eq!(assembled(template, 0).as_bytes(), whole.page(0), "{template:?}");
            }
        }
        let visitor = page(Form::Ssi, Theme::Visitor);
        assert_eq!(assembled(visitor, 700).as_bytes(), visitor.page(700));
        assert_eq!(visitor.page(700).len(), 9300);
        assert_ne!(visitor.page(499), visitor.page(500));
    }

    #[test]
    fn a_target_says_what_the_page_is() {
        for form in Form::ALL {
            for theme in Theme::ALL {
                assert_eq!(FragmentedPage::of(&page(form, theme).target()), Some(page(form, theme)));
            }
        }
        for other in
            ["/page/134", "/page/ssi/plain/10x700", "/page/ssi/plain/10x700/9300/1", "/page/ssi/x/1x1/9"]
        {
            assert_eq!(answer(other), None, "{other}");
        }
    }

    #[test]
    fn fragments_are_as_long_as_they_say_and_each_another_one() {
        let parts: Vec<String> =
            (0..3).map(|number| content_of(&format!("/page/part/plain/{number}/700"))).collect();
        assert!(parts.iter().all(|part| part.len() == 700));
        assert!(parts[0] != parts[1] && parts[1] != parts[2]);
        assert_eq!(content_of("/page/part/plain/0/5"), "<h2>p");
        let slow = answer("/page/part/slow/0/700").unwrap();
        assert_eq!((slow.delay, slow.may_be_stored), (SLOW, false));
    }
}
