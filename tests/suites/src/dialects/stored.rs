//! What is stored before each request: tests/dialects/peers/objects.list.
//!
//! In: the file. Out: URLs with the type, the tags and the further fields of their responses. Each line that begins with a URL begins one
//! of them; lines behind it, each after two blanks, have its tags or a field.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::world::TagField;

const FILE: &str = "objects.list";

/// A response that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) host: String,
    /// Path and query.
    pub(crate) target: String,
    content_type: String,
    tags: Vec<String>,
    fields: Vec<String>,
}

impl Stored {
    /// How the list of differences names it.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.host, self.target)
    }

    /// The lines of its fields, its tags in these.
    pub(crate) fn field_lines(&self, tags: &[TagField]) -> Vec<String> {
        let of_tags = tags.iter().filter(|_| !self.tags.is_empty());
        let of_tags = of_tags.map(|(name, separator)| format!("{name}: {}", self.tags.join(separator)));
        let content_type = format!("Content-Type: {}", self.content_type);
        of_tags.chain(self.fields.iter().cloned()).chain([content_type]).collect()
    }
}

/// Reads the file in this folder.
pub(crate) fn read(folder: &Path) -> Result<Vec<Stored>> {
    let text = fs::read_to_string(folder.join(FILE)).context(FILE)?;
    parse(&text).context(FILE)
}

fn parse(text: &str) -> Result<Vec<Stored>> {
    let mut all: Vec<Stored> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(more) = line.strip_prefix("  ") {
            let last = all.last_mut().context("tags before a URL")?;
            match more.contains(": ") {
                true => last.fields.push(more.to_owned()),
                false => last.tags.extend(more.split(' ').map(str::to_owned)),
            }
            continue;
        }
        let (url, content_type) = line.split_once(' ').with_context(|| format!("{line:?}: no type"))?;
        let rest = url.strip_prefix("http://").with_context(|| format!("{line:?}: no URL"))?;
        let at = rest.find('/').with_context(|| format!("{line:?}: no path"))?;
        let (host, target) = rest.split_at(at);
        all.push(Stored {
            host: host.to_owned(),
            target: target.to_owned(),
            content_type: content_type.to_owned(),
            tags: Vec::new(),
            fields: Vec::new(),
        });
    }
    ensure!(!all.is_empty(), "nothing");
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tags_and_fields_belong_to_the_url_before_them() {
        let stored =
            parse("# A head\nhttp://a.example/x?y=1 text/html\n  t node:1\n  X-Site: 1\nhttp://b/ a/b\n")
                .unwrap();
        assert_eq!(stored.len(), 2);
        assert_eq!(stored[0].name(), "a.example/x?y=1");
        let lines = stored[0].field_lines(&[("xkey", " "), ("X-Cache-Tags", ",")]);
        assert_eq!(
            lines,
            ["xkey: t node:1", "X-Cache-Tags: t,node:1", "X-Site: 1", "Content-Type: text/html"]
        );
        assert_eq!(stored[1].field_lines(&[("xkey", " ")]), ["Content-Type: a/b"]);
        for wrong in ["  t", "a.example/ a/b", "http://a.example a/b", "http://a.example/", ""] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
