//! Sentences of the pages and of file heads are short enough to be read once.
//!
//! In: the pages in [`PAGES`], every page in docs but the generated ones, and the `//!` head of every source file. Out: every
//! sentence of more than 40 words, with file and line, and every page whose sentences have more than 20 words on average.
//! Inline code is one word, a link is its text, an item of a list begins a sentence. A cell of a table has the limit for one
//! sentence only, since fragments say nothing of an average; so has a head. Headings and code blocks are left out.
//! Deliberately absent: grammar, and what a sentence says.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sources;

/// Words of one sentence.
const WORDS_MAX: usize = 40;
/// Words of a page's sentences on average.
const AVERAGE_MAX: usize = 20;

const PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "fuzz/README.md",
    "fuzz/DIFFERENCES.md",
];
const FOLDER: &str = "docs/";
/// Generated from declarations in the source, whose sentences stand there.
const GENERATED: &str = "docs/reference/";

/// Words that end with a period and do not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "cf.", "vs.", "approx.", "no.", "sec."];
/// Such words that may end one: they do where the next word begins with a capital letter.
const AT_ENDS: &[&str] = &["etc.", "..."];

#[derive(Debug, PartialEq)]
struct Sentence {
    /// Where it begins.
    line: usize,
    words: usize,
    in_table: bool,
}

/// Fails with every sentence and every page that is too long.
pub(crate) fn run(root: &Path) -> Result<()> {
    let (mut faults, mut count, mut pages, mut heads) = (Vec::new(), 0, 0, 0);
    for name in sources::in_git(root)? {
        let is_head = name.ends_with(".rs");
        if !is_head && !is_page(&name) {
            continue;
        }
        // A tracked file may be gone from the working tree.
        let path = root.join(&name);
        if !path.exists() {
            continue;
        }
        let text = fs::read_to_string(path).with_context(|| name.clone())?;
        let sentences = sentences(&if is_head { head(&text) } else { text });
        count += sentences.len();
        faults.extend(too_long(&name, &sentences));
        if is_head {
            heads += 1;
        } else {
            pages += 1;
            faults.extend(too_long_on_average(&name, &sentences));
        }
    }
    ensure!(faults.is_empty(), "{} too long:\n  {}", faults.len(), faults.join("\n  "));
    println!("sentences: {count} on {pages} pages and in {heads} file heads, none too long");
    Ok(())
}

fn is_page(name: &str) -> bool {
    let is_in_folder = name.starts_with(FOLDER) && !name.starts_with(GENERATED) && name.ends_with(".md");
    is_in_folder || PAGES.contains(&name)
}

