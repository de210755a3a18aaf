// Fastly's and Cloudflare's own packages, with larder's admin address as the address of their API.

import Cloudflare from "cloudflare";
import Fastly from "fastly";

const place = JSON.parse(process.argv[2]);
const url = `http://${place.hard}/news/first`;
const admin = `http://${place.admin}`;
const site = place.hard.split(":")[0];

async function look() {
  const answer = await fetch(url);
  await answer.text();
  const status = answer.headers.get("cache-status");
  if (!status.includes("; hit")) return "gone";
  return status.includes("soft-purged") ? "stale" : "hit";
}

// As `expect` in seen.py. A failure is the name of its class and its status; the package of Fastly rejects with a plain object.
async function expect(client, what, purge, state, failure) {
  // After a soft purge, the refresh behind the stale answer has to end first.
  const deadline = Date.now() + 10_000;
  while ((await look()) !== "hit") {
    if (Date.now() > deadline) throw new Error(`${url} is not stored`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  let said = "success";
  try {
    await purge();
  } catch (error) {
    said = `${error.constructor.name} ${error.status}`;
    if (failure === undefined) throw error;
  }
  if (failure !== undefined && said !== failure) throw new Error(`${client}, ${what}: ${failure}, not ${said}`);
  const found = await look();
  if (found !== state) throw new Error(`${client}, ${what}: the page is a ${found}, not ${state}`);
  console.log(`| ${client} | ${what} | ${said} | ${state} |`);
}

// The package has no setting for the address of the API: each call brings its own.
const fastly = Fastly.ApiClient.instance;
const build = fastly.buildUrl;
fastly.buildUrl = function (path, parts, reserved) {
  return build.call(this, path, parts, reserved, admin);
};
const api = new Fastly.PurgeApi();
fastly.authenticate(place.token);
for (const [kind, soft, state] of [["hard", {}, "gone"], ["soft", { fastly_soft_purge: 1 }, "stale"]]) {
  const all = { service_id: "all", ...soft };
  const keys = { surrogate_keys: ["first", "none"] };
  for (const [what, purge] of [
    ["a key", () => api.purgeTag({ service_id: site, surrogate_key: "first", ...soft })],
    ["keys", () => api.bulkPurgeTag({ ...all, purge_response: keys })],
    ["keys in a field", () => api.bulkPurgeTag({ ...all, surrogate_key: "none first" })],
    ["a URL", () => api.purgeSingleUrl({ cached_url: url, ...soft })],
  ]) {
    await expect("fastly (npm)", `${what}, ${kind}`, purge, state);
  }
}
await expect("fastly (npm)", "all", () => api.purgeAll({ service_id: "all" }), "gone");
await expect("fastly (npm)", "no such service", () => api.purgeAll({ service_id: "nowhere.example" }), "hit", "Object 400");
fastly.authenticate("another");
await expect("fastly (npm)", "a wrong token", () => api.purgeAll({ service_id: "all" }), "hit", "Object 401");

const client = (more) => new Cloudflare({ baseURL: `${admin}/client/v4`, maxRetries: 0, ...more });
const right = client({ apiToken: place.token });
for (const [what, names] of [
  ["files", { files: [url] }],
  ["files with fields", { files: [{ url, headers: { "CF-Device-Type": "mobile" } }] }],
  ["tags", { tags: ["none", "first"] }],
  ["hosts", { hosts: [site] }],
  ["prefixes", { prefixes: [`${site}/news`] }],
  ["everything", { purge_everything: true }],
]) {
  await expect("cloudflare (npm)", what, () => right.cache.purge({ zone_id: site, ...names }), "gone");
}
const everything = { zone_id: "all", purge_everything: true };
const older = client({ apiKey: place.token, apiEmail: "a@b.example" });
await expect("cloudflare (npm)", "with e-mail and key", () => older.cache.purge(everything), "gone");
const wrong = client({ apiToken: "another" });
await expect("cloudflare (npm)", "a wrong token", () => wrong.cache.purge(everything), "hit", "AuthenticationError 401");
const nowhere = { ...everything, zone_id: "nowhere.example" };
await expect("cloudflare (npm)", "no such zone", () => right.cache.purge(nowhere), "hit", "BadRequestError 400");
