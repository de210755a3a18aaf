//! What an explanation says of a page that is put together, as rows of its text.
//!
//! In: the page with its includes. Out: a part of its own, in page order. An include that stands in a fragment says in which; the
//! state of a fragment has the words of any request's decision.

use larder_proxy::explain::{
    Course, ExplainedFragment, ExplainedInclude, ExplainedLevel, ExplainedPage, Explanation, Reason,
};

use super::columns::Columns;
use super::phrases::{cited, span};
use crate::cli::table::counted;

/// Includes that are shown one by one.
const INCLUDES_MAX: usize = 50;

/// Problems that are shown one by one.
const PROBLEMS_MAX: usize = 16;

/// The step *Parts*.
pub(super) fn parts(out: &mut Columns, of: &Explanation) {
    let Some(page) = &of.parts else { return };
    out.part("Parts");
    if !matches!(of.decision.verdict, Course::Hit | Course::Refresh) {
        out.row("", "(of the page that what is stored would make)");
    }
    out.row("language", &format!("{}: {}", page.language, cited(&page.said_by)));
    problems(out, page);
    if !page.depends_on.is_empty() {
        out.row("depends on", &format!("{} of the request", page.depends_on.join(", ")));
    }
    for (place, include) in page.includes.iter().enumerate().take(INCLUDES_MAX) {
        told(out, place + 1, include);
    }
    let more = page.includes.len().saturating_sub(INCLUDES_MAX) + page.more_includes;
    if more > 0 {
        out.row("", &format!("and {more} more: --json shows up to 1000"));
    }
    out.row("page", &format!("{}: {}", page.state.token, cited(&page.state)));
    for field in &page.fields {
        out.row("  says", &format!("{}: {}", field.name, field.value));
    }
    if let Some(ground) = &page.ground {
        out.row("  because", &because(page, ground));
    }
}

fn problems(out: &mut Columns, page: &ExplainedPage) {
    for problem in page.problems.iter().take(PROBLEMS_MAX) {
        out.row("problem", &format!("line {}, column {}: {}", problem.line, problem.column, problem.problem));
    }
    let listed = page.problems.len() as u64;
    let more = listed.saturating_sub(PROBLEMS_MAX as u64).saturating_add(page.more_problems);
    if more > 0 {
        out.row("", &format!("and {} more", counted(more, "problem", "problems")));
    }
}

fn told(out: &mut Columns, number: usize, of: &ExplainedInclude) {
    let what = match &of.url {
        Some(url) => url.clone(),
        None => "nothing is asked for".to_owned(),
    };
    let instead = if of.is_alternative { "in place of the one before: " } else { "" };
    out.row(&format!("include {number}"), &format!("{instead}{what}"));
    let at = format!("line {}, column {}", of.line, of.column);
    let place = match of.inside {
        Some(outer) => format!("{at} of include {outer}"),
        None => at,
    };
    out.row("  stands at", &format!("{place}: {}", of.directive));
    for ExplainedLevel { kind, line, directive } in &of.within {
        out.row("  within", &format!("{kind}, line {line}: {directive}"));
    }
    if let Some(fragment) = &of.fragment {
        looked_up(out, fragment);
    }
    if let Some(failed) = &of.failed {
        out.row("  fails", &format!("{}: {}", failed.token, cited(failed)));
    }
    if of.discarded {
        out.row("  discarded", "the attempt around it has failed");
    }
    let label = if of.failed.is_some() { "  instead" } else { "  if it fails" };
    for tried in &of.on_failure {
        out.row(label, &format!("{}: {}", tried.token, cited(tried)));
    }
}

fn looked_up(out: &mut Columns, of: &ExplainedFragment) {
    let rule = of.rule.map_or_else(|| "no rule".to_owned(), |rule| format!("rule {rule}"));
    out.row("  rule", &format!("{}, {rule}", of.site));
    if let Some(key) = &of.key {
        out.row("  key", key);
    }
    let verdict = match of.verdict {
        Course::Hit => "hit",
        Course::Refresh => "hit, stale",
        Course::Validate => "validate",
        Course::Complete => "complete",
        Course::Fetch => "ask origin",
        Course::Pass => "pass",
        Course::File => "static file",
        Course::Refuse => "refuse",
    };
    out.row("  state", &format!("{verdict}: {}", cited(&of.reason)));
    let Some(status) = of.status else { return };
    let bytes = counted(of.body_bytes.unwrap_or_default(), "byte", "bytes");
    let place = if of.in_memory { "in memory" } else { "not at once in memory" };
    let language = of.language.as_ref().map(|language| format!(", a template in {language}"));
    out.row(
        "  stored",
        &format!("{status}, {bytes}{}; in {}, {place}", language.unwrap_or_default(), of.store),
    );
    if let (Some(age), Some(left)) = (of.age_seconds, of.ttl_seconds) {
        let word = if left < 0 { "stale for" } else { "fresh for" };
        let more = if left < 0 { "" } else { " more" };
        out.row("  age", &format!("{}; {word} {}{more}", span(age), span(left.unsigned_abs() as f64)));
    }
}

