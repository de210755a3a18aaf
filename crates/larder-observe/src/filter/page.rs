//! docs/reference/filter.md, made from the declarations of fields, operators and bounds.
//!
//! In: the tables of this folder. Out: the page. `suites reference` compares the committed page with it.
//! A test reads every example of the page as a filter.

use std::fmt::Write;

use super::fault::{EXPRESSION_BYTES_MAX, FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_TERMS_MAX};
use super::fields::{FILTER_FIELDS, FieldKind, FilterField, NumberField, TimeField};
use super::operator::Operator;
use crate::reference::GENERATED;

/// Whole filters, with their meaning.
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("cache!=hit and path=/blog/* and time>200ms", "slow requests below `/blog/` that no store answered"),
    ("status=5xx or first_byte>2s", "failures, and answers that the origin began late"),
    ("not method=GET,HEAD", "requests with any other method"),
    ("host=shop.example and /cart", "URLs of this host with `/cart` somewhere"),
    ("result=asked and stored=false and status=200", "answers from the origin that were not stored"),
    (
        "before=evicted,idle and bytes>=1MiB",
        "large responses that were stored once, and were removed for room or because of no use",
    ),
    (r#"path~"\.(css|js)$" and origin!="""#, "style sheets and scripts for which an origin was asked"),
];

const INTRODUCTION: &str = "\
larder's filter language: one expression about one exchange, which is a request and its answer. The expression matches the
exchange or does not. It changes nothing, and sees nothing but the fields below.

";

const EXPRESSIONS: &str = r#"## Expressions

```text
filter     = all *( "or" all )
all        = one *( "and" one )
one        = "not" one / "(" filter ")" / comparison / word
comparison = field operator value *( "," value )
```

`not` binds more closely than `and`, and `and` more closely than `or`. Parentheses change that. Case does not count in these
three words. Two terms beside each other are an error: write `and` or `or` between them.

A word without an operator matches where the URL contains it. The URL is host and path, and `?` with the query where there is
one. Case does not count in words. `*` in a word stands for any run of characters; every other character, `?` too, is itself.

Blanks around an operator and behind a comma are allowed. A word or a value with blanks, parentheses or quotes is written in
double quotes, and so is a value with a comma, except a regular expression. Within quotes, `\"` is a quote and `\\` a
backslash; before other characters a backslash is itself. `and`, `or` and `not` in quotes are plain words.

"#;

const OPERATORS: &str = "\
`=` and `!=` take a list: `status=502,504` means any of them, `status!=502,504` none of them.

- **Text**: `*` stands for any run of characters, also with `/` in it, and `?` for one character. The pattern is the whole
  value. `~` and `!~` take a regular expression in the syntax of Rust's `regex` crate, which may match anywhere in the value:
  `^` and `$` stand for its ends. Look-around and back references are not supported.
- **Case**: in some fields it does not count, see below. `(?-i)` at the beginning of a regular expression makes it count; the
  parentheses need quotes. Beyond ASCII it always counts, and so it does in a regular expression that has such characters.
- **Status**: a code such as `404`. `=` and `!=` take classes, too: `5xx`.
- **Time**: a number with a unit, `us`, `ms`, `s`, `m` or `min`, `h`. Without a unit it is an error.
- **Bytes**: a number, with or without a unit. `k`, `kB`, `MB` and `GB` are powers of 1000; `KiB`, `MiB` and `GiB` of 1024. Case
  does not count.
- **Number**: a whole number.
- **Boolean**: `true` or `yes`, `false` or `no`.

Times and bytes may be decimals, such as `1.5s`.

## Fields without a value

An exchange need not have every field: a hit has no `origin`, for example. `!=` and `!~` match where the field has no value. All
other operators do not, with one exception: `origin=\"\"` matches where there is no origin, or where its value is empty. So
`origin!=\"\"` and `origin=*` both ask for exchanges with an origin; the second also takes an empty value.

";

/// docs/reference/filter.md.
pub fn filter_markdown() -> String {
    let mut page = format!("# Filters\n\n{GENERATED}{INTRODUCTION}| filter | meaning |\n|---|---|\n");
    for (filter, meaning) in EXAMPLES {
        let _ = writeln!(page, "| `{}` | {meaning} |", cell(filter));
    }
    let _ = write!(page, "\n{EXPRESSIONS}## Operators\n\n| kind |");
    for operator in Operator::ALL {
        let _ = write!(page, " `{operator}` |");
    }
    let _ = write!(page, "\n|{}\n", "---|".repeat(Operator::ALL.len() + 1));
    for kind in KINDS {
        let _ = write!(page, "| {} |", kind.form());
        for operator in Operator::ALL {
            page.push_str(if kind.operators().contains(&operator) { " yes |" } else { "  |" });
        }
        page.push('\n');
    }
    let _ = write!(
        page,
        "\n{OPERATORS}## Bounds\n\n- {FILTER_BYTES_MAX} bytes of text\n- {FILTER_TERMS_MAX} terms; each value of a list \
         counts as one\n- {FILTER_DEPTH_MAX} levels of parentheses and `not` within each other\n- {} KiB for each \
         regular expression once it is compiled\n\nA filter beyond one of them is refused, and the error names the \
         bound. Every error names the column, counted in characters\nfrom 1 on. For a field that is not known it names \
         the nearest one:\n\n```text\n{}\n```\n\n## Fields\n\n| field | kind | case | meaning | example |\n\
         |---|---|---|---|---|\n",
        EXPRESSION_BYTES_MAX / 1024,
        error_of(MISTAKE),
    );
    for field in FILTER_FIELDS {
        let FilterField { name, kind, meaning, example, .. } = field;
        let (form, example) = (kind.form(), cell(example));
        let _ = writeln!(page, "| `{name}` | {form} | {} | {meaning} | `{example}` |", case(field));
    }
    page
}

/// One of each kind, in the order of the page.
const KINDS: [FieldKind; 6] = [
    FieldKind::Url,
    FieldKind::Status,
    FieldKind::Time(TimeField::Whole),
    FieldKind::Bytes(NumberField::Bytes),
    FieldKind::Count(NumberField::Attempts),
    FieldKind::Stored,
];

/// A filter with a fault, for the page.
const MISTAKE: &str = "cache!=hit and sttus=5xx";

fn error_of(text: &str) -> String {
    let error = super::parse::parse(text).err();
    error.map(|error| format!("{error}\n{}", error.caret(text))).unwrap_or_default()
}

fn case(field: &FilterField) -> &'static str {
    match (field.kind.form() == FieldKind::Url.form(), field.ignores_case) {
        (false, _) => "",
        (true, true) => "ignored",
        (true, false) => "counts",
    }
}

/// Inline code within a cell of a table.
fn cell(code: &str) -> String {
    code.replace('|', r"\|")
}
