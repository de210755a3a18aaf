//! larder's dashboard as a picture that can be committed.
//!
//! In: a browser, an admin address without a token, and the page, as it stands behind `#/`. Out: a picture of the page, or of its upper part, once its
//! figures are live. The name of this host does not belong into a picture: `cache1` stands in its place.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::driver::{Browser, SHOW_MAX};
use harness::children::pause;

/// A picture is shown in full in a page of the documentation.
const WIDTH: u64 = 1100;
const HEIGHT_MAX: u64 = 1100;
/// What a picture of the dashboard may weigh.
const PICTURE_BYTES_MAX: u64 = 200_000;

/// True once figures are live and each part of the page is there.
const IS_THERE: &str = "return !!document.querySelector('.link.live') && !!document.querySelector('main h2') \
     && ![...document.querySelectorAll('.none')].some((line) => line.textContent.startsWith('Loading'))";

/// Puts another name in the place of the host's, wherever the head shows it.
const RENAMED: &str = "const name = arguments[0]; \
     const texts = document.createTreeWalker(document.querySelector('header'), NodeFilter.SHOW_TEXT); \
     for (let text; (text = texts.nextNode()); ) if (text.data.includes(name)) text.data = text.data.replace(name, 'cache1');";

/// Draws the page `page` of the dashboard at `admin` into `picture`.
///
/// # Errors
/// It is not there in time, or the picture weighs too much.
pub(crate) fn draw(browser: &Browser, admin: SocketAddr, page: &str, picture: &Path) -> Result<()> {
    browser.open(&format!("http://{admin}/#/{page}"))?;
    let deadline = Instant::now() + SHOW_MAX;
    while browser.script(IS_THERE, &json!([]))? != Value::Bool(true) {
        if Instant::now() > deadline {
            bail!("the page `{page}` of the dashboard shows only: {}", browser.text("body")?);
        }
        pause();
    }
    browser.fit(WIDTH, HEIGHT_MAX)?;
    let asked = "const done = arguments[0]; \
         fetch('/api/v1/about').then((answer) => answer.json()).then((about) => done(about.instance ?? ''));";
    let name = browser.script_until_done(asked, &json!([]))?;
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        browser.script(RENAMED, &json!([name]))?;
    }
    browser.picture(picture)?;
    let bytes = std::fs::metadata(picture)?.len();
    ensure!(bytes < PICTURE_BYTES_MAX, "the picture has {bytes} bytes, more than {PICTURE_BYTES_MAX}");
    Ok(())
}
