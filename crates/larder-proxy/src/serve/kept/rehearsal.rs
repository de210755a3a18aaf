//! Whether the template of a kept page gives the same page for another request.
//!
//! In: a template, the facts of a request, and how the fragments of the kept page were answered. Out: whether its run takes the same steps.
//! A run knows no bodies and no clock, and depends on nothing but these three ([`Run`]). So the same steps make the same page, whatever the
//! values were that its conditions have read: one page is for all visitors for whom they turn out alike.
//! Deliberately absent: fragments that are templates themselves, and such as become values. Their pages are kept for equal values only.

use larder_assemble::{Answer, FactsUsed, RequestFacts, Run, Step, Template};
use larder_http::target::reference::DocumentUri;
use smallvec::SmallVec;

use crate::assemble::{PAGES_MAX, run_of};
use crate::exchange::Exchange;

/// A page with more steps is kept for equal values only.
const STEPS_MAX: usize = 1024;

/// The steps of a page.
pub(super) struct Rehearsal {
    template: Template,
    steps: Vec<RehearsedStep>,
    used: FactsUsed,
}

#[derive(PartialEq)]
struct RehearsedStep {
    step: Step,
    /// Where that asks for a fragment, whether its body has no bytes.
    is_empty: bool,
}

impl Rehearsal {
    /// Of the page of a template for an exchange's request. `None` where one of its fragments is not among those of which `is_empty` tells
    /// whether their body is.
    pub(super) fn of(
        template: Template,
        exchange: &Exchange,
        is_empty: impl Fn(&DocumentUri) -> Option<bool>,
    ) -> Option<Self> {
        let (mut run, facts) = (begin(template.clone(), exchange), facts_of(exchange));
        let mut steps = Vec::new();
        while steps.len() < STEPS_MAX {
            let step = run.advance(&facts);
            let mut answered = false;
            match &step {
                Step::Done => return Some(Self { template, steps, used: run.used().clone() }),
                Step::Wait { .. } | Step::Failed { .. } => return None,
                Step::Fragment(ask) if ask.is_captured => return None,
                Step::Fragment(ask) => {
                    answered = is_empty(&run.uri_of(ask)?)?;
                    run.give(ask.slot, Answer::Body { is_empty: answered });
                }
                _ => {}
            }
            steps.push(RehearsedStep { step, is_empty: answered });
        }
        None
    }

    /// Which of these are of the page that an exchange's request gets.
    pub(super) fn find<'a>(all: impl Iterator<Item = &'a Self>, exchange: &Exchange) -> Option<&'a Self> {
        let mut left: SmallVec<[&Self; PAGES_MAX]> = all.collect();
        let (mut run, facts) = (begin(left.first()?.template.clone(), exchange), facts_of(exchange));
        for at in 0..STEPS_MAX {
            let step = run.advance(&facts);
            if step == Step::Done {
                return left.into_iter().find(|one| one.steps.len() == at && one.used == *run.used());
            }
            left.retain(|one| one.steps.get(at).is_some_and(|rehearsed| rehearsed.step == step));
            let is_empty = left.first()?.steps.get(at)?.is_empty;
            left.retain(|one| one.steps.get(at).is_some_and(|rehearsed| rehearsed.is_empty == is_empty));
            if let Step::Fragment(ask) = &step {
                run.give(ask.slot, Answer::Body { is_empty });
            }
        }
        None
    }

    /// Whether both are of one page.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.used == other.used && self.steps == other.steps
    }
}

fn begin(template: Template, exchange: &Exchange) -> Run {
    let settings = exchange.settings();
    run_of(&exchange.asked.head, template, (&settings.fragments, settings.policy.templates.escapes_html))
}

fn facts_of(exchange: &Exchange) -> RequestFacts<'_> {
    let head = &exchange.asked.head;
    RequestFacts {
        fields: &head.fields,
        method: &head.method,
        client: exchange.asker.client,
        scheme: head.scheme,
        version: head.version,
        now: exchange.started.wall,
    }
}
