//! What each operator means for each kind of field, with a value and without.

use super::super::{FILTER_FIELDS, Operator};
use super::*;

#[test]
fn a_text_is_compared_whole_and_an_expression_anywhere() {
    check(
        &fetched(),
        &[
            ("path=\"/Blog/a b.html\"", true),
            ("path=/Blog", false),
            ("path=/Blog/*", true),
            ("path=/Blog*.html", true),
            ("path=/Blog/?*?.html", true),
            ("path=*Blog", false),
            ("path!=/Blog*", false),
            ("path!=/shop*", true),
            ("path~a.b", true),
            ("path~^a", false),
            (r#"path~"^/Blog/[a-z] b\.html$""#, true),
            ("path!~html", false),
            ("path!~css", true),
            ("query=\"x=1*\"", true),
            ("client=192.0.2.*", true),
            ("client~^10[.]", false),
        ],
    );
}

#[test]
fn case_counts_where_the_table_of_fields_says_so() {
    check(
        &fetched(),
        &[
            ("path=/blog/*", false),
            ("path~blog", false),
            ("path~\"(?i)blog\"", true),
            ("url~BLOG", false),
            ("host=SHOP.example", true),
            ("host~SHOP", true),
            ("host~\"(?-i)SHOP\"", false),
            ("method=get", true),
            ("ua=*EXAMPLEBOT*", true),
            ("reason=URI-Miss", true),
            ("cache=Uri-miss", true),
            ("type=TEXT/*", true),
        ],
    );
}

#[test]
fn beyond_ascii_case_counts_in_expressions_and_a_point_is_a_character() {
    check(
        &exchange(&[(TextField::Host, "é.example"), (TextField::Path, "/é")]),
        &[
            ("host~^é", true),
            ("host~^É", false),
            ("host~É.EXAMPLE", false),
            ("host~EXAMPLE", true),
            ("host=é.EXAMPLE", true),
            ("host=É.example", false),
            ("host=?.example", true),
            ("path~^/.$ or path~^/é.", false),
            ("path~\"^/(é|.)$\"", true),
            ("/É", false),
            ("/é", true),
        ],
    );
}

#[test]
fn a_list_means_any_and_its_opposite_none() {
    check(
        &fetched(),
        &[
            ("method=HEAD,GET", true),
            ("method=HEAD, \"GET\" ,PUT", true),
            ("method=HEAD,PUT", false),
            ("method!=HEAD,PUT", true),
            ("method!=HEAD,GET", false),
            ("status=403,404", true),
            ("status=2xx,4xx", true),
            ("status!=2xx,403", true),
            ("status!=2xx,404", false),
            ("attempts=1,2", true),
            ("time=1s,250ms", true),
            ("stored=true,false", true),
            // In an expression a comma is itself.
            ("host~p{1,2}[.]", true),
            ("host~p{2,3}[.]", false),
            ("host~[x,p][.]", true),
        ],
    );
}

#[test]
fn numbers_are_compared_in_their_units() {
    check(
        &fetched(),
        &[
            ("time=250ms", true),
            ("time!=250ms", false),
            ("time=0.25s", true),
            ("time>249.999ms", true),
            ("time>250ms", false),
            ("time>=250ms", true),
            ("time<250ms", false),
            ("time<=250ms", true),
            ("time<1s", true),
            ("time<1m and time<1min and time<1h", true),
            ("first_byte=1500us", true),
            ("first_byte=1.5ms", true),
            ("queue=0s", true),
            ("bytes=2048", true),
            ("bytes=2KiB", true),
            ("bytes=2.048k", true),
            ("bytes>2kb", true),
            ("bytes<=2KiB", true),
            ("bytes<2KiB", false),
            ("bytes<1MB and bytes<1MiB and bytes<1GB and bytes<1gib", true),
            ("bytes=2048B", true),
            ("attempts>1", true),
            ("attempts>=3", false),
            ("attempts != 2", false),
        ],
    );
}

#[test]
fn a_status_is_a_code_or_in_a_class() {
    check(
        &fetched(),
        &[
            ("status=404", true),
            ("status=4xx", true),
            ("status=4XX", true),
            ("status=5xx", false),
            ("status!=4xx", false),
            ("status!=405", true),
            ("status>=400", true),
            ("status>404", false),
            ("status<=404", true),
            ("status<404", false),
        ],
    );
    let of_class = |status| Exchange { status: Some(status), ..Exchange::default() };
    for (status, expected) in [(399, false), (400, true), (499, true), (500, false)] {
        check(&of_class(status), &[("status=4xx", expected)]);
    }
}

#[test]
fn a_boolean_is_written_in_four_words() {
    for (text, is_stored) in
        [("stored=true", true), ("stored=YES", true), ("stored=false", false), ("stored=no", false)]
    {
        for stored in [true, false] {
            check(&Exchange { stored: Some(stored), ..Exchange::default() }, &[(text, stored == is_stored)]);
        }
    }
    check(&fetched(), &[("stored!=true", false), ("stored!=false", true)]);
}

#[test]
fn every_field_without_a_value_matches_only_what_is_negative_or_empty() {
    for field in FILTER_FIELDS {
        for operator in field.kind.operators() {
            let value = match field.kind.form() {
                "text" if operator.as_str().contains('~') => "\"\"",
                "text" => "*",
                "time" => "0s",
                "status" => "404",
                "boolean" => "false",
                _ => "0",
            };
            let is_negative = matches!(operator, Operator::Unequal | Operator::NoMatch);
            check(&Exchange::default(), &[(&format!("{}{operator}{value}", field.name), is_negative)]);
        }
        if field.kind.form() == "text" {
            let [is, is_not] = ["=", "!="].map(|operator| format!("{}{operator}\"\"", field.name));
            check(&Exchange::default(), &[(&is, true), (&is_not, false)]);
        }
    }
    check(&Exchange::default(), &[("not time>1s", true), ("origin=app,\"\"", true), ("\"\"", false)]);
    check(
        &fetched(),
        &[("origin=\"\"", false), ("origin!=\"\"", true), ("site=\"\"", true), ("wait<1h", false)],
    );
    check(&exchange(&[(TextField::Query, "")]), &[("query=\"\"", true), ("query=*", true)]);
}

#[test]
fn cache_is_hit_or_the_reason() {
    for (result, expected) in [
        ("memory", "hit"),
        ("disk", "hit"),
        ("file", "hit"),
        ("remote", "hit"),
        ("stale", "hit"),
        ("joined", "miss"),
        ("asked", "miss"),
    ] {
        // Used stale, an exchange may well have a reason.
        let exchange = exchange(&[(TextField::Result, result), (TextField::Reason, "miss")]);
        let is_hit = expected == "hit";
        check(
            &exchange,
            &[
                ("cache=hit", is_hit),
                ("cache!=hit", !is_hit),
                ("cache=miss", !is_hit),
                ("cache~^hit$", is_hit),
                ("reason=miss", true),
            ],
        );
    }
    let own = exchange(&[(TextField::Result, "own")]);
    check(&own, &[("cache=hit", false), ("cache!=hit", true), ("cache=\"\"", true)]);
}

#[test]
fn a_word_is_part_of_the_url() {
    check(
        &fetched(),
        &[
            ("blog", true),
            ("SHOP", true),
            ("example/Blog", true),
            ("\"a b\"", true),
            ("html?x", true),
            ("htm?", false),
            ("\"y=(2)\"", true),
            ("/*.html", true),
            ("/*.css", false),
            ("https", false),
            ("\"\"", true),
            ("url=shop.example/Blog/*", true),
            ("url=\"shop.example/Blog/a b.html?x=1&y=(2)\"", true),
            ("url=shop.example", false),
            ("url~html.x=1", true),
        ],
    );
    check(&exchange(&[(TextField::Host, "a")]), &[("a", true), ("url=a", true)]);
    check(
        &exchange(&[(TextField::Path, "/a"), (TextField::Query, "")]),
        &[("url=/a?", true), ("url=/a", false)],
    );
    check(&exchange(&[(TextField::Query, "a")]), &[("a", false), ("url!=*", true)]);
}

#[test]
fn room_that_is_used_again_tells_nothing_of_another_exchange() {
    let mut scratch = crate::filter::Scratch::default();
    let (word, client) = (filter("blog"), filter("client=192.0.2.7"));
    for (exchange, expected) in [(fetched(), true), (Exchange::default(), false), (fetched(), true)] {
        assert_eq!(word.matches_in(&exchange, &mut scratch), expected);
        assert_eq!(client.matches_in(&exchange, &mut scratch), expected);
    }
}

#[test]
fn not_binds_before_and_and_and_before_or() {
    for (text, expected) in [
        ("yes or no and no", true),
        ("(yes or no) and no", false),
        ("no and no or yes", true),
        ("no and (no or yes)", false),
        ("not no and no", false),
        ("not (no and no)", true),
        ("not yes or yes", true),
        ("not (yes or yes)", false),
        ("not not yes", true),
        ("not(yes)and(no)or(yes)", true),
        ("NOT no And yes", true),
        ("no OR yes", true),
        ("yes and yes and no", false),
        ("no or no or yes", true),
    ] {
        let text =
            text.replace("yes", "status=404").replace("no ", "status=200 ").replace("no)", "status=200)");
        let text = text.strip_suffix("no").map_or(text.clone(), |before| format!("{before}status=200"));
        check(&fetched(), &[(&text, expected)]);
    }
}
