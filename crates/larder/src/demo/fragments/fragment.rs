//! The four fragments of the demo's page: what each of them says, for whom, and how long it lives.
//!
//! In: a visitor and a stamp. Out: HTML, and from HTML the stamp. A fragment is read by being printed again, so whatever differs from what
//! the app writes is noticed, another visitor's name included.

use std::time::Duration;

use larder_http::time::WallTime;

/// A fragment of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DemoFragment {
    /// In its path, and in the table.
    pub(super) name: &'static str,
    title: &'static str,
    text: &'static str,
    /// How long it may be used for all; `None` where it is for one visitor.
    pub(super) lifetime: Option<Duration>,
}

/// What the app writes on a fragment when it has rendered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FragmentStamp {
    /// Counts renderings of this fragment, from 1.
    pub(super) number: u64,
    /// When it was done.
    pub(super) at: WallTime,
}

/// How many there are.
pub(super) const COUNT: usize = 4;

/// In the order of the page. The visitor's own is the last: all others stand before it, and leave before it is there.
pub(super) static FRAGMENTS: [DemoFragment; COUNT] = [
    DemoFragment {
        name: "news",
        title: "News",
        text: "The soup of the day is lentil. It was pumpkin a moment ago.",
        lifetime: Some(Duration::from_secs(1)),
    },
    DemoFragment {
        name: "offers",
        title: "Offers",
        text: "Twelve jars of plum jam for the price of ten, while they are here.",
        lifetime: Some(Duration::from_secs(10)),
    },
    DemoFragment {
        name: "archive",
        title: "From the archive",
        text: "In praise of the second shelf, and other pieces that do not change.",
        lifetime: Some(Duration::from_secs(3600)),
    },
    DemoFragment {
        name: "greeting",
        title: "Your basket",
        text: "Nobody else sees this box.",
        lifetime: None,
    },
];

impl DemoFragment {
    /// The fragment as HTML.
    pub(super) fn print(&self, visitor: &str, stamp: &FragmentStamp) -> String {
        let Self { name, title, text, lifetime } = self;
        let FragmentStamp { number, at: WallTime(ms) } = stamp;
        let (hours, minutes, seconds) = (ms / 3_600_000 % 24, ms / 60_000 % 60, ms / 1000 % 60);
        let greeting = if lifetime.is_none() { format!("Hello, <b>{visitor}</b>. ") } else { String::new() };
        let lives = match lifetime {
            Some(lifetime) => format!("lives {} s", lifetime.as_secs()),
            None => "for one visitor".to_owned(),
        };
        format!(
            "<section class=\"box\" data-name=\"{name}\" data-rendered=\"{ms}\" data-number=\"{number}\">\n\
             <h2>{title}</h2>\n<p>{greeting}{text}</p>\n\
             <p class=\"stamp\">{lives}, render <b>{number}</b>, \
             done at <b>{hours:02}:{minutes:02}:{seconds:02}.{:03}</b> UTC, <b class=\"age\"></b></p>\n</section>\n",
            ms % 1000,
        )
    }

    /// Reads what [`DemoFragment::print`] wrote for this visitor, and nothing else, from the beginning of `text`. Gives what follows.
    pub(super) fn read<'a>(&self, visitor: &str, text: &'a str) -> Option<(FragmentStamp, &'a str)> {
        let start = format!("<section class=\"box\" data-name=\"{}\" data-rendered=\"", self.name);
        let (at, rest) = text.strip_prefix(&start)?.split_once("\" data-number=\"")?;
        let (number, _) = rest.split_once('"')?;
        let stamp = FragmentStamp { number: number.parse().ok()?, at: WallTime(at.parse().ok()?) };
        Some((stamp, text.strip_prefix(&self.print(visitor, &stamp))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: FragmentStamp = FragmentStamp { number: 7, at: WallTime(1_763_719_471_123) };

    #[test]
    fn a_fragment_is_read_as_it_was_written() {
        for fragment in FRAGMENTS {
            let text = fragment.print("Ada", &STAMP) + "rest";
            assert_eq!(fragment.read("Ada", &text), Some((STAMP, "rest")), "{text}");
            assert!(text.contains("10:04:31.123"), "{text}");
            assert_eq!(fragment.read("Ada", &text.replace("10:04", "10:05")), None);
            assert_eq!(fragment.read("Ada", &text.replace("</section>", "")), None);
        }
    }

    #[test]
    fn only_the_private_one_is_for_one_visitor() {
        let others: Vec<_> =
            FRAGMENTS.iter().filter(|it| it.read("Grace", &it.print("Ada", &STAMP)).is_none()).collect();
        assert_eq!(others.iter().map(|it| it.name).collect::<Vec<_>>(), ["greeting"]);
        assert!(others[0].lifetime.is_none());
    }
}
