//! What holds for every page: its parts may come in any order and in any pieces, and values stay values.

use larder_http::template::Language::{self, Esi, Ssi};
use proptest::prelude::*;

use super::Case;
use crate::compile::tests::{language, likely};

fn case(language: Language, template: &str, other: &str) -> Case {
    let case = Case::new(language).field("cookie", "a=x/y");
    let case = case.broken("/u", language, template);
    let (case, inner) = match language {
        Ssi => (case.ssi("/t", template).ssi("/p/t", other), Esi),
        Esi => (case.esi("/t", template), Ssi),
    };
    match inner {
        Ssi => case.ssi("/x", other),
        Esi => case.esi("/x", other),
    }
}

proptest! {
    #[test]
    fn a_page_does_not_depend_on_the_order_in_which_its_parts_come(
        (language, body, template, other) in
            language().prop_flat_map(|language| (Just(language), likely(language), likely(language), likely(language))),
        seed in any::<u64>(),
        piece_bytes in 0..40_usize,
        breaks in any::<bool>(),
    ) {
        let whole = Case { breaks, ..case(language, &template, &other) };
        let first = whole.deliver(&body, &mut |_| 0);
        let mut state = seed | 1;
        let mut choose = move |count: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap_or(0) % count
        };
        let cut = Case { piece_bytes, breaks, ..case(language, &template, &other) };
        let second = cut.deliver(&body, &mut choose);
        prop_assert_eq!(String::from_utf8_lossy(&first.output), String::from_utf8_lossy(&second.output));
        // Of several failures in one attempt, the first to come gives the reason.
        prop_assert_eq!(first.failed.is_some(), second.failed.is_some());
    }

    #[test]
    fn a_value_never_changes_a_condition(value in "[!-~]([ -~]{0,20}[!-~])?") {
        let ssi = Case::new(Ssi).field("x", &value);
        for expression in ["$http_x = 'none of it' && 0", "$http_x = 'none of it' || '' = x", "x = $http_x && '' = x", "!($http_x)"] {
            ssi.check(&format!("<!--#if expr=\"{expression}\" -->t<!--#else -->f<!--#endif -->"), if value.trim().is_empty() && expression.starts_with('!') { "t" } else { "f" });
        }
        ssi.check("<!--#if expr=\"$http_x = $http_x\" -->t<!--#else -->f<!--#endif -->", "t");
        let esi = Case::new(Esi).field("x-v", &value);
        for expression in ["$(HTTP_X_V)=='none of it' & 1==1", "$(HTTP_X_V)=='none of it' | 1==2", "!($(HTTP_X_V)!='none of it')"] {
            let expected = if value.trim().is_empty() && expression.starts_with('!') { "t" } else { "f" };
            esi.check(&format!("<esi:choose><esi:when test=\"{expression}\">t</esi:when><esi:otherwise>f</esi:otherwise></esi:choose>"), expected);
        }
    }

    #[test]
    fn a_value_is_never_markup_nor_another_place(value in "[ -~]{0,30}") {
        let ssi = Case::new(Ssi).field("x", &value);
        let output = ssi.page("<!--#echo var=http_x -->");
        prop_assert!(!output.contains(['<', '>', '"']));
        let esi = Case::new(Esi).field("x-v", &value);
        let output = esi.page("<esi:vars>$(HTTP_X_V)</esi:vars>");
        prop_assert!(!output.contains(['<', '>', '"', '\'']));
        for asked in [
            ssi.deliver("<!--#include virtual=\"/in/$http_x/here\" -->", &mut |_| 0).asked,
            esi.deliver("<esi:include src='/in/$(HTTP_X_V)/here'/>", &mut |_| 0).asked,
        ] {
            for asked in asked {
                prop_assert!(asked.starts_with("/in/") && asked.ends_with("/here") && asked.matches('/').count() == 3, "{}", asked);
            }
        }
        let asked = esi.deliver("<esi:include src='/in?a=$(HTTP_X_V)&amp;b'/>", &mut |_| 0).asked;
        prop_assert!(asked.iter().all(|asked| asked.matches('&').count() == 1 && asked.starts_with("/in?a=")), "{:?}", asked);
    }
}
