//! A keeper of the site who is logged in, and readers who write comments.
//!
//! In: changes. Out: they are made, in WordPress itself, and WordPress has done all that comes of them. The keeper uses the REST API
//! with a session, as the editor in the dashboard does.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::measure::wordpress::site::{ADMIN, Site};
use crate::realapp::fetch::{Answer, Client};
use crate::realapp::jar::Jar;
use harness::children::pause;

const DONE_MAX: Duration = Duration::from_secs(30);

/// A session.
pub(super) struct Editor<'a> {
    site: &'a Site,
    client: Client,
    fields: Vec<String>,
    /// Comments so far; each comes from another address, since one visitor may write four in a minute.
    comments: Cell<u8>,
}

impl<'a> Editor<'a> {
    pub(super) fn log_in(site: &'a Site, client: Client) -> Result<Self> {
        let mut jar = Jar::default();
        jar.keep(&client.get("/wp-login.php")?);
        let form = [("log", ADMIN.0), ("pwd", ADMIN.1), ("testcookie", "1"), ("redirect_to", "/wp-admin/")];
        let fields: Vec<String> = jar.field().into_iter().collect();
        let answer = client.send("/wp-login.php", &fields, &form)?;
        ensure!(answer.status == 302, "the login was answered {}", answer.status);
        jar.keep(&answer);
        let cookies = jar.field().context("no cookies")?;
        let nonce =
            client.send("/wp-admin/admin-ajax.php?action=rest-nonce", std::slice::from_ref(&cookies), &[])?;
        let fields = vec![cookies, format!("X-WP-Nonce: {}", nonce.text())];
        Ok(Self { site, client, fields, comments: Cell::new(0) })
    }

    /// Publishes a post with this title, and returns its number.
    pub(super) fn publish(&self, title: &str) -> Result<String> {
        let form = [("title", title), ("content", "It is new."), ("status", "publish")];
        let said = self.change("/wp-json/wp/v2/posts", &form)?;
        Ok(said.get("id").context("no number")?.to_string())
    }

    /// Changes something of a kind.
    pub(super) fn edit(&self, kind: &str, id: &str, form: &[(&str, &str)]) -> Result<()> {
        self.change(&format!("/wp-json/wp/v2/{kind}/{id}"), form).map(drop)
    }

    /// Puts a post into the trash.
    pub(super) fn trash(&self, id: &str) -> Result<()> {
        // As browsers' scripts do where a proxy lets only GET and POST pass.
        self.change(&format!("/wp-json/wp/v2/posts/{id}?_method=DELETE"), &[("force", "0")]).map(drop)
    }

    /// Puts a link into the menu at the head of each page.
    pub(super) fn navigation(&self, label: &str) -> Result<()> {
        let link = format!(
            r#"<!-- wp:navigation-link {{"label":"Shelves {label}","url":"/","kind":"custom"}} /-->"#
        );
        let form = [("title", "Menu"), ("content", link.as_str()), ("status", "publish")];
        self.change("/wp-json/wp/v2/navigation", &form).map(drop)
    }

    /// Approves the comment with these words.
    pub(super) fn approve(&self, words: &str) -> Result<()> {
        let waiting = self.ask("/wp-json/wp/v2/comments?status=hold&context=edit")?;
        let waiting = waiting.as_array().context("no list")?;
        let text = |comment: &Value| comment.pointer("/content/raw").map(ToString::to_string);
        let one = waiting.iter().find(|comment| text(comment).is_some_and(|text| text.contains(words)));
        let id = one.and_then(|comment| comment.get("id")).context("no such comment")?;
        self.edit("comments", &id.to_string(), &[("status", "approve")])
    }

    /// A reader's comment on the post with this name.
    pub(super) fn comment(&self, slug: &str, (author, email): (&str, &str), words: &str) -> Result<()> {
        self.comments.set(self.comments.get() + 1);
        let from = format!("X-Forwarded-For: 192.0.2.{}", self.comments.get());
        let id = self.id_of(slug)?;
        let form = [
            ("comment", words),
            ("author", author),
            ("email", email),
            ("comment_post_ID", id.as_str()),
            ("comment_parent", "0"),
        ];
        let answer = self.post("/wp-comments-post.php", &[from], &form)?;
        ensure!(answer.status == 302, "the comment was answered {}: {}", answer.status, answer.text());
        Ok(())
    }

    /// The number of the post with this name.
    pub(super) fn id_of(&self, slug: &str) -> Result<String> {
        Ok(self.post_called(slug)?.get("id").context("no number")?.to_string())
    }

    /// The archive of the month in which a post was published.
    pub(super) fn month_of(&self, slug: &str) -> Result<String> {
        let post = self.post_called(slug)?;
        let date = post.get("date").and_then(Value::as_str).context("no date")?;
        let mut parts = date.split('-');
        match (parts.next(), parts.next()) {
            (Some(year), Some(month)) => Ok(format!("/{year}/{month}/")),
            _ => bail!("a date like {date}"),
        }
    }

    fn post_called(&self, slug: &str) -> Result<Value> {
        let found = self.ask(&format!("/wp-json/wp/v2/posts?slug={slug}"))?;
        found.get(0).cloned().with_context(|| format!("no post {slug}"))
    }

    fn ask(&self, target: &str) -> Result<Value> {
        let answer = self.client.send(target, &self.fields, &[])?;
        ensure!(answer.status == 200, "{target}: {} {}", answer.status, answer.text());
        Ok(serde_json::from_slice(&answer.body)?)
    }

    fn change(&self, target: &str, form: &[(&str, &str)]) -> Result<Value> {
        let answer = self.post(target, &self.fields, form)?;
        ensure!(matches!(answer.status, 200 | 201), "{target}: {} {}", answer.status, answer.text());
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Sends a form, and waits until Apache has noted it: what PHP does at the end of a request is over then.
    fn post(&self, target: &str, fields: &[String], form: &[(&str, &str)]) -> Result<Answer> {
        let before = self.site.asked("POST ")?;
        let answer = self.client.send(target, fields, form)?;
        let deadline = Instant::now() + DONE_MAX;
        while self.site.asked("POST ")? == before {
            ensure!(Instant::now() < deadline, "{target} does not end");
            pause();
        }
        Ok(answer)
    }
}
