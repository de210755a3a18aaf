//! Figures in the document are the load that was made, and what the origin counted.

use std::time::{Duration, Instant};

use larder_testkit::browser::{Browser, Page};

use super::{Scene, pressed, settled, shows, ticked};
use crate::support::{asking, config, connect};

/// A step of the figures, of which the first and the last may be in part before and after the load.
const STEP_SECONDS: f64 = 12.0;

/// Cells of a table by its caption: a list of rows, each with the name of its column before a cell.
async fn rows(page: &Page<'_>, caption: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let table = format!(
        "[...document.querySelectorAll('table')].filter((one) => one.caption?.textContent === {}).flatMap((one) => \
         [...one.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((cell) => [cell.dataset.name, \
         cell.textContent.replace(/\\s+/g, ' ').trim()]))))",
        super::literal(caption)
    );
    serde_json::from_value(page.ask(&table).await).unwrap()
}

/// The number in front of a unit; digits may be in groups.
fn number(text: &str) -> f64 {
    let digits = text.split(['/', '%']).next().unwrap();
    let digits: String = digits.chars().filter(|one| one.is_ascii_digit() || *one == '.').collect();
    digits.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Waits until the page of origins says that its server was asked as often as the origin has counted.
async fn agrees_on_requests(page: &Page<'_>, scene: &Scene) -> u64 {
    page.open(&scene.page("origins")).await;
    settled(page, "Origins").await;
    let count = scene.origin.log().count();
    // Beside the number, the cell may have more that is no text of its own.
    let cell = format!(
        "[...(document.querySelector('td[data-name$=\"since the start\"]')?.childNodes ?? [])].filter((one) => one.nodeType === 3) \
         .map((one) => one.data).join('').replace(/\\D/g, '') === '{count}'"
    );
    page.until(&format!("the page says that the origin was asked {count} times"), &cell).await;
    assert_eq!(scene.origin.log().count(), count);
    count
}

#[tokio::test]
async fn the_overview_has_the_load_that_was_made_and_what_the_origin_counted() {
    let Some(browser) = Browser::launch().await else { return };
    let begun = Instant::now();
    let scene = Scene::start().await;
    let page = browser.page().await;
    page.look(1280, 900, false).await;
    page.open(&scene.page("")).await;
    settled(&page, "Overview").await;
    // By then it has also what was before the stream began, which it asks for twice.
    ticked(&page).await;
    for _ in 0..20 {
        scene.asked(&["/page1", "/cookie"]).await;
    }
    let counted = scene.origin.log().count() as f64;
    assert!((counted - 21.0).abs() < 0.1, "one for the page, and one for each answer with a cookie");
    // The page was open meanwhile: its figures came with the stream.
    pressed_table(&page).await;
    page.until("all of it is drawn", "/52\\.5\\s%/.test(document.querySelector('table')?.textContent ?? '')")
        .await;
    let told = rows(&page, "From clients to origins").await;
    let of =
        |result: &str| told.iter().find(|row| row["result"] == result).unwrap_or_else(|| panic!("{told:?}"));
    let some: Vec<_> = told.iter().filter(|row| row["share"] != "0 %").collect();
    assert_eq!(some.len(), 2, "{told:?}");
    assert_eq!((&*of("asked")["share"], &*of("memory")["share"]), ("52.5 %", "47.5 %"));
    // The rate is the mean of the seconds since the start: times their number it is the number of requests.
    let asked = number(&of("asked")["requests/s"]);
    let seconds = counted / asked;
    assert!(
        seconds >= 1.0 && seconds <= begun.elapsed().as_secs_f64() + STEP_SECONDS,
        "{asked}/s, {seconds} s"
    );
    let ratio = number(&of("memory")["requests/s"]) / asked;
    assert!((ratio - 19.0 / 21.0).abs() < 0.03, "{told:?}");
    assert_eq!(agrees_on_requests(&page, &scene).await, 21);
    // Each request that was asked for is a line of its own.
    page.open(&scene.page("requests?filter=result%3Dasked")).await;
    settled(&page, "Requests").await;
    page.until(
        "all that were asked for are listed",
        "document.querySelectorAll('ul.requests > li').length === 21",
    )
    .await;
    assert_eq!(page.reports(), Vec::<String>::new());
}

/// Shows the numbers of the first picture.
async fn pressed_table(page: &Page<'_>) {
    page.until("there is a picture", "!!document.querySelector('figure.first')").await;
    pressed(page, "table").await;
    page.until("its table is there", "!!document.querySelector('figure.first table')").await;
}

#[tokio::test]
async fn a_page_for_a_second_is_fetched_a_few_times_under_load_and_the_page_says_how_often() {
    const CLIENTS: usize = 10;
    const LOAD: Duration = Duration::from_secs(3);
    let Some(browser) = Browser::launch().await else { return };
    let scene = Scene::with(|origin| config(origin, "", "ttl = \"1s\"")).await;
    let page = browser.page().await;
    page.open(&scene.page("")).await;
    settled(&page, "Overview").await;
    let (begun, addr) = (Instant::now(), scene.larder.addr);
    let clients = (0..CLIENTS).map(|_| {
        tokio::spawn(async move {
            let (mut client, mut requests) = (connect(addr).await, 0_u64);
            while begun.elapsed() < LOAD {
                let response = client.exchange(&asking("/brief")).await.unwrap();
                assert_eq!((response.status, response.body.len()), (200, 200), "{response}");
                requests += 1;
            }
            requests
        })
    });
    let mut requests = 0;
    for client in clients.collect::<Vec<_>>() {
        requests += client.await.unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    scene.counted(requests).await;
    shows(&page, "answered without the origin").await;
    let counted = agrees_on_requests(&page, &scene).await;
    assert!(requests > 100 * counted, "{requests} requests, of which {counted} went to the origin");
    assert!(counted as f64 <= seconds + 1.0, "{counted} in {seconds} s: more than one a second");
    assert!(counted >= 2, "{counted} in {seconds} s: the page is older than it may be");
    assert_eq!(page.reports(), Vec::<String>::new());
}
