//! Every page, in light and dark, wide and narrow: silent, nothing sideways, clean for axe, and all of it reached by the keyboard.

use std::path::PathBuf;

use larder_testkit::browser::{Browser, Key, Page};

use super::{Scene, settled};

const WIDTHS: [u32; 2] = [1280, 360];

/// axe-core, where `make units` could install it.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn axe() -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path.join("../../target/axe/node_modules/axe-core/axe.min.js"));
    if text.is_err() {
        eprintln!("skipped: there is no axe-core on this machine; the rest is looked at without it");
    }
    text.ok()
}

#[tokio::test]
async fn every_page_is_silent_fits_is_accessible_and_reached_by_the_keyboard() {
    let Some(browser) = Browser::launch().await else { return };
    let axe = axe();
    let scene = Scene::start().await;
    scene.asked(&["/page1?token=hunter2&a=1", "/page1", "/page1", "/cookie", "/cookie", "/tagged"]).await;
    scene.counted(6).await;
    let about = format!("url?url={}", super::encoded(&scene.url("/tagged")));
    let pages = [
        ("", "Overview"),
        ("why", "Why"),
        ("rules", "Rules"),
        ("stores", "Stores"),
        ("origins", "Origins"),
        ("requests", "Requests"),
        (&*about, "URL"),
        ("errors", "Errors"),
        ("config", "Config"),
    ];
    let mut wrong = Vec::new();
    for width in WIDTHS {
        for is_dark in [false, true] {
            let page = browser.page().await;
            page.look(width, 900, is_dark).await;
            page.open(&scene.page("")).await;
            if let Some(axe) = &axe {
                page.ask(&format!("{axe}; null")).await;
            }
            for (path, name) in pages {
                page.open(&scene.page(path)).await;
                settled(&page, name).await;
                let place = format!("{name}, {width} px, {}", if is_dark { "dark" } else { "light" });
                let mut found = faults(&page, axe.is_some(), is_dark).await;
                found.extend(unreached(&page).await);
                found.extend(page.reports());
                wrong.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a look at the page finds.
async fn faults(page: &Page<'_>, has_axe: bool, is_dark: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let wide = "[document.documentElement.scrollWidth, document.documentElement.clientWidth].join(' of ')";
    let wide = page.text(wide).await;
    if wide.split_once(" of ").is_none_or(|(all, seen)| all != seen) {
        faults.push(format!("scrolls sideways: {wide}"));
    }
    let headings = page.ask("document.querySelectorAll('h1').length").await;
    if headings != 1 {
        faults.push(format!("{headings} h1"));
    }
    // That the colours follow the system at all: the background is nearer to black in the dark.
    let dark = "(getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g) ?? []).slice(0, 3).reduce((sum, one) => sum + +one, 0) < 300";
    if page.ask(dark).await != is_dark {
        faults.push("has the colours of the other scheme".to_owned());
    }
    if has_axe {
        let run = "axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => \
                   `axe ${id}: ` + nodes.map((one) => `${one.html} ${one.failureSummary}`.slice(0, 300)).slice(0, 3).join('; ')))";
        let violations = page.ask(run).await;
        faults.extend(violations.as_array().unwrap().iter().map(ToString::to_string));
    }
    faults
}

/// Marks every element that Tab should reach. Of the radio buttons of a group, it reaches the one that is checked. Tab goes on from where the
/// focus was last, so that has to be the very top, of which nothing is left then.
const MARK: &str = "(() => { const top = document.createElement('span'); top.tabIndex = -1; document.body.prepend(top); top.focus(); top.remove(); \
    scrollTo(0, 0); window.reached = new Set(); \
    window.wanted = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')].filter((one) => \
    !one.disabled && one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0 \
    && !(one.type === 'radio' && !one.checked)); return window.wanted.length })()";

/// Where the focus is now; whether it has left the document.
const STEP: &str = "(() => { const at = document.activeElement; if (!at || at === document.body) return true; \
    window.reached.add(at); return false })()";

/// What the focus did not come to, before it left the document.
async fn unreached(page: &Page<'_>) -> Vec<String> {
    let wanted = page.ask(MARK).await.as_u64().unwrap();
    assert!(wanted > 10, "the head alone has more to reach than {wanted}");
    for _ in 0..wanted * 2 + 20 {
        page.press(Key::Tab).await;
        if page.ask(STEP).await == true {
            break;
        }
    }
    let left = "window.wanted.filter((one) => one.isConnected && !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 200))";
    let left = page.ask(left).await;
    left.as_array().unwrap().iter().map(|one| format!("not reached by Tab: {one}")).collect()
}
