//! What a change of an application does to what is stored: which responses go, which stay, and whether all are current.
//!
//! In: the application itself, larder in front of it, targets, and after each change the targets that it concerns. Out: a row of
//! a table for each. A check fails where an answer differs from the application's own, where a response that the change
//! concerns was a hit, and where any other was not.
//! The application is asked directly first, so that larder has no answer of a later moment to show.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use super::fetch::{Answer, Client, MadeAnew};
use super::stage::Larder;

/// Requests at once; the application has a few processes.
const AT_ONCE: usize = 4;
/// Of a longer list, a failure shows the beginning.
const SHOWN_MAX: usize = 5;

/// The two sides, and all that may be asked of them.
pub(super) struct Changes<'a> {
    larder: &'a Larder,
    direct: Client,
    through: Client,
    made_anew: &'a MadeAnew,
    /// Requests from larder in the application's own log.
    asked: &'a dyn Fn() -> Result<usize>,
    targets: Vec<String>,
    /// Targets that were hits when they were last asked for twice.
    stored: BTreeSet<String>,
    purges: u64,
}

impl<'a> Changes<'a> {
    /// Asks for all `targets` until what can be stored is.
    ///
    /// # Errors
    /// An answer differs from the application's own.
    pub(super) fn start(
        larder: &'a Larder,
        (direct, through): (Client, Client),
        made_anew: &'a MadeAnew,
        asked: &'a dyn Fn() -> Result<usize>,
        targets: Vec<String>,
    ) -> Result<Self> {
        let purges = purges(larder)?;
        let mut changes =
            Self { larder, direct, through, made_anew, asked, targets, stored: BTreeSet::new(), purges };
        // The first view of a page may change it: the application notes something, and shows it at the second.
        changes.fetch(changes.direct)?;
        let own = changes.fetch(changes.direct)?;
        changes.fetch(changes.through)?;
        let answers = changes.fetch(changes.through)?;
        changes.compare("before any change", &own, &answers)?;
        changes.note(&answers);
        println!("\n{} targets, of which {} are stored", changes.targets.len(), changes.stored.len());
        println!("\n| change | URLs | identical | purges | gone | still hits | origin requests |");
        println!("|---|---|---|---|---|---|---|");
        Ok(changes)
    }

    /// How many targets are stored.
    pub(super) fn stored(&self) -> usize {
        self.stored.len()
    }

    /// Checks what is served after a change that concerns `touched`.
    ///
    /// # Errors
    /// As in the head of this file.
    pub(super) fn check(&mut self, change: &str, touched: &[String]) -> Result<()> {
        let own = self.fetch(self.direct)?;
        let before = (self.asked)()?;
        let answers = self.fetch(self.through)?;
        let origin_requests = (self.asked)()? - before;
        self.compare(change, &own, &answers)?;
        let hits: BTreeSet<&String> =
            self.targets.iter().zip(&answers).filter(|(_, answer)| answer.is_hit()).map(|(t, _)| t).collect();
        let gone: BTreeSet<&String> = self.stored.iter().filter(|target| !hits.contains(target)).collect();
        let expected: BTreeSet<&String> =
            touched.iter().filter(|target| self.stored.contains(*target)).collect();
        let kept: Vec<_> = expected.difference(&gone).collect();
        ensure!(kept.is_empty(), "{change}: {} were hits: {}", kept.len(), listed(&kept));
        let lost: Vec<_> = gone.difference(&expected).collect();
        ensure!(lost.is_empty(), "{change}: {} were no hits: {}", lost.len(), listed(&lost));
        let purges = purges(self.larder)?;
        println!(
            "| {change} | {} | {} | {} | {} | {} | {origin_requests} |",
            answers.len(),
            answers.len(),
            purges - self.purges,
            gone.len(),
            hits.len(),
        );
        self.purges = purges;
        let again = self.fetch(self.through)?;
        self.note(&again);
        Ok(())
    }

    fn note(&mut self, answers: &[Answer]) {
        let hits = self.targets.iter().zip(answers).filter(|(_, answer)| answer.is_hit());
        self.stored = hits.map(|(target, _)| target.clone()).collect();
    }

    fn compare(&self, change: &str, own: &[Answer], answers: &[Answer]) -> Result<()> {
        let pairs = self.targets.iter().zip(own.iter().zip(answers));
        let differing: Vec<String> = pairs
            .filter_map(|(target, (own, answer))| {
                let difference = own.difference(answer, self.made_anew)?;
                Some(format!("{target} ({}): {difference}", answer.cache_status))
            })
            .collect();
        ensure!(differing.is_empty(), "{change}: {} differ: {}", differing.len(), listed(&differing));
        Ok(())
    }

    /// Every target once, a few at a time; answers in the order of the targets.
    fn fetch(&self, client: Client) -> Result<Vec<Answer>> {
        let share = self.targets.len().div_ceil(AT_ONCE).max(1);
        let parts: Vec<Result<Vec<Answer>>> = std::thread::scope(|scope| {
            let parts: Vec<_> = self
                .targets
                .chunks(share)
                .map(|part| scope.spawn(move || part.iter().map(|target| client.get(target)).collect()))
                .collect();
            let joined = parts.into_iter().map(|one| one.join());
            joined.map(|part| part.unwrap_or_else(|_| bail!("a client panicked"))).collect()
        });
        Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// Predicates that larder was asked for. None may have been refused.
fn purges(larder: &Larder) -> Result<u64> {
    let refused = larder.sum("larder_purges_refused_total")?;
    ensure!(refused == 0, "{refused} purges were refused");
    larder.sum("larder_purges_total")
}

fn listed<T: ToString>(items: &[T]) -> String {
    let shown: Vec<String> = items.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
    let more = items.len().saturating_sub(SHOWN_MAX);
    if more == 0 { shown.join("; ") } else { format!("{}; {more} more", shown.join("; ")) }
}
