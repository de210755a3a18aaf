//! What visitors send: comments, passwords, edits, and who sees what of them.
//!
//! In: a round of [`super::safety`]. Out: notes of it, or the first fault. Faults are a comment that its author does
//! not see, or that others see before it is approved; a form with another visitor's name; a locked post's text
//! without its password; an edit that does not show.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::pause;
use super::safety::{BEHIND_THE_LOCK, DISCUSSED, LOCKED, Round, own};
use super::site::ADMIN;
use super::visitor::{Answer, Visitor};

const EDITED: &str = "/shelf-number-5/";
/// A lifetime of one second, the fetch behind it, and a machine that has other things to do.
const EDIT_SHOWS_MAX: Duration = Duration::from_secs(5);

impl Round<'_> {
    /// A comment that has to be approved first: its author sees it at once, and nobody else.
    pub(super) fn comment_that_waits(&mut self, everybody: &dyn Fn(&str) -> Result<Answer>) -> Result<()> {
        let visitor = self.visitor("commenter", 13);
        let email = format!("carla-{}@reader.example", self.number);
        everybody(DISCUSSED)?;
        let answer = self.comment(&visitor, &self.pending(), "Carla Commenter", &email, true)?;
        ensure!(visitor.has_cookie("comment_author_"), "the comment's author was given no cookie");
        self.note("somebody posts a comment", &answer);
        for _ in 0..2 {
            everybody(DISCUSSED)?;
            let answer = visitor.look_at(&answer.location)?;
            ensure!(
                answer.says(&self.pending()) && answer.says("awaiting moderation"),
                "the comment's author does not see it"
            );
            ensure!(
                answer.says("value=\"Carla Commenter\"") && answer.says(&format!("value=\"{email}\"")),
                "the form does not know the comment's author"
            );
            own(&answer).context("the comment's author")?;
            everybody(DISCUSSED)?;
        }
        let answer = visitor.look_at(DISCUSSED)?;
        self.note("the post with the comment form, by its author", &answer);
        let answer = everybody(DISCUSSED)?;
        ensure!(answer.is_hit(), "others at the same post: {}", answer.cache_status);
        self.note("the same, by others", &answer);
        Ok(())
    }

    /// Who declines the form's cookies is sent to an address with a secret in it.
    pub(super) fn comment_without_cookies(
        &mut self,
        everybody: &dyn Fn(&str) -> Result<Answer>,
    ) -> Result<()> {
        let visitor = self.visitor("undecided", 14);
        let email = format!("carla-u{}@reader.example", self.number);
        let posted = self.comment(&visitor, &self.undecided(), "Carla Commenter", &email, false)?;
        ensure!(posted.location.contains("moderation-hash="), "no secret address: {}", posted.location);
        let answer = visitor.look_at(&posted.location)?;
        ensure!(answer.says(&self.undecided()), "the comment's author does not see it");
        own(&answer).context("the comment's author, without cookies")?;
        self.note("the post at the address with `moderation-hash`", &answer);
        everybody(DISCUSSED)?;
        Ok(())
    }

    /// A comment that needs no approval: the answer to the form names the post, and what is stored of it goes.
    pub(super) fn comment_that_shows(&mut self, everybody: &dyn Fn(&str) -> Result<Answer>) -> Result<()> {
        let visitor = self.visitor("known", 15);
        let name = format!("Known Reader {}", self.number);
        let email = format!("known-{}@reader.example", self.number);
        let words = format!("Words of round {} that everybody may read.", self.number);
        let before = everybody(DISCUSSED)?;
        ensure!(!before.says(&words), "a comment before it was written");
        let answer = self.comment(&visitor, &words, &name, &email, true)?;
        ensure!(!answer.location.contains("unapproved"), "the comment was not approved: {}", answer.location);
        let after = everybody(DISCUSSED)?;
        ensure!(after.says(&words), "an approved comment does not show: {}", after.cache_status);
        self.note("a post before an approved comment on it", &before);
        self.note("after it", &after);
        Ok(())
    }

    fn comment(
        &self,
        visitor: &Visitor,
        text: &str,
        name: &str,
        email: &str,
        cookies: bool,
    ) -> Result<Answer> {
        let form = visitor.get(DISCUSSED)?;
        let post = hidden(form.body(), "comment_post_ID").context("the comment form names no post")?;
        let mut fields = vec![
            ("comment", text),
            ("author", name),
            ("email", email),
            ("comment_post_ID", &post),
            ("comment_parent", "0"),
        ];
        if cookies {
            fields.push(("wp-comment-cookies-consent", "yes"));
        }
        let answer = visitor.post_from(DISCUSSED, "/wp-comments-post.php", &fields, &[])?;
        ensure!(answer.status == 302, "the comment was answered {}: {}", answer.status, answer.body());
        own(&answer)?;
        Ok(answer)
    }

    pub(super) fn password(&mut self, everybody: &dyn Fn(&str) -> Result<Answer>) -> Result<()> {
        let visitor = self.visitor("password", 16);
        ensure!(everybody(LOCKED)?.says("post_password"), "a locked post does not ask for its password");
        let form = [("post_password", "open-sesame")];
        let answer = visitor.post_from(LOCKED, "/wp-login.php?action=postpass", &form, &[])?;
        ensure!(answer.status == 302 && visitor.has_cookie("wp-postpass_"), "the password was not taken");
        for _ in 0..2 {
            let answer = visitor.look_at(LOCKED)?;
            ensure!(answer.says(BEHIND_THE_LOCK), "the password opens nothing");
            own(&answer).context("who has the password")?;
            everybody(LOCKED)?;
        }
        let answer = visitor.look_at(LOCKED)?;
        self.note("a locked post, by somebody with its password", &answer);
        let answer = everybody(LOCKED)?;
        self.note("the same, by others", &answer);
        Ok(())
    }

    /// An edit shows when the page's lifetime ends: WordPress's answer to it does not name the page.
    pub(super) fn edit(&mut self) -> Result<Duration> {
        let (admin, anonymous) = (self.log_in("editor", 17, ADMIN)?, self.visitor("reader", 18));
        let nonce = admin.look_at("/wp-admin/admin-ajax.php?action=rest-nonce")?;
        let nonce = format!("X-WP-Nonce: {}", nonce.body());
        let page = anonymous.look_at(EDITED)?;
        let id = hidden(page.body(), "comment_post_ID").context("the comment form names no post")?;
        let title = format!("Edited in round {}", self.number);
        let target = format!("/wp-json/wp/v2/posts/{id}");
        let answer = admin.post_from("/wp-admin/", &target, &[("title", &title)], &[&nonce])?;
        ensure!(answer.status == 200, "the edit was answered {}: {}", answer.status, answer.body());
        own(&answer)?;
        let start = Instant::now();
        while !anonymous.look_at(EDITED)?.says(&title) {
            ensure!(start.elapsed() < EDIT_SHOWS_MAX, "an edit does not show");
            pause();
        }
        Ok(start.elapsed())
    }
}

/// The value of a hidden field, in either kind of quotes.
fn hidden(page: &str, name: &str) -> Option<String> {
    let page = page.replace('\'', "\"");
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\""))?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_field_is_found_in_either_quotes() {
        let page =
            "<input type='hidden' name='comment_post_ID' value='16' id='x' /><input name=\"b\" value=\"2\">";
        assert_eq!(hidden(page, "comment_post_ID").as_deref(), Some("16"));
        assert_eq!(hidden(page, "b").as_deref(), Some("2"));
        assert_eq!(hidden(page, "c"), None);
    }
}
