//! Hostile text in paths, queries, fields and hosts, driven through the real larder into the page: it is text there, and nothing else.
//!
//! In: hostile.txt, one string a line, and one that is long. Out: a document with no element, attribute or script beyond the page's own.

use larder_testkit::browser::{Browser, Page};
use larder_testkit::client::Request;
use serde_json::Value;

use super::{Scene, encoded, settled, ticked};
use crate::support::connect;

const CORPUS: &str = include_str!("hostile.txt");

/// 8 KiB, longer than anything that is shown whole.
fn long() -> String {
    "<b onmouseover=window.pwned=1>".repeat(8192 / 30)
}

/// What must be the same, whatever was asked for.
const SCRIPTS: &str = "document.querySelectorAll('script').length";

/// What hostile text has added, or done: elements that the page has none of, attributes that run, elements within foreign text, links
/// that run, marks that turn text around, a page that became too wide.
const ADDED: &str = r"(() => {
    const found = [];
    const all = [...document.querySelectorAll('*')];
    const shown = (one) => one.outerHTML.slice(0, 200);
    const foreign = 'img, iframe, object, embed, base, math, template, form[action], marquee, video, audio, animate, foreignObject, x, b';
    found.push(...[...document.querySelectorAll(foreign)].map((one) => 'element ' + shown(one)));
    found.push(...[...document.body.querySelectorAll('link, meta, style, title')].map((one) => 'element ' + shown(one)));
    found.push(...all.filter((one) => [...one.attributes].some(({ name }) => /^on|^srcdoc$/i.test(name))).map((one) => 'attribute ' + shown(one)));
    found.push(...[...document.querySelectorAll('bdi > *')].map((one) => 'within foreign text ' + shown(one)));
    found.push(...[...document.querySelectorAll('a')].filter((one) => !['http:', 'https:'].includes(one.protocol)).map((one) => 'link ' + shown(one)));
    const turned = /[\u0000-\u0008\u000e-\u001f\u007f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/.exec(document.body.textContent);
    if (turned) found.push('a control in the text: ' + turned[0].charCodeAt(0).toString(16));
    if (window.pwned !== undefined || Object.prototype.pwned !== undefined || document.cookie) found.push('it ran');
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`sideways: ${scrollWidth} of ${clientWidth}`);
    return found;
})()";

/// Sends a string everywhere a client may put it; whatever larder answers is right here.
async fn driven(scene: &Scene, text: &str) {
    let name = scene.larder.addr.to_string();
    let quoted = encoded(text);
    let plain = text.replace(' ', "+");
    // As it stands it has what a target may not have, and is refused or taken; encoded, it is always taken.
    let targets = [
        format!("/page/{quoted}"),
        format!("/cookie/{quoted}?{quoted}={quoted}"),
        format!("/cookie/{plain}?q={plain}"),
    ];
    for target in targets {
        let request = Request::new("GET", &target, &name).field("User-Agent", text).field("Referer", text);
        // Some are refused with the connection closed.
        let _ = connect(scene.larder.addr).await.exchange(&request).await;
    }
    for host in [text, &format!("{quoted}.example")] {
        let _ = connect(scene.larder.addr).await.exchange(&Request::new("GET", "/cookie", host)).await;
    }
    let alone = Request::new("GET", "/cookie", &name).field("User-Agent", text);
    let _ = connect(scene.larder.addr).await.exchange(&alone).await;
    let method = Request::new(&text.replace(' ', ""), "/cookie", &name);
    let _ = connect(scene.larder.addr).await.exchange(&method).await;
}

/// Sends some strings while the page of requests is open, and looks at every row with all that is known of its request.
async fn listed(page: &Page<'_>, scene: &Scene, scripts: &Value, some: &[String], wrong: &mut Vec<String>) {
    // A second of the stream has at most 100 requests.
    ticked(page).await;
    for text in some {
        driven(scene, text).await;
    }
    // The browser's name is shown as it was sent. What is longer is cut.
    let starts: Vec<_> = some.iter().map(|text| text.get(..100).unwrap_or(text)).collect();
    let shown = format!(
        "(() => {{ document.querySelectorAll('button.request[aria-expanded=false]').forEach((one) => one.click()); \
         const text = document.querySelector('ul.requests').textContent; \
         return {}.every((one) => text.includes(one)) }})()",
        serde_json::to_string(&starts).unwrap()
    );
    page.until("each string is shown", &shown).await;
    is_clean(page, scripts, "Requests", wrong).await;
}

async fn is_clean(page: &Page<'_>, scripts: &Value, what: &str, wrong: &mut Vec<String>) {
    let found = page.ask(ADDED).await;
    wrong.extend(found.as_array().unwrap().iter().map(|one| format!("{what}: {one}")));
    if page.ask(SCRIPTS).await != *scripts {
        wrong.push(format!("{what}: another script"));
    }
    let reports = page.reports();
    // A URL that is not stored, or cannot be one, is answered 404 or 422; the browser logs that.
    let reports =
        reports.into_iter().filter(|one| !(one.starts_with("network ") && one.contains("status of 4")));
    wrong.extend(reports.map(|one| format!("{what}: {one}")));
}

#[tokio::test]
async fn hostile_text_is_text_in_every_page_that_shows_it() {
    let Some(browser) = Browser::launch().await else { return };
    let scene = Scene::start().await;
    let page = browser.page().await;
    page.look(360, 900, false).await;
    page.open(&scene.page("")).await;
    settled(&page, "Overview").await;
    let scripts = page.ask(SCRIPTS).await;
    assert_eq!(scripts, 1);
    let corpus: Vec<String> = CORPUS.lines().map(str::to_owned).chain([long()]).collect();
    let mut wrong = Vec::new();
    page.open(&scene.page("requests")).await;
    settled(&page, "Requests").await;
    for some in corpus.chunks(13) {
        listed(&page, &scene, &scripts, some, &mut wrong).await;
    }
    page.open(&scene.page("why")).await;
    settled(&page, "Why").await;
    page.until("causes are listed", "document.querySelectorAll('button.stair').length > 1").await;
    for index in 0..page.ask("document.querySelectorAll('button.stair').length").await.as_u64().unwrap() {
        page.ask(&format!("document.querySelectorAll('button.stair')[{index}].click()")).await;
        page.until(
            "its places are listed",
            "document.querySelectorAll('.detail .grid.four section').length === 4",
        )
        .await;
        is_clean(&page, &scripts, "Why", &mut wrong).await;
        page.ask(&format!("document.querySelectorAll('button.stair')[{index}].click()")).await;
    }
    for path in ["", "rules", "stores", "origins", "errors", "config"] {
        page.open(&scene.page(path)).await;
        page.until("it is there", "!!document.querySelector('.link.live') && !document.querySelector('.none')?.textContent.includes('Loading')").await;
        is_clean(&page, &scripts, path, &mut wrong).await;
    }
    for text in &corpus {
        for url in [text.clone(), scene.url(&format!("/page/{}", encoded(text)))] {
            page.open(&scene.about(&url)).await;
            settled(&page, "URL").await;
            let has = format!("document.querySelector('#url-text').value.length >= {}", url.len().min(8));
            page.until("the URL is taken", &has).await;
            is_clean(&page, &scripts, &format!("URL of {:?}", url.get(..80).unwrap_or(&url)), &mut wrong)
                .await;
        }
    }
    assert!(wrong.is_empty(), "{} findings: {:#?}", wrong.len(), wrong.get(..20).unwrap_or(&wrong));
}
