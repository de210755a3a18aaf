//! A purge by the page: asked for twice, nothing before the second, and the origin is asked again after it.

use larder_testkit::browser::{Browser, Key};

use super::{Scene, pressed, settled, shows};

#[tokio::test]
async fn a_purge_is_shown_then_confirmed_and_only_then_made() {
    let Some(browser) = Browser::launch().await else { return };
    let scene = Scene::start().await;
    scene.asked(&["/page1", "/page2"]).await;
    let page = browser.page().await;
    page.open(&scene.about(&scene.url("/page1"))).await;
    settled(&page, "URL").await;
    shows(&page, "A purge of the URL would take 1 response").await;
    // Left by its button, and by Escape: both change nothing.
    for leaves_by_key in [false, true] {
        pressed(&page, "Show what would go").await;
        let asked = "document.querySelector('dialog[open]')?.innerText ?? ''";
        page.until("it is asked", &format!("({asked}).includes('1 response')")).await;
        let question = page.text(asked).await;
        assert!(question.contains(&scene.url("/page1")), "{question}");
        if leaves_by_key {
            page.press(Key::Escape).await;
        } else {
            pressed(&page, "Keep everything").await;
        }
        page.until("the question is gone", "!document.querySelector('dialog')").await;
        scene.asked(&["/page1"]).await;
        assert_eq!(scene.origin.log().count(), 2, "still stored");
    }
    // The family has no series before the first purge.
    let metrics = scene.larder.metrics().await;
    let purges = metrics.samples().into_iter().filter(|(name, _)| name.starts_with("larder_purges_total"));
    assert_eq!(purges.collect::<Vec<_>>(), [], "nothing was sent");
    pressed(&page, "Show what would go").await;
    page.until("it is asked", "!!document.querySelector('dialog[open]')").await;
    // The first focus is on the button that keeps everything.
    assert_eq!(page.text("document.activeElement.innerText.trim()").await, "Keep everything");
    pressed(&page, "Purge 1 response").await;
    page.until("the receipt is there", "!!document.querySelector('.receipt.good')").await;
    let receipt = page.text("document.querySelector('.receipt').innerText.replace(/\\s+/g, ' ')").await;
    for part in ["Purged", "removed 1 response", &format!("{}/page1", scene.larder.addr)] {
        assert!(receipt.to_lowercase().contains(&part.to_lowercase()), "{part}: {receipt}");
    }
    shows(&page, "Nothing is stored under this URL").await;
    scene.asked(&["/page1", "/page1", "/page2"]).await;
    assert_eq!(scene.origin.log().count(), 3, "fetched once more, and the other page not");
}
