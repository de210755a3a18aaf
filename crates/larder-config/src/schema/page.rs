//! The reference page of the config, in Markdown.
//!
//! In: the declarations. Out: one chapter per table with its keys (type, default, bounds, sentence, reason), then how
//! each kind of value is written.

use std::fmt::Write;

use crate::schema::{Fallback, Key, SectionDoc, Shape, Text};
use crate::sections::all_sections;
use crate::sections::key::TRACKING_PARAMETERS;
use crate::value::tag_field::TAG_FIELDS;
use larder_http::fields::cookie_names;

const HEAD: &str = "\
# The config file

<!-- Generated from the declarations in crates/larder-config; `make reference` rewrites it. -->

One file in TOML. `larder check -c larder.toml` prints every error at once, with line, column and a hint; `larder run`
does the same and does not start. Unknown keys are errors. Where a list is expected, a single value stands for a list
of one. The [JSON Schema](larder.schema.json) lets editors complete and check it: put
`#:schema ./larder.schema.json` on its first line.
";

/// The reference of every key, in Markdown, with a line feed at its end.
pub fn reference_markdown() -> String {
    let sections = all_sections();
    let mut page = HEAD.to_owned();
    let mut texts: Vec<Text> = Vec::new();
    for section in &sections {
        write_section(&mut page, section, &mut texts);
    }
    page.push_str("\n## How values are written\n");
    for text in &texts {
        let noun = capitalised(text.noun);
        let _ = write!(page, "\n### {noun}\n\n{}\n\n{}\n", text.about, example(text.examples));
    }
    for (heading, names) in [
        ("What `query = \"no-tracking\"` leaves out", TRACKING_PARAMETERS),
        ("What `\"default\"` is in `harmless_cookies`", cookie_names::HARMLESS),
        ("What `\"default\"` is in `tags`", TAG_FIELDS),
    ] {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = write!(page, "\n### {heading}\n\n{}.\n", names.join(", "));
    }
    page.push_str(&known_sessions());
    page
}

/// The names that mean a session, each kind as it is compared.
fn known_sessions() -> String {
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    format!(
        "\n### What `\"default\"` is in `session_cookies`\n\nLetter case does not matter.\n\n\
         - Whole names: {}.\n- Text anywhere in a name: {}.\n\
         - A whole part of a name, between its ends, `-`, `_`, `.` and capital letters: {}.\n\
         - Names of applications: {}, and 32 hexadecimal digits (Joomla).\n",
        list(cookie_names::SESSION_NAMES),
        list(cookie_names::SESSION_TEXTS),
        list(cookie_names::SESSION_PARTS),
        list(cookie_names::SESSION_APPLICATIONS),
    )
}

fn write_section(page: &mut String, section: &SectionDoc, texts: &mut Vec<Text>) {
    let _ = write!(page, "\n## {}\n\n{}\n", capitalised(section.title), sentences(section.about));
    for key in &section.keys {
        collect(&key.shape, texts);
        let _ = write!(page, "\n### `{}`\n\n{}\n\n", key.name, sentences(key.doc));
        let _ = writeln!(page, "- Type: {}", type_of(&key.shape));
        if !(matches!(key.fallback, Fallback::Absent) && is_table(&key.shape)) {
            let _ = writeln!(page, "- Default: {}", default_of(key));
        }
        if let Some((low, high)) = key.bounds {
            let _ = writeln!(page, "- Allowed: `{low}` to `{high}`");
        }
        let _ = writeln!(page, "- Why: {}", key.why);
    }
    let others: Vec<_> = section.flattened.iter().map(|doc| format!("\"{}\"", doc().title)).collect();
    if !others.is_empty() {
        let begin = if section.keys.is_empty() { "It has" } else { "Besides these," };
        let _ = write!(page, "\n{begin} every key of {}.\n", others.join(" and of "));
    }
}

fn default_of(key: &Key) -> String {
    match key.fallback {
        Fallback::Literal(text) => format!("`{text}`"),
        Fallback::Described(words) => words.to_owned(),
        Fallback::Absent => "none".to_owned(),
        Fallback::Required => "none: required".to_owned(),
    }
}

fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Boolean => "`true` or `false`".to_owned(),
        Shape::False => "`false`".to_owned(),
        Shape::Integer => "a whole number".to_owned(),
        Shape::Text(text) => format!("[{}](#{})", text.noun, anchor(text.noun)),
        Shape::Words(words) => {
            words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(" or ")
        }
        Shape::Numbers(numbers) => {
            numbers.iter().map(|number| format!("`{number}`")).collect::<Vec<_>>().join(" or ")
        }
        Shape::List(item) => match **item {
            Shape::Section(section) => format!("a list of tables, {}", section().title),
            _ => format!("a list, each {}", type_of(item)),
        },
        Shape::Map(names, value) => match **value {
            Shape::Section(section) => format!("tables by name, {}", section().title),
            _ => format!("a table, [{}](#{}) = {}", names.noun, anchor(names.noun), type_of(value)),
        },
        Shape::Section(section) => format!("a table, {}", section().title),
        Shape::AnyOf(shapes) => shapes.iter().map(type_of).collect::<Vec<_>>().join(", or "),
    }
}

/// The kinds of text that a shape is made of, each once.
fn collect(shape: &Shape, texts: &mut Vec<Text>) {
    let mut add = |text: &Text| {
        if texts.iter().all(|known| known.noun != text.noun) {
            texts.push(*text);
        }
    };
    match shape {
        Shape::Text(text) => add(text),
        Shape::Map(names, value) => {
            add(names);
            collect(value, texts);
        }
        Shape::List(item) => collect(item, texts),
        Shape::AnyOf(shapes) => shapes.iter().for_each(|one| collect(one, texts)),
        Shape::Boolean
        | Shape::False
        | Shape::Integer
        | Shape::Numbers(_)
        | Shape::Words(_)
        | Shape::Section(_) => {}
    }
}

/// The anchor that Markdown gives to a heading.
fn anchor(heading: &str) -> String {
    let kept =
        heading.chars().filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-'));
    kept.map(|character| if character == ' ' { '-' } else { character.to_ascii_lowercase() }).collect()
}

/// Whether a key is a table of its own, which says more than a default could.
fn is_table(shape: &Shape) -> bool {
    match shape {
        Shape::Section(_) => true,
        Shape::List(item) => is_table(item),
        Shape::Map(_, value) => is_table(value),
        _ => false,
    }
}

/// Examples as code, unless they are words.
fn example(text: &str) -> String {
    if text.starts_with(['"', '\'']) || text.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("Such as `{text}`.");
    }
    format!("Such as {text}.")
}

/// The lines of a doc comment as one line.
pub(crate) fn sentences(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
