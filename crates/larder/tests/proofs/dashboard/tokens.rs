//! The token: asked for, wrong, to look with, and to change with.

use larder_testkit::browser::{Browser, Key, Page};

use super::{Scene, pressed, settled, shows};
use crate::support::{config, with_admin};

const TOKEN: &str = "s3cret-and-long-enough";
const VIEW_TOKEN: &str = "l00k-only-and-long-enough";

/// Types a token and sends it.
async fn tells(page: &Page<'_>, token: &str) {
    page.until("a token is asked for", "!!document.querySelector('#token-text')").await;
    page.ask("document.querySelector('#token-text').focus()").await;
    page.write(token).await;
    page.press(Key::Enter).await;
}

/// What it reports, but for the answers that said that there is no token.
fn reports(page: &Page<'_>) -> Vec<String> {
    page.reports()
        .into_iter()
        .filter(|report| !(report.starts_with("network ") && report.contains("401")))
        .collect()
}

#[tokio::test]
async fn a_token_is_asked_for_and_opens_what_it_may() {
    let Some(browser) = Browser::launch().await else { return };
    let keys = format!("token = \"{TOKEN}\", view_token = \"{VIEW_TOKEN}\"");
    let scene = Scene::with(|origin| with_admin(&config(origin, "", ""), &keys)).await;
    scene.asked(&["/page1", "/page1"]).await;
    let page = browser.page().await;
    page.open(&scene.page("")).await;
    shows(&page, "A token is needed").await;
    assert_eq!(
        page.ask("document.querySelectorAll('.receipt, figure, table').length").await,
        0,
        "no figure yet"
    );
    tells(&page, "guessed-and-long-enough").await;
    shows(&page, "This token is not the right one.").await;
    assert_eq!(
        page.ask("document.querySelectorAll('.receipt, figure, table').length").await,
        0,
        "no figure yet"
    );
    tells(&page, VIEW_TOKEN).await;
    settled(&page, "Overview").await;
    shows(&page, "answered without the origin").await;
    shows(&page, "view only").await;
    page.open(&scene.about(&scene.url("/page1"))).await;
    settled(&page, "URL").await;
    shows(&page, "it may look and explain, but not purge").await;
    let offered = "[...document.querySelectorAll('button')].filter((one) => !one.disabled && /purge|would go/i.test(one.innerText)).length";
    assert_eq!(page.ask(offered).await, 0, "no purge is offered");
    // Neither the address nor a cookie has it.
    assert_eq!(page.text("document.cookie").await, "");
    assert!(!page.text("location.href").await.contains(VIEW_TOKEN));
    pressed(&page, "forget the token").await;
    tells(&page, TOKEN).await;
    settled(&page, "URL").await;
    page.until("a purge is offered", &format!("{offered} === 1")).await;
    pressed(&page, "Show what would go").await;
    pressed(&page, "Purge 1 response").await;
    page.until("the receipt is there", "!!document.querySelector('.receipt.good')").await;
    assert_eq!(reports(&page), Vec::<String>::new());
}
