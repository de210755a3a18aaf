//! Where two pages differ, line by line.
//!
//! In: a peer's page and larder's. Out: lines for the list of differences, one for each line of a page that the other has otherwise. Of a
//! page that was cut only that counts.

use harness::received::Received;

/// The lines in which the pages differ; none where they are the same.
pub(crate) fn difference(peer: &str, by_peer: &Received, by_larder: &Received) -> Vec<String> {
    if !(by_peer.is_whole && by_larder.is_whole) {
        let word = |page: &Received| if page.is_whole { "whole" } else { "cut" };
        let differs = by_peer.is_whole != by_larder.is_whole;
        return differs
            .then(|| format!("{peer} {}, larder {}", word(by_peer), word(by_larder)))
            .into_iter()
            .collect();
    }
    let mut lines = Vec::new();
    if by_peer.status != by_larder.status {
        lines.push(format!("{peer} {}, larder {}", by_peer.status, by_larder.status));
    }
    let (theirs, ours) = (lines_of(&by_peer.content), lines_of(&by_larder.content));
    for (theirs, ours) in differing(&theirs, &ours) {
        lines.extend(theirs.iter().map(|line| shown(peer, line)));
        lines.extend(ours.iter().map(|line| shown("larder", line)));
    }
    lines
}

type Lines<'a> = [&'a [u8]];

fn lines_of(content: &[u8]) -> Vec<&[u8]> {
    content.split(|byte| *byte == b'\n').collect()
}

/// Pairs of runs of lines: each line beside its own where both have as many, else all from the first that differs to the last.
fn differing<'a>(theirs: &'a Lines<'a>, ours: &'a Lines<'a>) -> Vec<(&'a Lines<'a>, &'a Lines<'a>)> {
    if theirs.len() == ours.len() {
        let pairs = theirs.chunks(1).zip(ours.chunks(1));
        return pairs.filter(|(theirs, ours)| theirs != ours).collect();
    }
    let most = theirs.len().min(ours.len());
    let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
    let before = theirs.iter().zip(ours).take_while(same).count();
    let after = theirs.iter().rev().zip(ours.iter().rev()).take(most - before).take_while(same).count();
    let middle = |lines: &'a Lines<'a>| lines.get(before..lines.len() - after).unwrap_or_default();
    vec![(middle(theirs), middle(ours))]
}

/// A line of a page, on one line of text that shows each of its bytes.
fn shown(whose: &str, line: &[u8]) -> String {
    let mut text = format!("{whose}>");
    for (place, byte) in line.iter().enumerate() {
        if place == 0 {
            text.push(' ');
        }
        match byte {
            b'\\' => text.push_str("\\\\"),
            b' ' if place + 1 == line.len() => text.push_str("\\x20"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content: &str) -> Received {
        Received { status: 200, content: content.as_bytes().to_vec(), is_whole: true }
    }

    fn check(theirs: &str, ours: &str, expected: &[&str]) {
        assert_eq!(difference("nginx", &page(theirs), &page(ours)), expected);
    }

    #[test]
    fn lines_that_differ_stand_beside_each_other() {
        check("a\nb\n", "a\nb\n", &[]);
        check("a\nb\nc\nd", "a\nx\nc\ny", &["nginx> b", "larder> x", "nginx> d", "larder> y"]);
        check("a\nb\nc\n", "a\nc\n", &["nginx> b"]);
        check("a\na\n", "a\na\na\n", &["larder> a"]);
        check("a", "a\n", &["larder>"]);
        check("", "a\n", &["larder> a"]);
    }

    #[test]
    fn every_byte_is_shown() {
        check("\u{fc}\\\t ", "", &["nginx> \\xc3\\xbc\\\\\\x09\\x20", "larder>"]);
    }

    #[test]
    fn the_status_is_compared_and_of_a_page_that_was_cut_nothing_but_that() {
        let other = Received { status: 502, ..page("a") };
        assert_eq!(difference("nginx", &page("a"), &other), ["nginx 200, larder 502"]);
        let cut = Received { status: 0, content: Vec::new(), is_whole: false };
        assert_eq!(difference("nginx", &page("a"), &cut), ["nginx whole, larder cut"]);
        assert_eq!(difference("nginx", &cut, &page("a")), ["nginx cut, larder whole"]);
        assert!(difference("nginx", &cut, &Received { is_whole: false, ..page("a") }).is_empty());
    }
}
