//! The shop of the busy demo, path by path: what it answers, and the mistake that it makes there.
//!
//! In: a path. Out: how the shop answers it. Each shelf is what a shop's application often does, and each cause that larder names has its own.
//! Deliberately absent: bytes, time that passes, and larder's rules.

use http::StatusCode;

/// What a body is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShelfContent {
    Page,
    Script,
    Style,
    Picture,
    Json,
}

/// A field that gets in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShelfHabit {
    None,
    /// A new session for each answer.
    Session,
    /// `Vary: User-Agent`.
    VariesByAgent,
    /// Back to the front page.
    Redirects,
}

/// Paths that are answered alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf {
    /// The only path, or what all begin with where it ends in a slash.
    pub(super) path: &'static str,
    pub(super) status: StatusCode,
    pub(super) content: ShelfContent,
    /// Cache-Control.
    pub(super) cache: Option<&'static str>,
    pub(super) habit: ShelfHabit,
    /// Whether answers have an ETag.
    pub(super) is_tagged: bool,
    /// The smallest and the largest body.
    pub(super) bytes: (u32, u32),
    /// How long an answer takes to make.
    pub(super) render_ms: u64,
}

/// A shelf of pages, for the others to differ from.
const PAGES: Shelf = Shelf {
    path: "/",
    status: StatusCode::OK,
    content: ShelfContent::Page,
    cache: None,
    habit: ShelfHabit::None,
    is_tagged: false,
    bytes: (6_000, 20_000),
    render_ms: 60,
};

pub(super) const SHELVES: [Shelf; 11] = [
    // Lives for two seconds, and may be used a while longer.
    Shelf { cache: Some("max-age=2, stale-while-revalidate=30"), render_ms: 250, ..PAGES },
    // The same without: visitors wait for each other's fetch.
    Shelf { path: "/deals", cache: Some("max-age=2"), render_ms: 300, ..PAGES },
    // As it should be.
    Shelf {
        path: "/assets/",
        content: ShelfContent::Script,
        cache: Some("public, max-age=31536000, immutable"),
        is_tagged: true,
        bytes: (3_000, 60_000),
        render_ms: 5,
        ..PAGES
    },
    // More than the store has room for.
    Shelf {
        path: "/img/",
        content: ShelfContent::Picture,
        cache: Some("max-age=3600"),
        is_tagged: true,
        bytes: (40_000, 200_000),
        render_ms: 10,
        ..PAGES
    },
    // Fine, but for the parameters that visitors bring along.
    Shelf { path: "/product/", cache: Some("max-age=300"), is_tagged: true, render_ms: 70, ..PAGES },
    // The same for all, and yet with a session.
    Shelf { path: "/blog/", cache: Some("max-age=600"), habit: ShelfHabit::Session, render_ms: 80, ..PAGES },
    // Never to be stored, although a second would do.
    Shelf {
        path: "/api/",
        content: ShelfContent::Json,
        cache: Some("no-store"),
        bytes: (200, 900),
        render_ms: 15,
        ..PAGES
    },
    // One copy for each browser there is.
    Shelf {
        path: "/search",
        cache: Some("max-age=60"),
        habit: ShelfHabit::VariesByAgent,
        render_ms: 150,
        ..PAGES
    },
    Shelf { path: "/account/", cache: Some("private"), ..PAGES },
    Shelf {
        path: "/cart/",
        status: StatusCode::SEE_OTHER,
        cache: Some("no-store"),
        habit: ShelfHabit::Redirects,
        bytes: (0, 0),
        render_ms: 40,
        ..PAGES
    },
    ABSENT,
];

/// Old links, and all that the shop does not have. It gives them no lifetime, and so makes the same answer again each time.
const ABSENT: Shelf =
    Shelf { path: "/old/", status: StatusCode::NOT_FOUND, bytes: (400, 400), render_ms: 20, ..PAGES };

/// The shelf of `path`.
pub(super) fn shelf(path: &str) -> Shelf {
    let holds = |shelf: &&Shelf| {
        path == shelf.path
            || shelf.path.len() > 1 && shelf.path.ends_with('/') && path.starts_with(shelf.path)
    };
    let mut found = *SHELVES.iter().find(holds).unwrap_or(&ABSENT);
    if found.content == ShelfContent::Script && path.ends_with(".css") {
        found.content = ShelfContent::Style;
    }
    found
}

impl ShelfContent {
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Page => "text/html; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Style => "text/css; charset=utf-8",
            Self::Picture => "image/jpeg",
            Self::Json => "application/json",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chance::Chance;
    use super::super::visits::{PARTS, ShopPart, Tastes};
    use super::*;

    #[test]
    fn a_path_is_on_the_shelf_that_it_begins_with() {
        for (path, expected) in [
            ("/", "/"),
            ("/deals", "/deals"),
            ("/deals/1", "/old/"),
            ("/blog/7", "/blog/"),
            ("/blog", "/old/"),
            ("/img/1.jpg", "/img/"),
            ("/search", "/search"),
            ("/favicon.ico", "/old/"),
        ] {
            assert_eq!(shelf(path).path, expected, "{path}");
        }
        assert_eq!(shelf("/assets/shop-0.css").content, ShelfContent::Style);
        assert_eq!(shelf("/assets/shop-1.js").content, ShelfContent::Script);
    }

    #[test]
    fn visitors_find_what_they_ask_for_but_for_old_links() {
        let (tastes, mut chance) = (Tastes::new(), Chance::new(1));
        let mut seen = Vec::new();
        for _ in 0..20_000 {
            let request = tastes.request(&mut chance);
            let found = shelf(request.target.split('?').next().unwrap_or_default());
            let is_absent = found.status == StatusCode::NOT_FOUND;
            assert_eq!(is_absent, request.part == ShopPart::OldLink, "{request:?}");
            if !seen.contains(&found.path) {
                seen.push(found.path);
            }
        }
        assert_eq!(seen.len(), SHELVES.len(), "{seen:?}");
        assert_eq!(seen.len(), PARTS.len() - 1, "another host has no shelf of its own");
    }
}
