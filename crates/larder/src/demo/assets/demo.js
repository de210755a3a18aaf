// Says how long this page took to arrive and how old it was then, beside the stamp that the app put on it.
addEventListener("load", () => {
  const [navigation] = performance.getEntriesByType("navigation");
  const stamp = document.querySelector("[data-rendered]");
  if (!navigation || !stamp) return;
  const arrived = performance.timeOrigin + navigation.responseEnd;
  const age = Math.max(0, arrived - Number(stamp.dataset.rendered)) / 1000;
  const took = navigation.responseEnd - navigation.requestStart;
  document.getElementById("arrival").innerHTML =
    `Here after <b>${took.toFixed(0)} ms</b>, then <b>${age.toFixed(1)} s</b> old`;
});
