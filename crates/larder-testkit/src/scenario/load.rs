//! Reading scenario files and refusing those that say too little.
//!
//! In: a path. Out: a [`Scenario`], or everything that is wrong with it. Beyond the format: each step does one thing,
//! and each request says how many requests the origin has then received, and what Cache-Status says. Exceptions are
//! requests that the parser is to refuse, those whose answer is not read, and those to the admin address.

use std::fs;
use std::path::{Path, PathBuf};

use super::format::{After, Scenario, Step};
use crate::{Error, template};

/// What larder answers when it will not take a request as it stands.
const REFUSALS: [u16; 9] = [400, 405, 408, 413, 414, 417, 431, 501, 505];

/// Reads one file.
///
/// # Errors
/// [`Error::Scenario`] with the file's name and all that is wrong.
pub fn load(path: &Path) -> Result<Scenario, Error> {
    let wrong = |what: String| Error::Scenario(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let scenario: Scenario = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let problems = problems(&scenario);
    if problems.is_empty() { Ok(scenario) } else { Err(wrong(problems.join("\n  "))) }
}

/// All scenario files beneath `dir`, in the order of their names.
///
/// # Errors
/// [`Error::Io`].
pub fn find(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn problems(scenario: &Scenario) -> Vec<String> {
    let mut problems = Vec::new();
    if scenario.rule.trim().is_empty() {
        problems.push("`rule` says nothing".to_owned());
    }
    if scenario.config.is_some() && (scenario.site.is_some() || scenario.app.is_some()) {
        problems.push("`site` and `app` add to the default config; there is a `config` too".to_owned());
    }
    for script in &scenario.origin {
        for (n, answer) in script.answer.iter().enumerate() {
            if let Err(problem) = answer.check() {
                problems.push(format!("origin {}, answer {}: {problem}", script.path, n + 1));
            }
        }
        if script.answer.is_empty() {
            problems.push(format!("origin {}: no answers", script.path));
        }
    }
    for (n, step) in scenario.step.iter().enumerate() {
        let mut said = |problem: &str| problems.push(format!("step {}: {problem}", n + 1));
        check_step(step, &mut said);
    }
    problems
}

impl Step {
    /// Whether it is one request, sent once or by several clients.
    pub(super) fn is_request(&self) -> bool {
        self.get.is_some()
            || self.head.is_some()
            || self.post.is_some()
            || self.request.is_some()
            || self.raw.is_some()
    }

    fn actions(&self) -> usize {
        let given = [
            self.get.is_some(),
            self.head.is_some(),
            self.post.is_some(),
            self.request.is_some(),
            self.raw.is_some(),
            !self.pipeline.is_empty(),
            self.finish.is_some(),
            self.abort.is_some(),
            self.hang_up.is_some(),
            self.resume.is_some(),
            self.advance.is_some(),
            self.release.is_some(),
            self.stop_origin.is_some(),
            self.start_origin.is_some(),
            self.reload.is_some(),
            self.wait.is_some(),
            self.talk.is_some(),
        ];
        given.into_iter().filter(|&given| given).count()
    }

    /// Whether an answer of larder's cache is looked at in this step.
    fn needs_cache_status(&self) -> bool {
        let unread = matches!(self.after, Some(After::Close | After::Abort));
        let refused = self.expect.as_ref().is_some_and(|expect| {
            let statuses = expect.status.as_ref().map(|status| status.as_slice()).unwrap_or_default();
            expect.no_response || (!statuses.is_empty() && statuses.iter().all(|s| REFUSALS.contains(s)))
        });
        let answered = self.finish.is_some() || (self.is_request() && self.start.is_none());
        answered && !unread && !refused && !self.admin
    }
}

fn check_step(step: &Step, said: &mut dyn FnMut(&str)) {
    match step.actions() {
        0 if step.expect.is_none() => said("does nothing and expects nothing"),
        0 | 1 => {}
        _ => said("does more than one thing"),
    }
    let unread = matches!(step.after, Some(After::Close | After::Abort));
    let asked = !step.pipeline.is_empty() || (step.is_request() && step.start.is_none() && !unread);
    let answered = asked || step.finish.is_some();
    let expect = step.expect.clone().unwrap_or_default();
    if answered && expect.origin_requests.is_none() {
        said("does not say `origin_requests`");
    }
    if step.needs_cache_status() && expect.cache_status.is_none() {
        said("does not say `cache_status`");
    }
    if step.start.is_some() && step.expect.is_some() {
        said("runs in the background: its expectations belong to the `finish` step");
    }
    if step.start.is_some() && !step.is_request() {
        said("only a request can run in the background");
    }
    for part in &step.pipeline {
        if part.actions() != 1 || !part.is_request() || part.start.is_some() || part.on.is_some() {
            said("a pipeline holds plain requests");
        }
        if part.needs_cache_status()
            && part.expect.as_ref().is_none_or(|expect| expect.cache_status.is_none())
        {
            said("a request in the pipeline does not say `cache_status`");
        }
    }
    if let Some(advance) = &step.advance
        && template::duration(advance).is_none()
    {
        said("`advance` is not a duration such as \"3s\"");
    }
    if let Some(request) = &step.request
        && request.split_once(' ').is_none()
    {
        said("`request` is not \"METHOD target\"");
    }
    if step.refused.is_some() && step.reload.is_none() {
        said("`refused` belongs to `reload`");
    }
    if step.version.as_deref().is_some_and(|version| !matches!(version, "1.1" | "1.0" | "h2")) {
        said("`version` is 1.1, 1.0 or h2");
    }
    if step.version.as_deref() == Some("h2") && (step.on.is_some() || step.after.is_some()) {
        said("an h2 request has a connection of its own");
    }
    if step.times.is_some()
        && (!step.is_request()
            || step.raw.is_some()
            || step.start.is_some()
            || step.clients.is_some()
            || step.on.is_some()
            || unread)
    {
        said("`times` is for a plain request in the foreground");
    }
    if !step.remember.is_empty() && (!asked || step.pipeline.len() > 1 || step.times.is_some()) {
        said("`remember` is for a plain request in the foreground");
    }
    if unread && (step.start.is_some() || step.clients.is_some()) {
        said("`after` is for a single request in the foreground");
    }
    let lines = step.fields.iter().chain(step.pipeline.iter().flat_map(|part| &part.fields));
    for line in lines {
        if !line.contains(": ") {
            said(&format!("not a field line: {line:?}"));
        }
    }
}
