//! The elements of a sitemap: `urlset` with `url`, or `sitemapindex` with `sitemap`, and `loc` in each.
//!
//! In: uncompressed text. Out: what the `loc` elements hold. An element counts only at its place and under the root's prefix, so
//! that the `loc` of an image or of a video is none of a page. Comments, instructions and a document type are skipped; what a
//! document type declares has no effect.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::sitemap::{Fault, Kind, LOCATIONS_MAX, Sitemap};

/// Bytes of a name that are shown.
const SHOWN_MAX: usize = 64;

/// Where in the tree a location stands: root, entry, location.
const LOCATION_DEPTH: usize = 3;

pub(crate) fn read(text: &[u8]) -> Sitemap {
    match str::from_utf8(text) {
        Ok(text) => read_text(text),
        Err(error) => {
            let (front, _) = text.split_at_checked(error.valid_up_to()).unwrap_or_default();
            let fault = malformed(front.len() as u64, "not UTF-8");
            // What the cut made malformed is no fault of the file.
            Sitemap { fault: Some(fault), ..read_text(str::from_utf8(front).unwrap_or_default()) }
        }
    }
}

fn read_text(text: &str) -> Sitemap {
    let mut reader = Reader::from_str(text);
    let mut walk = Walk::default();
    loop {
        let at = reader.buffer_position();
        let step = match reader.read_event() {
            Ok(event) => walk.step(event, at),
            Err(error) => Err(malformed(reader.error_position(), error)),
        };
        match step {
            Ok(Step::On) => {}
            Ok(Step::End) => return walk.sitemap,
            Err(fault) => {
                walk.fault(fault);
                return walk.sitemap;
            }
        }
    }
}

enum Step {
    On,
    End,
}

#[derive(Default)]
struct Walk {
    sitemap: Sitemap,
    /// Elements that are open.
    depth: usize,
    /// The prefix of the root, once there is one.
    prefix: Option<String>,
    is_in_entry: bool,
    location: Option<Location>,
}

/// The text of a location so far.
#[derive(Default)]
struct Location {
    text: String,
    is_whole: bool,
}

impl Walk {
    /// Keeps the first fault.
    fn fault(&mut self, fault: Fault) {
        self.sitemap.fault.get_or_insert(fault);
    }

    /// Takes the event at byte `at`. Each takes at least one byte, so there are no more of them than bytes.
    fn step(&mut self, event: Event<'_>, at: u64) -> Result<Step, Fault> {
        match event {
            Event::Start(element) => {
                self.open(&element, at)?;
                self.depth += 1;
            }
            Event::Empty(element) => {
                // Opened and closed at once.
                self.open(&element, at)?;
                self.depth += 1;
                return self.close();
            }
            Event::End(_) => return self.close(),
            Event::Text(text) => self.text(&text, at)?,
            Event::CData(text) => self.text(&text, at)?,
            Event::GeneralRef(reference) => self.reference(&reference, at)?,
            Event::Eof if self.depth > 0 => return Err(malformed(at, "an element is not closed")),
            Event::Eof if self.prefix.is_none() => return Err(Fault::Empty),
            Event::Eof => return Ok(Step::End),
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
        }
        Ok(Step::On)
    }

