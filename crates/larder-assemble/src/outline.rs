//! What a program holds, for people who look at a template: its includes, what is around each, and what stands in for it.
//!
//! In: a program, as far as it is compiled. Out: [`Outline`], in the order of the template. Places are offsets of the body, by
//! which a run names them too ([`Ask::at`](crate::Ask)).
//! Deliberately absent: which includes a page runs, and what it asks for there; that is the run's.

use std::ops::Range;

use larder_http::target::reference::Reference;

use crate::program::{Include, Op, Program};
use crate::reason::IncludeFailure;
use crate::source::Source;

/// The includes of a program.
#[derive(Debug)]
pub struct Outline<'a> {
    levels: Vec<OutlineLevel>,
    includes: Vec<OutlinedInclude<'a>>,
}

/// Something around an include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineLevel {
    /// What it is.
    pub kind: LevelKind,
    /// The bytes of the directive that begins it, with what is dropped before them.
    pub at: Range<u64>,
    around: Option<usize>,
}

/// What is around an include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelKind {
    /// The first branch of a condition.
    If,
    /// A further one.
    ElseIf,
    /// The last one, for all else.
    Else,
    /// What is discarded where an include in it fails.
    Attempt,
    /// What stands in then.
    Except,
    /// A block, which runs where it stands in for a fragment.
    Block,
}

/// An include.
#[derive(Debug)]
pub struct OutlinedInclude<'a> {
    /// The bytes of its directive, with what is dropped before them.
    pub at: &'a Range<u64>,
    include: &'a Include,
    within: Option<usize>,
}

/// What is asked for where an include fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternative<'a> {
    /// The same on each page.
    Fixed(&'a Reference),
    /// Nothing can be asked for.
    Failed(IncludeFailure),
    /// It depends on the page.
    Composed,
}

impl Program {
    /// Its includes, as far as it is compiled.
    pub fn outline(&self) -> Outline<'_> {
        let (mut levels, mut includes): (Vec<OutlineLevel>, Vec<_>) = (Vec::new(), Vec::new());
        let mut within: Option<usize> = None;
        for operation in (0..).map_while(|index| self.operation(index)) {
            let around = |within: Option<usize>| {
                within.and_then(|level| levels.get(level)).and_then(|level| level.around)
            };
            let (kind, around) = match &operation.op {
                Op::Include(include) => {
                    includes.push(OutlinedInclude { at: &operation.at, include, within });
                    continue;
                }
                Op::If(_) => (LevelKind::If, within),
                Op::Try => (LevelKind::Attempt, within),
                Op::Block(_) => (LevelKind::Block, within),
                Op::ElseIf(_) => (LevelKind::ElseIf, around(within)),
                Op::Else => (LevelKind::Else, around(within)),
                Op::Except => (LevelKind::Except, around(within)),
                Op::End => {
                    within = around(within);
                    continue;
                }
                _ => continue,
            };
            within = Some(levels.len());
            levels.push(OutlineLevel { kind, at: operation.at.clone(), around });
        }
        Outline { levels, includes }
    }
}

impl<'a> Outline<'a> {
    /// The include whose bytes begin at an offset.
    pub fn include(&self, at: u64) -> Option<&OutlinedInclude<'a>> {
        let index = self.includes.binary_search_by_key(&at, |include| include.at.start).ok()?;
        self.includes.get(index)
    }

    /// What is around an include, from the innermost.
    pub fn around(&self, include: &OutlinedInclude<'_>) -> impl Iterator<Item = &OutlineLevel> {
        let level = |index: Option<usize>| index.and_then(|index| self.levels.get(index));
        std::iter::successors(level(include.within), move |inner| level(inner.around))
    }
}

