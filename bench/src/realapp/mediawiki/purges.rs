//! What MediaWiki purges: pages are edited, moved, deleted and restored in the wiki itself, not through larder.
//!
//! In: the wiki, larder, and the listener between them that keeps what the wiki sends. Out: a table of what each change
//! did to what is stored. All pages have a lifetime of a day, so only a purge brings a new one.
//! The jobs of the wiki are run after each change: the pages that show or link to a changed one are purged by a job.

use anyhow::{Context, Result, ensure};

use super::wiki::{SHELVES, Wiki};
use super::{MADE_ANEW, settled};
use crate::realapp::changes::Changes;
use crate::realapp::fetch::Client;
use crate::realapp::jar::Jar;
use crate::realapp::recorder::Recorder;
use crate::realapp::stage::Larder;

const API: &str = "/api.php?format=json";
const LIFETIME: &str = "s-maxage=86400";

/// Makes the changes, and checks each.
pub(super) fn run(wiki: &Wiki, larder: &Larder, sent: &Recorder, direct: Client) -> Result<()> {
    let through = larder.client();
    let mut editor = Editor::log_in(wiki, direct)?;
    // What links to what is known after the jobs of the import.
    wiki.run_jobs()?;
    let asked = || settled(wiki, larder);
    let mut changes = Changes::start(larder, (direct, through), MADE_ANEW, &asked, targets(wiki))?;
    // Pages that are not there are not stored.
    let expected = 2 * (wiki.pages.len() + SHELVES + 2);
    ensure!(changes.stored() >= expected, "only {} pages are stored, not {expected}", changes.stored());
    let kept = through.get(&view("Shelf_1"))?;
    let lifetime = kept.field("cache-control").unwrap_or_default().to_owned();
    ensure!(kept.is_hit() && lifetime.contains(LIFETIME), "a page says `Cache-Control: {lifetime}`");
    sent.take();

    editor.edit("Shelf_1", "{{Notice}} Edited in the wiki.")?;
    changes.check("edit", &[view("Shelf_1"), history("Shelf_1")])?;
    sent.take();

    editor.edit("Template:Notice", "Mind the ladder.")?;
    let mut touched: Vec<String> = (1..=SHELVES).map(|number| view(&format!("Shelf_{number}"))).collect();
    touched.extend([view("Template:Notice"), history("Template:Notice")]);
    changes.check(&format!("edit of a template of {SHELVES} pages"), &touched)?;
    let of_template = sent.take();

    let of = |pages: &[&str]| -> Vec<String> {
        pages.iter().flat_map(|page| [view(page), history(page)]).chain([view("Shelves")]).collect()
    };
    editor.edit("New_shelf", "It was missing.")?;
    changes.check("new page", &of(&["New_shelf"]))?;
    editor.act(&[("action", "move"), ("from", "Shelf 7"), ("to", "Moved shelf"), ("reason", "more room")])?;
    changes.check("move", &of(&["Shelf_7", "Moved_shelf"]))?;
    editor.act(&[("action", "delete"), ("title", "Shelf 9")])?;
    changes.check("delete", &of(&["Shelf_9"]))?;
    editor.act(&[("action", "undelete"), ("title", "Shelf 9")])?;
    changes.check("undelete", &of(&["Shelf_9"]))?;
    kept_connections(&of_template)
}

pub(super) fn view(page: &str) -> String {
    format!("/index.php/{page}")
}

fn history(page: &str) -> String {
    format!("/index.php?title={page}&action=history")
}

fn targets(wiki: &Wiki) -> Vec<String> {
    let shelves = (1..=SHELVES).map(|number| format!("Shelf_{number}"));
    let others = ["Main_Page", "Shelves", "Template:Notice", "New_shelf", "Moved_shelf"].map(str::to_owned);
    let pages = wiki.pages.iter().cloned().chain(shelves).chain(others);
    pages.flat_map(|page| [view(&page), history(&page)]).collect()
}

/// The wiki sends purges in absolute form, several of them on a connection.
fn kept_connections(connections: &[String]) -> Result<()> {
    let lines = |sent: &String| sent.lines().filter(|line| line.starts_with("PURGE ")).count();
    let purges: usize = connections.iter().map(lines).sum();
    let first =
        connections.iter().find_map(|sent| sent.split("\r\n\r\n").next()).context("nothing was sent")?;
    println!("\nthe template: {purges} purges on {} connections, such as:\n{first}\n", connections.len());
    ensure!(first.starts_with("PURGE http://"), "that is no purge in absolute form");
    ensure!(purges > connections.len(), "no connection was kept");
    Ok(())
}

/// A session of the wiki's administrator.
pub(super) struct Editor<'a> {
    wiki: &'a Wiki,
    client: Client,
    jar: Jar,
    token: String,
    posts: usize,
}

impl<'a> Editor<'a> {
    pub(super) fn log_in(wiki: &'a Wiki, client: Client) -> Result<Self> {
        let mut editor =
            Self { wiki, client, jar: Jar::default(), token: String::new(), posts: wiki.posts()? };
        let token = editor.ask_token("login")?;
        let form = [
            ("action", "login"),
            ("lgname", super::wiki::ADMIN.0),
            ("lgpassword", super::wiki::ADMIN.1),
            ("lgtoken", &token),
        ];
        let said = editor.post(&form)?;
        ensure!(said.contains("\"Success\""), "the login: {said}");
        editor.token = editor.ask_token("csrf")?;
        Ok(editor)
    }

    fn ask_token(&mut self, kind: &str) -> Result<String> {
        let target = format!("{API}&action=query&meta=tokens&type={kind}");
        let answer = self.client.send(&target, &self.fields(), &[])?;
        self.jar.keep(&answer);
        let said: serde_json::Value = serde_json::from_slice(&answer.body)?;
        let token = said.pointer(&format!("/query/tokens/{kind}token")).and_then(|token| token.as_str());
        Ok(token.with_context(|| format!("no token: {said}"))?.to_owned())
    }

    fn edit(&mut self, page: &str, text: &str) -> Result<()> {
        self.act(&[("action", "edit"), ("title", page), ("text", text)])
    }

    /// Changes something, and waits until the wiki has done all that comes of it.
    pub(super) fn act(&mut self, form: &[(&str, &str)]) -> Result<()> {
        let token = self.token.clone();
        let form: Vec<(&str, &str)> = form.iter().copied().chain([("token", token.as_str())]).collect();
        let said = self.post(&form)?;
        ensure!(!said.contains("\"error\""), "{form:?}: {said}");
        self.wiki.run_jobs()
    }

    fn post(&mut self, form: &[(&str, &str)]) -> Result<String> {
        let answer = self.client.send(API, &self.fields(), form)?;
        self.jar.keep(&answer);
        self.posts += 1;
        self.wiki.has_answered(self.posts)?;
        Ok(answer.text())
    }

    fn fields(&self) -> Vec<String> {
        self.jar.field().into_iter().collect()
    }
}
