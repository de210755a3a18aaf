//! What the visitors of the busy demo ask for, request by request.
//!
//! In: [`Chance`]. Out: requests. How often each part of the shop is asked for stands in one table, and which page of it follows from its
//! popularity, so that the load looks like that of a shop: few pages are asked for often, many seldom.
//! Deliberately absent: time, and what the shop answers.

use http::Method;

use super::chance::{Chance, Popularity};

/// Parts of the shop, as visitors see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShopPart {
    Asset,
    Image,
    Product,
    Home,
    Deals,
    Blog,
    Api,
    Search,
    Account,
    OldLink,
    Cart,
    /// Another host's page, which comes here by mistake.
    OtherHost,
}

/// How many of a thousand requests each part gets.
pub(super) const PARTS: [(ShopPart, u32); 12] = [
    (ShopPart::Asset, 300),
    (ShopPart::Image, 220),
    (ShopPart::Product, 200),
    (ShopPart::Home, 80),
    (ShopPart::Deals, 60),
    (ShopPart::Blog, 50),
    (ShopPart::Api, 40),
    (ShopPart::Search, 20),
    (ShopPart::Account, 10),
    (ShopPart::OldLink, 12),
    (ShopPart::Cart, 5),
    (ShopPart::OtherHost, 3),
];
/// How many of a hundred visits of a product came by a link that tells where it stood.
const TRACKED_PERCENT: u64 = 35;
/// How many browsers tell themselves apart.
const BROWSERS: u32 = 24;
/// A host that no site has.
const OTHER_HOST: &str = "old-shop.example";
const NEWSLETTERS: [&str; 6] = ["spring", "summer", "autumn", "winter", "sale", "friends"];

/// One request of a visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShopRequest {
    pub(super) part: ShopPart,
    pub(super) method: Method,
    /// The host where it is not the shop's.
    pub(super) host: Option<&'static str>,
    /// Path and query.
    pub(super) target: String,
    pub(super) user_agent: String,
}

/// What visitors like.
#[derive(Debug)]
pub(super) struct Tastes {
    assets: Popularity,
    images: Popularity,
    products: Popularity,
    posts: Popularity,
    words: Popularity,
    old_links: Popularity,
    browsers: Popularity,
}

impl Tastes {
    pub(super) fn new() -> Self {
        Self {
            assets: Popularity::zipf(40, 0.9),
            images: Popularity::zipf(900, 0.7),
            products: Popularity::zipf(1800, 0.9),
            posts: Popularity::zipf(200, 1.0),
            words: Popularity::zipf(60, 1.1),
            old_links: Popularity::zipf(300, 0.6),
            browsers: Popularity::zipf(BROWSERS, 0.8),
        }
    }

    /// The next request.
    pub(super) fn request(&self, chance: &mut Chance) -> ShopRequest {
        let part = part(chance);
        let target = match part {
            ShopPart::Asset => asset(self.assets.draw(chance)),
            ShopPart::Image => format!("/img/{}.jpg", self.images.draw(chance)),
            ShopPart::Product => format!("/product/{}{}", self.products.draw(chance), tracking(chance)),
            ShopPart::Home | ShopPart::OtherHost => "/".to_owned(),
            ShopPart::Deals => "/deals".to_owned(),
            ShopPart::Blog => format!("/blog/{}", self.posts.draw(chance)),
            ShopPart::Api => format!("/api/stock?item={}", self.products.draw(chance)),
            ShopPart::Search => format!("/search?q=word-{}", self.words.draw(chance)),
            ShopPart::Account => "/account/orders".to_owned(),
            ShopPart::OldLink => format!("/old/article-{}.html", self.old_links.draw(chance)),
            ShopPart::Cart => format!("/cart/add?item={}", self.products.draw(chance)),
        };
        ShopRequest {
            part,
            method: if part == ShopPart::Cart { Method::POST } else { Method::GET },
            host: (part == ShopPart::OtherHost).then_some(OTHER_HOST),
            target,
            user_agent: format!("Mozilla/5.0 (demo; browser {})", self.browsers.draw(chance)),
        }
    }
}

fn part(chance: &mut Chance) -> ShopPart {
    let mut drawn = chance.below(1000);
    for (part, share) in PARTS {
        match drawn.checked_sub(share.into()) {
            Some(rest) => drawn = rest,
            None => return part,
        }
    }
    ShopPart::Home
}

fn asset(number: usize) -> String {
    format!("/assets/shop-{number}.{}", if number.is_multiple_of(3) { "css" } else { "js" })
}

/// What newsletters, social networks and advertisements put behind a URL.
fn tracking(chance: &mut Chance) -> String {
    if chance.below(100) >= TRACKED_PERCENT {
        return String::new();
    }
    match chance.below(3) {
        0 => {
            let newsletter = chance.below(NEWSLETTERS.len() as u64) as usize;
            format!("?utm_source=newsletter&utm_campaign={}", NEWSLETTERS[newsletter])
        }
        1 => format!("?fbclid=IwAR{:016x}", chance.number()),
        _ => format!("?gclid=Cj0K{:016x}", chance.number()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(seed: u64, count: usize) -> Vec<ShopRequest> {
        let (tastes, mut chance) = (Tastes::new(), Chance::new(seed));
        (0..count).map(|_| tastes.request(&mut chance)).collect()
    }

    #[test]
    fn a_seed_always_makes_the_same_requests() {
        assert_eq!(requests(1, 500), requests(1, 500));
        assert_ne!(requests(1, 500), requests(2, 500));
    }

    #[test]
    fn each_part_of_the_shop_gets_its_share() {
        assert_eq!(PARTS.iter().map(|(_, share)| share).sum::<u32>(), 1000);
        let all = requests(1, 100_000);
        for (part, share) in PARTS {
            let found = all.iter().filter(|request| request.part == part).count();
            let expected = share as usize * 100;
            // Four standard deviations.
            let tolerance = 4 * expected.isqrt();
            assert!(found.abs_diff(expected) < tolerance, "{part:?}: {found} and not {expected}");
        }
    }

    #[test]
    fn a_third_of_the_products_has_tracking_parameters_of_each_kind() {
        let all = requests(1, 50_000);
        let products: Vec<_> = all.iter().filter(|request| request.part == ShopPart::Product).collect();
        let share = |word: &str| {
            let found = products.iter().filter(|request| request.target.contains(word)).count();
            found * 1000 / products.len()
        };
        assert!((320..380).contains(&share("?")), "{}", share("?"));
        for word in ["utm_source=", "fbclid=", "gclid="] {
            assert!((90..145).contains(&share(word)), "{word}: {}", share(word));
        }
    }

    #[test]
    fn there_are_some_thousand_urls_and_few_of_them_get_most_requests() {
        let mut counts = std::collections::HashMap::new();
        for request in requests(1, 100_000) {
            *counts
                .entry(request.target.split('?').next().unwrap_or_default().to_owned())
                .or_insert(0_usize) += 1;
        }
        assert!((2500..4000).contains(&counts.len()), "{}", counts.len());
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let busiest = counts.iter().take(counts.len() / 10).sum::<usize>();
        assert!(busiest > 70_000, "{busiest}");
    }

    #[test]
    fn only_the_cart_is_posted_to_and_only_strays_name_another_host() {
        for request in requests(4, 10_000) {
            assert_eq!(request.method == Method::POST, request.part == ShopPart::Cart, "{request:?}");
            assert_eq!(request.host.is_some(), request.part == ShopPart::OtherHost, "{request:?}");
            assert!(request.target.parse::<http::Uri>().is_ok(), "{request:?}");
        }
    }
}