impl OutlinedInclude<'_> {
    /// `alt`, or `onerror="/path"`.
    pub fn alternative(&self) -> Option<Alternative<'_>> {
        Some(match self.include.otherwise.as_ref()? {
            Source::Fixed(Ok(reference)) => Alternative::Fixed(reference),
            Source::Fixed(Err(reason)) => Alternative::Failed(*reason),
            Source::Composed(..) => Alternative::Composed,
        })
    }

    /// `onerror="continue"`.
    pub fn may_be_missing(&self) -> bool {
        self.include.may_be_missing
    }

    /// The block that stands in.
    pub fn stub(&self) -> Option<&[u8]> {
        self.include.stub.as_deref()
    }

    /// The variable that it becomes.
    pub fn variable(&self) -> Option<&[u8]> {
        self.include.set.as_deref()
    }

    /// Whether what follows waits for it.
    pub fn waits(&self) -> bool {
        self.include.waits
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::compile;
    use larder_http::authority::Authority;
    use larder_http::message::Scheme;
    use larder_http::target::Target;
    use larder_http::target::reference::DocumentUri;
    use larder_http::template::Language;

    fn uri() -> DocumentUri {
        DocumentUri {
            scheme: Scheme::Http,
            authority: Authority::parse("a.example".into(), Scheme::Http).unwrap(),
            target: Target::parse("/d/".into()).unwrap(),
        }
    }

    fn levels(language: Language, text: &str) -> Vec<Vec<LevelKind>> {
        let program = compile(language, uri(), text.as_bytes());
        let outline = program.outline();
        let kinds = |include| outline.around(include).map(|level| level.kind).collect();
        outline.includes.iter().map(kinds).collect()
    }

    #[test]
    fn an_include_is_told_with_what_is_around_it_from_the_innermost() {
        use LevelKind::{Attempt, Block, Else, ElseIf, Except, If};
        let ssi = "<!--#include virtual='/0'--><!--#if expr='$a'--><!--#include virtual='/1'-->\
                   <!--#elif expr='$b'--><!--#if expr='$c'-->x<!--#else--><!--#include virtual='/2'--><!--#endif-->\
                   <!--#include virtual='/3'--><!--#endif--><!--#include virtual='/4'-->\
                   <!--#block name='b'--><!--#include virtual='/5'--><!--#endblock-->";
        let expected = [vec![], vec![If], vec![Else, ElseIf], vec![ElseIf], vec![], vec![Block]];
        assert_eq!(levels(Language::Ssi, ssi), expected);
        let esi = "<esi:try><esi:attempt><esi:choose><esi:when test=\"'a'=='a'\"><esi:include src='/0'/></esi:when>\
                   <esi:otherwise><esi:include src='/1'/></esi:otherwise></esi:choose></esi:attempt>\
                   <esi:except><esi:include src='/2'/></esi:except></esi:try><esi:include src='/3'/>";
        let expected = [vec![If, Attempt], vec![Else, Attempt], vec![Except], vec![]];
        assert_eq!(levels(Language::Esi, esi), expected);
    }

    #[test]
    fn what_stands_in_is_told_as_far_as_it_is_the_same_on_each_page() {
        let text = "<esi:include src='/a' alt='/b' onerror='continue'/><esi:include src='/c' alt='/$(HTTP_HOST)'/>\
                    <esi:include src='/d' alt='/../../e'/><esi:include src='/f'/>";
        let program = compile(Language::Esi, uri(), text.as_bytes());
        let outline = program.outline();
        let told: Vec<_> = outline
            .includes
            .iter()
            .map(|include| match include.alternative() {
                Some(Alternative::Fixed(reference)) => reference.target.to_string(),
                Some(Alternative::Failed(reason)) => reason.as_str().to_owned(),
                Some(Alternative::Composed) => "composed".to_owned(),
                None => "none".to_owned(),
            })
            .collect();
        assert_eq!(told, ["/b", "composed", "climbing", "none"]);
        let missing: Vec<_> = outline.includes.iter().map(OutlinedInclude::may_be_missing).collect();
        assert_eq!(missing, [true, false, false, false]);
        let text = "x<!--#include virtual='/a' stub='S'--><!--#include virtual='/b' set='V'-->";
        let program = compile(Language::Ssi, uri(), text.as_bytes());
        let outline = program.outline();
        let (stub, set) = (outline.include(1).unwrap(), outline.include(38).unwrap());
        assert_eq!((stub.stub(), stub.variable(), stub.waits()), (Some(&b"s"[..]), None, false));
        assert_eq!((set.stub(), set.variable(), set.waits()), (None, Some(&b"v"[..]), true));
        assert!(outline.include(0).is_none() && outline.include(2).is_none());
    }
}