/// What decides, and which part that is.
fn because(page: &ExplainedPage, ground: &Reason) -> String {
    let part = match page.decided_by {
        None => String::new(),
        Some(0) => "the template: ".to_owned(),
        Some(number) => format!("include {number}: "),
    };
    format!("{part}{}", cited(ground))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::explain::columns::WIDTH;
    use larder_proxy::explain::{ExplainedProblem, Field};

    fn reason(token: &str, sentence: &str) -> Reason {
        Reason { token: token.to_owned(), sentence: sentence.to_owned(), section: "RFC 1".to_owned() }
    }

    fn fragment() -> ExplainedFragment {
        ExplainedFragment {
            site: "a.example".to_owned(),
            rule: Some(2),
            key: Some("http://a.example/nav".to_owned()),
            store: "default".to_owned(),
            verdict: Course::Hit,
            reason: reason("hit", "What is stored is fresh."),
            in_memory: true,
            status: Some(200),
            body_bytes: Some(10),
            age_seconds: Some(12.0),
            ttl_seconds: Some(48),
            language: Some("esi".to_owned()),
        }
    }

    fn include() -> ExplainedInclude {
        let level = |kind: &str, line, directive: &str| ExplainedLevel {
            kind: kind.to_owned(),
            line,
            directive: directive.to_owned(),
        };
        ExplainedInclude {
            inside: None,
            depth: 1,
            line: 4,
            column: 3,
            directive: "<esi:include src=\"/nav\"/>".to_owned(),
            within: vec![level("attempt", 2, "<esi:attempt>"), level("else", 3, "<esi:otherwise>")],
            is_alternative: false,
            url: Some("http://a.example/nav".to_owned()),
            fragment: Some(fragment()),
            failed: None,
            discarded: false,
            on_failure: vec![reason("alt", "/b is asked for."), reason("fail", "The page fails.")],
        }
    }

    fn page() -> ExplainedPage {
        let failing = ExplainedInclude {
            inside: Some(1),
            depth: 2,
            within: Vec::new(),
            is_alternative: true,
            url: None,
            fragment: None,
            failed: Some(reason("host", "Its site may not be asked.")),
            discarded: true,
            on_failure: vec![reason("continue", "Nothing stands in its place.")],
            ..include()
        };
        ExplainedPage {
            language: "esi".to_owned(),
            said_by: reason("surrogate-control", "The response says so."),
            problems: vec![ExplainedProblem { line: 9, column: 1, problem: "unknown".to_owned() }; 18],
            more_problems: 2,
            includes: vec![include(), failing],
            more_includes: 0,
            depends_on: vec!["cookie".to_owned(), "client".to_owned()],
            state: reason("whole", "All parts are in memory."),
            fields: vec![Field { name: "cache-control".to_owned(), value: "max-age=60".to_owned() }],
            age_seconds: Some(12),
            ttl_seconds: Some(48),
            ground: Some(reason("ends-first", "Its lifetime ends first.")),
            decided_by: Some(1),
        }
    }

    fn text(of: &ExplainedPage) -> String {
        let mut out = Columns::new(WIDTH);
        out.row("language", &format!("{}: {}", of.language, cited(&of.said_by)));
        problems(&mut out, of);
        for (place, include) in of.includes.iter().enumerate() {
            told(&mut out, place + 1, include);
        }
        out.row("  because", &of.ground.as_ref().map(|ground| because(of, ground)).unwrap_or_default());
        out.finish()
    }

    #[test]
    fn a_page_is_told_include_by_include_in_the_order_of_their_place() {
        let text = text(&page());
        let problem = "   problem       line 9, column 1: unknown\n";
        assert_eq!(text.matches(problem).count(), PROBLEMS_MAX);
        let expected = r#"                 and 4 problems more
   include 1     http://a.example/nav
     stands at   line 4, column 3: <esi:include src="/nav"/>
     within      attempt, line 2: <esi:attempt>
     within      else, line 3: <esi:otherwise>
     rule        a.example, rule 2
     key         http://a.example/nav
     state       hit: What is stored is fresh. [RFC 1]
     stored      200, 10 bytes, a template in esi; in default, in memory
     age         12 s; fresh for 48 s more
     if it fails alt: /b is asked for. [RFC 1]
     if it fails fail: The page fails. [RFC 1]
   include 2     in place of the one before: nothing is asked for
     stands at   line 4, column 3 of include 1: <esi:include src="/nav"/>
     fails       host: Its site may not be asked. [RFC 1]
     discarded   the attempt around it has failed
     instead     continue: Nothing stands in its place. [RFC 1]
     because     include 1: Its lifetime ends first. [RFC 1]
"#;
        assert!(text.ends_with(expected), "{text}");
    }
}
