"""Fastly's and Cloudflare's own packages, with larder's admin address as the address of their API."""

import json
import sys

import cloudflare
import fastly
from fastly.api import purge_api
from seen import expect

place = json.loads(sys.argv[1])
host = place["hard"]
url = f"http://{host}/news/first"
admin = f"http://{place['admin']}"


def at_fastly(token):
    configuration = fastly.Configuration(host=admin)
    configuration.api_token = token
    return purge_api.PurgeApi(fastly.ApiClient(configuration))


api = at_fastly(place["token"])
site = host.split(":")[0]
for soft, state in [({}, "gone"), ({"fastly_soft_purge": 1}, "stale")]:
    kind = "soft" if soft else "hard"
    keys = {"surrogate_keys": ["first", "none"]}
    for what, purge in [
        ("a key", lambda: api.purge_tag(service_id=site, surrogate_key="first", **soft)),
        ("keys", lambda: api.bulk_purge_tag(service_id="all", purge_response=keys, **soft)),
        ("keys in a field", lambda: api.bulk_purge_tag(service_id="all", surrogate_key="none first", **soft)),
        ("a URL", lambda: api.purge_single_url(cached_url=f"{host}/news/first", **soft)),
    ]:
        expect("fastly (Python)", f"{what}, {kind}", url, purge, state)
expect("fastly (Python)", "all", url, lambda: api.purge_all(service_id="all"), "gone")
wrong = at_fastly("another")
expect("fastly (Python)", "a wrong token", url, lambda: wrong.purge_all(service_id="all"), "hit", "UnauthorizedException")
expect("fastly (Python)", "no such service", url, lambda: api.purge_all(service_id="nowhere.example"), "hit", "ApiException")

base = f"{admin}/client/v4"
client = cloudflare.Cloudflare(base_url=base, api_token=place["token"], max_retries=0)
older = cloudflare.Cloudflare(base_url=base, api_key=place["token"], api_email="a@b.example", max_retries=0)
wrong = cloudflare.Cloudflare(base_url=base, api_token="another", max_retries=0)
for what, names in [
    ("files", {"files": [url]}),
    ("files with fields", {"files": [{"url": url, "headers": {"CF-Device-Type": "mobile"}}]}),
    ("tags", {"tags": ["none", "first"]}),
    ("hosts", {"hosts": [site]}),
    ("prefixes", {"prefixes": [f"{site}/news"]}),
    ("everything", {"purge_everything": True}),
]:
    expect("cloudflare (Python)", what, url, lambda: client.cache.purge(zone_id=site, **names), "gone")
everything = {"zone_id": "all", "purge_everything": True}
expect("cloudflare (Python)", "with e-mail and key", url, lambda: older.cache.purge(**everything), "gone")
expect("cloudflare (Python)", "a wrong token", url, lambda: wrong.cache.purge(**everything), "hit", "AuthenticationError")
nowhere = {**everything, "zone_id": "nowhere.example"}
expect("cloudflare (Python)", "no such zone", url, lambda: client.cache.purge(**nowhere), "hit", "BadRequestError")