/// The head of a source file; all other lines are empty, so that each stays at its number.
fn head(text: &str) -> String {
    text.lines().map(|line| line.strip_prefix("//!").unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn too_long(file: &str, sentences: &[Sentence]) -> Vec<String> {
    let long = sentences.iter().filter(|sentence| sentence.words > WORDS_MAX);
    long.map(|s| format!("{file}:{}: {} words, more than {WORDS_MAX}", s.line, s.words)).collect()
}

fn too_long_on_average(page: &str, sentences: &[Sentence]) -> Option<String> {
    let prose = || sentences.iter().filter(|sentence| !sentence.in_table);
    let (words, count) = (prose().map(|sentence| sentence.words).sum::<usize>(), prose().count());
    (words > count * AVERAGE_MAX)
        .then(|| format!("{page}: {words} words in {count} sentences, more than {AVERAGE_MAX} on average"))
}

/// The sentences of a page, in order.
fn sentences(page: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    // The lines of the current paragraph or item, and where it begins.
    let (mut block, mut begins) = (String::new(), 1);
    let mut fence: Option<&str> = None;
    for (number, line) in (1..).zip(page.lines()) {
        let text = line.trim_start_matches([' ', '>']);
        let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
        let in_code = fence.is_some() || mark.is_some();
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_some() { None } else { mark };
        }
        let aside =
            in_code || text.is_empty() || ["#", "|", "<"].iter().any(|opening| text.starts_with(opening));
        let item = item(text);
        if aside || item.is_some() {
            split(&block, begins, false, &mut found);
            block.clear();
        }
        if !in_code && text.starts_with('|') {
            for cell in text.split('|') {
                split(cell, number, true, &mut found);
            }
        }
        if aside {
            continue;
        }
        if block.is_empty() {
            begins = number;
        }
        block.push_str(item.unwrap_or(text));
        block.push('\n');
    }
    split(&block, begins, false, &mut found);
    found
}

/// The text of a list's item.
fn item(line: &str) -> Option<&str> {
    let (mark, text) = line.split_once(' ')?;
    let number = mark.strip_suffix('.').unwrap_or_default();
    (["-", "*", "+"].contains(&mark) || number.parse::<u32>().is_ok()).then_some(text)
}

/// Adds the sentences of a block that begins at `line`.
fn split(block: &str, line: usize, in_table: bool, found: &mut Vec<Sentence>) {
    let mut end = |begins: usize, words: usize| {
        if words > 0 {
            found.push(Sentence { line: begins, words, in_table });
        }
    };
    let plain = plain(block);
    let mut words = (line..)
        .zip(plain.lines())
        .flat_map(|(number, text)| text.split_whitespace().map(move |word| (number, word)));
    let (mut begins, mut count) = (line, 0);
    let mut next = words.next();
    while let Some((number, word)) = next {
        next = words.next();
        if word.contains(|c: char| c.is_alphanumeric()) {
            if count == 0 {
                begins = number;
            }
            count += 1;
        }
        if ends(word, next.map(|(_, word)| word)) {
            end(begins, count);
            count = 0;
        }
    }
    end(begins, count);
}

/// Whether a sentence ends with this word.
fn ends(word: &str, next: Option<&str>) -> bool {
    let bare = word.trim_matches(['(', ')', '"', '\'', '*', '_', ']', '[']);
    let is = |list: &[&str]| list.iter().any(|known| bare.eq_ignore_ascii_case(known));
    let lower = next.is_some_and(|word| word.starts_with(char::is_lowercase));
    bare.ends_with(['.', '!', '?']) && !is(ABBREVIATIONS) && !(is(AT_ENDS) && lower)
}

/// A block with each inline code as one word and each link as its text; lines stay lines.
fn plain(block: &str) -> String {
    let (mut plain, mut rest) = (String::new(), block);
    while let Some(at) = rest.find(['`', ']']) {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let ticks = after.len() - after.trim_start_matches('`').len();
        let (opening, closing) = if ticks > 0 { (&after[..ticks], &after[..ticks]) } else { ("](", ")") };
        let inside = after.strip_prefix(opening).and_then(|after| after.split_once(closing));
        let Some((hidden, after)) = inside else {
            rest = after.strip_prefix(['`', ']']).unwrap_or_default();
            continue;
        };
        if ticks > 0 {
            plain.push_str("code");
        }
        plain.extend(hidden.matches('\n'));
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected`: line and words of each sentence outside tables.
    fn check(page: &str, expected: &[(usize, usize)]) {
        let found: Vec<_> =
            sentences(page).iter().filter(|s| !s.in_table).map(|s| (s.line, s.words)).collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn sentences_end_with_their_marks() {
        check("One two. Three!\nFour (five six.) Seven", &[(1, 2), (1, 1), (2, 3), (2, 1)]);
        check("It has \"a. b\" so.\n\nlarder\nruns. nginx too?", &[(1, 3), (1, 2), (3, 2), (4, 2)]);
    }

    #[test]
    fn periods_within_words_and_abbreviations_do_not_end_one() {
        check("Use one, e.g. this (i.e. that), etc. as above.", &[(1, 9)]);
        check("Version 1.2.3 obeys RFC 9111 4.2. The rest, etc. Then more.", &[(1, 6), (1, 3), (1, 2)]);
        check("See larder.toml and 0.5 ms ... then end.", &[(1, 7)]);
    }

    #[test]
    fn code_is_one_word_and_a_link_its_text() {
        check("Run `larder check a. b` now.", &[(1, 3)]);
        check("Read [the page. Twice](a.md#b. c) now", &[(1, 3), (1, 2)]);
        check("Code ``a ` b`` over `two\nlines` ends. Next", &[(1, 5), (2, 1)]);
        check("A ] and a ` alone", &[(1, 4)]);
    }

    #[test]
    fn blocks_headings_and_tables_are_left_out() {
        check(
            "# A head\n\nText\n```sh\nlong. code\n```\n- one\n  two\n- three\n2. four\n",
            &[(3, 1), (7, 2), (9, 1), (10, 1)],
        );
        check("| a | b. c |\n|---|---|\n<img src=\"x\">\n> quoted", &[(4, 1)]);
        check("~~~\n```\nx\n~~~\ny", &[(5, 1)]);
    }

    #[test]
    fn long_sentences_and_pages_are_found() {
        let long = |words: usize| format!("{}end.", "word ".repeat(words - 1));
        let faults = |page: &str| {
            let sentences = sentences(page);
            too_long("a.md", &sentences).len()
                + usize::from(too_long_on_average("a.md", &sentences).is_some())
        };
        assert_eq!(faults(&long(AVERAGE_MAX)), 0);
        assert_eq!(faults(&long(AVERAGE_MAX + 1)), 1, "the average");
        assert_eq!(faults(&format!("{} One. Two.", long(WORDS_MAX))), 0);
        assert_eq!(faults(&format!("{} One. Two.", long(WORDS_MAX + 1))), 1, "the sentence");
        assert_eq!(faults(&format!("| {} |", long(WORDS_MAX))), 0, "a table has no average");
        assert_eq!(faults(&format!("| {} |", long(WORDS_MAX + 1))), 1, "a cell has the limit");
    }

    #[test]
    fn a_head_is_read_without_the_code_below_it() {
        let text = "//! One two.\n//!\n//! Three\n//! four.\n\n/// Five.\nmod a; // Six.\n";
        let found: Vec<_> = sentences(&head(text)).iter().map(|s| (s.line, s.words)).collect();
        assert_eq!(found, [(1, 2), (3, 2)]);
    }

    #[test]
    fn generated_pages_are_left_out() {
        for (name, expected) in [
            ("README.md", true),
            ("docs/guide/a.md", true),
            ("docs/reference/a.md", false),
            ("docs/images/a.svg", false),
            ("crates/x/README.md", false),
        ] {
            assert_eq!(is_page(name), expected, "{name}");
        }
    }
}
