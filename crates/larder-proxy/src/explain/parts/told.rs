//! A page that was run, as it is told.
//!
//! In: what the run came to. Out: [`ExplainedPage`]: its includes in page order, whether it would be whole, and what it would
//! say to caches behind larder, by the same function that a page asks.

use http::HeaderMap;
use larder_assemble::{LevelKind, Outline, OutlinedInclude};
use larder_cache::page::PageGround;
use larder_http::target::reference::DocumentUri;

use super::content::Beginning;
use super::text::ShownText;
use super::words::{self, Surroundings};
use super::{Document, LookedUp, Noted, Parts};
use crate::explain::assembled::{ExplainedInclude, ExplainedLevel, ExplainedPage, ExplainedProblem};
use crate::explain::explanation::Field;
use crate::explain::printed::{fields_of, visible};
use crate::explain::reason::{CONFIGURATION, Reason};

/// Includes that are told one by one.
const INCLUDES_MAX: usize = 1000;

/// The templates of a page, for people.
struct Shown<'a> {
    outlines: Vec<Outline<'a>>,
    texts: Vec<ShownText>,
}

impl Parts<'_> {
    /// All of it. `template_fields` are those of the template's response; `said_by` is what made it a template.
    pub(in crate::explain) fn told(
        &self,
        said_by: Reason,
        template_fields: &HeaderMap,
        is_strict: bool,
    ) -> Option<ExplainedPage> {
        let template = &self.documents.first()?.template;
        let problems = template.program.problems();
        let listed = problems.map(|problems| problems.listed()).unwrap_or_default();
        let order = self.content.order();
        let mut numbers = vec![None; self.noted.len()];
        for (place, noted) in order.iter().take(INCLUDES_MAX).enumerate() {
            if let Some(number) = numbers.get_mut(*noted) {
                *number = Some(place + 1);
            }
        }
        let number_of = |noted: usize| numbers.get(noted).copied().flatten();
        let shown = Shown {
            outlines: self.documents.iter().map(|document| document.template.program.outline()).collect(),
            texts: self
                .documents
                .iter()
                .map(|document| ShownText::new(document.template.body.clone()))
                .collect(),
        };
        let told = order.iter().take(INCLUDES_MAX).filter_map(|noted| self.noted.get(*noted));
        let state = self.state(is_strict && !listed.is_empty());
        let mut page = ExplainedPage {
            language: template.program.language().as_str().to_owned(),
            said_by,
            problems: listed
                .iter()
                .map(|problem| ExplainedProblem {
                    line: problem.line,
                    column: problem.column,
                    problem: problem.fault.as_str().to_owned(),
                })
                .collect(),
            more_problems: problems.map_or(0, |problems| problems.more()),
            includes: told.filter_map(|noted| self.include(noted, &shown, &number_of)).collect(),
            more_includes: order.len().saturating_sub(INCLUDES_MAX),
            depends_on: self.depends_on(),
            state,
            fields: Vec::new(),
            age_seconds: None,
            ttl_seconds: None,
            ground: None,
            decided_by: None,
        };
        if matches!(page.state.token.as_str(), "whole" | "open" | "cut") {
            self.tell_control(&mut page, template_fields, &number_of);
        }
        Some(page)
    }

    /// Whether it would be whole.
    fn state(&self, is_invalid: bool) -> Reason {
        let (word, sentence) = match self.content.beginning() {
            _ if !self.has_operations() => {
                ("plain", "It has no directive: it is sent as it is, like any response.")
            }
            _ if is_invalid => ("template-invalid", "It has problems, and the rule says strict: 502."),
            Beginning::Failed(_) => {
                ("fragment-failed", "What it begins with fails, and nothing stands in its place: 502.")
            }
            Beginning::Cut(_) => ("cut", "It is cut where a part fails and nothing stands in its place."),
            Beginning::Good if self.is_open => (
                "open",
                "Some part is not in memory: it is sent while that comes, without length and entity tag.",
            ),
            Beginning::Good => (
                "whole",
                "All parts are in memory: it has a length and an entity tag, and answers conditions and ranges.",
            ),
        };
        Reason::new(word, sentence, CONFIGURATION)
    }

    fn depends_on(&self) -> Vec<String> {
        let used = self.run.used();
        let further = [(used.client, "client"), (used.clock, "time"), (used.start_line, "start-line")];
        let further = further.into_iter().filter(|(is, _)| *is).map(|(_, what)| what.to_owned());
        used.fields.iter().map(ToString::to_string).chain(further).collect()
    }

    fn tell_control(
        &self,
        page: &mut ExplainedPage,
        template_fields: &HeaderMap,
        number_of: &dyn Fn(usize) -> Option<usize>,
    ) {
        let (control, ground) = self.control(template_fields, self.is_open);
        page.fields = fields_of(&control.fields);
        if !control.vary.is_empty() {
            let names: Vec<_> = control.vary.iter().map(|name| name.as_str()).collect();
            page.fields.push(Field { name: "vary".to_owned(), value: names.join(", ") });
        }
        (page.age_seconds, page.ttl_seconds) = (control.age_seconds, control.ttl_seconds);
        let Some(ground) = ground else { return };
        page.decided_by = ground.part().and_then(|part| match self.said.get(part)?.1 {
            None => Some(0),
            Some(noted) => number_of(noted),
        });
        page.ground = (ground != PageGround::Silent)
            .then(|| Reason::new(ground.token(), ground.sentence(), ground.section()));
    }

    fn include(
        &self,
        noted: &Noted,
        shown: &Shown<'_>,
        number_of: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<ExplainedInclude> {
        let document = self.documents.get(noted.document.index())?;
        let (outline, text) =
            (shown.outlines.get(noted.document.index())?, shown.texts.get(noted.document.index())?);
        let include = outline.include(noted.at);
        let at = include.map_or(noted.at..noted.at, |include| include.at.clone());
        let directive = text.directive(&at);
        let level = |kind: LevelKind, at| {
            let begins = text.directive(at);
            ExplainedLevel { kind: word(kind).to_owned(), line: begins.line, directive: begins.text }
        };
        let mut within: Vec<_> = include
            .map(|include| outline.around(include).map(|of| level(of.kind, &of.at)).collect())
            .unwrap_or_default();
        within.reverse();
        let looked = noted.looked.and_then(|looked| self.looked.get(looked));
        Some(ExplainedInclude {
            inside: document.include.and_then(number_of),
            depth: document.depth + 1,
            line: directive.line,
            column: directive.column,
            directive: directive.text,
            within,
            is_alternative: noted.is_alternative,
            url: noted.uri.as_ref().map(url),
            fragment: match looked {
                Some(LookedUp::Found(found)) => found.told.clone(),
                _ => None,
            },
            failed: noted.failed.map(words::failure),
            discarded: self.content.is_gone(noted.slot),
            on_failure: include
                .map(|include| self.on_failure(noted, document, include, shown))
                .unwrap_or_default(),
        })
    }

    fn on_failure(
        &self,
        noted: &Noted,
        document: &Document,
        include: &OutlinedInclude<'_>,
        shown: &Shown<'_>,
    ) -> Vec<Reason> {
        let Some(outline) = shown.outlines.get(noted.document.index()) else { return Vec::new() };
        let around = Surroundings {
            language: document.template.program.language(),
            is_attempted_outside: self.is_attempted_outside(document, shown),
            settings: self.settings,
        };
        let mut tried = words::on_failure(include, outline, &around);
        if noted.is_alternative && include.alternative().is_some() {
            tried.remove(0);
        }
        tried
    }

    /// Whether a template that a document stands in has it in an attempt.
    fn is_attempted_outside(&self, document: &Document, shown: &Shown<'_>) -> bool {
        let outer = |document: &Document| {
            let noted = self.noted.get(document.include?)?;
            Some((noted, self.documents.get(noted.document.index())?))
        };
        std::iter::successors(outer(document), |(_, around)| outer(around)).any(|(noted, _)| {
            shown.outlines.get(noted.document.index()).is_some_and(|outline| {
                let include = outline.include(noted.at);
                include.is_some_and(|include| {
                    outline.around(include).any(|level| level.kind == LevelKind::Attempt)
                })
            })
        })
    }
}

fn word(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::If => "if",
        LevelKind::ElseIf => "else-if",
        LevelKind::Else => "else",
        LevelKind::Attempt => "attempt",
        LevelKind::Except => "except",
        LevelKind::Block => "block",
    }
}

fn url(of: &DocumentUri) -> String {
    visible(format!("{}://{}{}", of.scheme.as_str(), of.authority.as_str(), of.target).as_bytes())
}