    fn open(&mut self, element: &BytesStart<'_>, at: u64) -> Result<(), Fault> {
        let (name, local) = (element.name(), element.local_name());
        let prefix = name.prefix().map_or("", |prefix| prefix.into_inner());
        let is_ours = self.prefix.as_deref() == Some(prefix);
        match self.depth {
            0 if self.prefix.is_some() => return Err(malformed(at, "a second root element")),
            0 => {
                self.sitemap.kind = match local.as_ref() {
                    "urlset" => Kind::Pages,
                    "sitemapindex" => Kind::Index,
                    _ => return Err(Fault::Root(shown(name.as_ref()))),
                };
                self.prefix = Some(prefix.to_owned());
            }
            1 => {
                let entry = match self.sitemap.kind {
                    Kind::Pages => "url",
                    Kind::Index => "sitemap",
                };
                self.is_in_entry = is_ours && local.as_ref() == entry;
            }
            2 if self.is_in_entry && is_ours && local.as_ref() == "loc" => {
                self.location = Some(Location { text: String::new(), is_whole: true });
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self) -> Result<Step, Fault> {
        self.depth = self.depth.saturating_sub(1);
        if self.depth >= LOCATION_DEPTH {
            return Ok(Step::On);
        }
        let Some(location) = self.location.take().filter(|location| location.is_whole) else {
            return Ok(Step::On);
        };
        let text = location.text.trim();
        if text.is_empty() {
            return Ok(Step::On);
        }
        if self.sitemap.locations.len() == LOCATIONS_MAX {
            return Err(Fault::TooMany);
        }
        self.sitemap.locations.push(text.to_owned());
        Ok(Step::On)
    }

    fn text(&mut self, text: &str, at: u64) -> Result<(), Fault> {
        if self.depth == 0 && !text.trim().is_empty() {
            return Err(malformed(at, "text outside of the root element"));
        }
        if let Some(location) = self.location.as_mut().filter(|_| self.depth == LOCATION_DEPTH) {
            if text.contains(is_forbidden) {
                return Err(malformed(at, "a control character in a location"));
            }
            location.text.push_str(text);
        }
        Ok(())
    }

    /// A character reference, or one of XML's own entities; any other makes its location useless, and nothing else.
    fn reference(&mut self, reference: &BytesRef<'_>, at: u64) -> Result<(), Fault> {
        match reference.resolve_char_ref() {
            Err(error) => return Err(malformed(at, error)),
            Ok(Some(character)) => return self.text(character.encode_utf8(&mut [0; 4]), at),
            Ok(None) => {}
        }
        if let Some(text) = resolve_xml_entity(reference) {
            return self.text(text, at);
        }
        if let Some(location) = &mut self.location {
            location.is_whole = false;
            self.fault(Fault::Entity { at, name: shown(reference) });
        }
        Ok(())
    }
}

/// What XML does not allow, and its reader lets pass (XML 1.0 2.2).
fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

fn malformed(at: u64, what: impl ToString) -> Fault {
    Fault::Malformed { at, what: what.to_string() }
}

/// A name as it can be shown, cut.
fn shown(name: &str) -> String {
    name.get(..name.floor_char_boundary(SHOWN_MAX)).unwrap_or(name).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, kind: Kind, locations: &[&str]) {
        let sitemap = read(text.as_bytes());
        assert_eq!((sitemap.kind, sitemap.fault), (kind, None), "{text}");
        assert_eq!(sitemap.locations, locations, "{text}");
    }

    /// What is read before the fault, and its message.
    fn check_fault(text: &str, locations: &[&str], message: &str) {
        let sitemap = read(text.as_bytes());
        assert_eq!(sitemap.locations, locations, "{text}");
        let said = sitemap.fault.map(|fault| fault.to_string()).unwrap_or_default();
        assert!(said.starts_with(message), "{text}: {said}");
    }

    #[test]
    fn pages_and_indexes_are_told_apart_and_keep_their_order() {
        let pages = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n\
            <url><loc>\n  http://a/2 </loc><lastmod>2026-11-01</lastmod></url>\n\
            <!-- <url><loc>http://a/never</loc></url> -->\n\
            <url><priority>0.5</priority><loc>http://a/1</loc></url><url/>\n</urlset>\n";
        check(pages, Kind::Pages, &["http://a/2", "http://a/1"]);
        let index = "<sitemapindex><sitemap><loc>http://a/1.xml.gz</loc></sitemap></sitemapindex>";
        check(index, Kind::Index, &["http://a/1.xml.gz"]);
        check("<urlset/>", Kind::Pages, &[]);
        check("<urlset><url><loc/></url></urlset>", Kind::Pages, &[]);
    }

    #[test]
    fn only_the_location_of_an_entry_counts() {
        let images = "<urlset xmlns:image=\"i\"><url><image:image><image:loc>http://a/i.png</image:loc></image:image>\
            <image:loc>http://a/j.png</image:loc><x><loc>http://a/x</loc></x>\
            <loc>http://a/<b>bold</b>1</loc></url><loc>http://a/stray</loc><sitemap><loc>http://a/s</loc></sitemap></urlset>";
        check(images, Kind::Pages, &["http://a/1"]);
        let prefixed = "<s:urlset xmlns:s=\"n\"><s:url><s:loc>http://a/1</s:loc><loc>http://a/2</loc></s:url></s:urlset>";
        check(prefixed, Kind::Pages, &["http://a/1"]);
    }

    #[test]
    fn references_and_marked_sections_are_text() {
        let text =
            "<urlset><url><loc>http://a/?b=1&amp;c=&quot;&#x41;&#66;<![CDATA[&d]]></loc></url></urlset>";
        check(text, Kind::Pages, &["http://a/?b=1&c=\"AB&d"]);
    }

    #[test]
    fn a_document_type_declares_nothing() {
        let declared = "<!DOCTYPE urlset [<!ENTITY a \"http://a/\"><!ENTITY b SYSTEM \"file:///etc/passwd\">]>\
            <urlset><url><loc>&a;1</loc></url><url><loc>http://a/2</loc></url><url><loc>&b;</loc></url></urlset>";
        check_fault(declared, &["http://a/2"], "unknown entity &a; at byte 100: only the five");
        let elsewhere = "<urlset><url><lastmod>&a;</lastmod><loc>http://a/1</loc></url></urlset>";
        check(elsewhere, Kind::Pages, &["http://a/1"]);
    }

    #[test]
    fn a_fault_says_where_it_is_and_takes_nothing_from_what_was_before_it() {
        let front = "<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2";
        for (rest, message) in [
            ("</url></urlset>", "malformed XML at byte 60: "),
            ("", "malformed XML at byte 60: an element is not closed"),
            (" & b</loc></url></urlset>", "malformed XML at byte 61: "),
            ("<", "malformed XML at byte 60: "),
            ("&#xD800;</loc></url></urlset>", "malformed XML at byte 60: "),
            ("&#1;</loc></url></urlset>", "malformed XML at byte 60: a control character"),
            ("\0</loc></url></urlset>", "malformed XML at byte 50: a control character"),
        ] {
            check_fault(&format!("{front}{rest}"), &["http://a/1"], message);
        }
        let whole = "<urlset><url><loc>http://a/1</loc></url></urlset>";
        check_fault(&format!("{whole}<urlset/>"), &["http://a/1"], "malformed XML at byte 49: a second root");
        check_fault(&format!("{whole}\n!"), &["http://a/1"], "malformed XML at byte 49: text outside");
        let mut latin1 = whole.replace("a/1", "a/?").into_bytes();
        latin1.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xe9);
        let fault = read(&latin1).fault.map(|fault| fault.to_string()).unwrap_or_default();
        assert!(fault.starts_with("malformed XML at byte 27: not UTF-8"), "{fault}");
    }

    #[test]
    fn what_is_no_sitemap_is_named() {
        check_fault("", &[], "no sitemap: there is no root element");
        check_fault("http://a/1\nhttp://a/2\n", &[], "malformed XML at byte 0: text outside of the root");
        check_fault("<!doctype html><html><body>", &[], "no sitemap: the root element is <html>");
        check_fault("{}", &[], "malformed XML at byte 0");
        let long = "x".repeat(100_000);
        let fault = read(format!("<{long}>").as_bytes()).fault.map(|fault| fault.to_string());
        assert!(fault.is_some_and(|said| said.len() < 200));
    }

    #[test]
    fn locations_beyond_the_formats_own_number_are_left_out() {
        let entry = "<url><loc>http://a/</loc></url>";
        let most = format!("<urlset>{}</urlset>", entry.repeat(LOCATIONS_MAX));
        let sitemap = read(most.as_bytes());
        assert_eq!((sitemap.locations.len(), sitemap.fault), (LOCATIONS_MAX, None));
        let more = format!("<urlset>{}</urlset>", entry.repeat(LOCATIONS_MAX + 1));
        let sitemap = read(more.as_bytes());
        assert_eq!((sitemap.locations.len(), sitemap.fault), (LOCATIONS_MAX, Some(Fault::TooMany)));
    }
}
