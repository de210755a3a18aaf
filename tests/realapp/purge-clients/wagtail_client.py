"""Wagtail: a page is published, and its frontend cache purges. The site has a database, and no server: the signal is what purges."""

import io
import json
import logging
import os
import sys

import django
import requests
from django.conf import settings
from django.core.management import call_command
from seen import expect

place = json.loads(sys.argv[1])
HTTP = "wagtail.contrib.frontend_cache.backends.HTTPBackend"
CLOUDFLARE = "wagtail.contrib.frontend_cache.backends.CloudflareBackend"

settings.configure(
    SECRET_KEY="of this run",
    DEBUG=False,
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(place["work"], "wagtail.sqlite")}},
    INSTALLED_APPS=[
        "wagtail.contrib.frontend_cache",
        "wagtail.sites",
        "wagtail.users",
        "wagtail.documents",
        "wagtail.images",
        "wagtail.search",
        "wagtail.admin",
        "wagtail",
        "modelcluster",
        "taggit",
        "django_tasks",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
    ],
    ROOT_URLCONF="wagtail.urls",
    STATIC_URL="/static/",
    WAGTAIL_SITE_NAME="larder",
    WAGTAILFRONTENDCACHE={},
)
django.setup()
call_command("migrate", verbosity=0)

from wagtail.models import Page, Site  # noqa: E402  (needs the setup above)

said = io.StringIO()
logging.getLogger("wagtail.frontendcache").addHandler(logging.StreamHandler(said))
logging.getLogger("wagtail.frontendcache").setLevel(logging.ERROR)

home = Page.objects.get(depth=2)
page = home.add_child(instance=Page(title="First", slug="first"))


def publish(host, backend):
    """Publishes the page of a site at `host`, and returns what the frontend cache has logged as an error."""
    name, port = host.split(":")
    Site.objects.all().delete()
    Site.objects.create(hostname=name, port=int(port), root_page=home, is_default_site=True)
    Site.clear_site_root_paths_cache()
    settings.WAGTAILFRONTENDCACHE = {"larder": backend}
    said.truncate(0)
    said.seek(0)
    page.title += "!"
    page.save_revision().publish()
    return said.getvalue()


def silent(purge):
    def checked():
        error = purge()
        if error:
            raise RuntimeError(error)

    return checked


for kind, state in [("hard", "gone"), ("soft", "stale"), ("closed", "hit")]:
    host = place[kind]
    backend = {"BACKEND": HTTP, "LOCATION": f"http://{host}"}

    def purge():
        return publish(host, backend)

    if kind == "closed":
        expect("wagtail, HTTP", "publish, where nobody may purge", f"http://{host}/first/", purge, state, "HTTPError: 405")
    else:
        expect("wagtail, HTTP", f"publish, {kind}", f"http://{host}/first/", silent(purge), state)

# Its Cloudflare backend has no setting for the address of the API.
post = requests.post


def to_larder(url, **more):
    api = "https://api.cloudflare.com/"
    assert url.startswith(api), url
    return post(f"http://{place['admin']}/{url[len(api):]}", **more)


requests.post = to_larder
host = place["hard"]
cloudflare = {"BACKEND": CLOUDFLARE, "ZONEID": "all"}
right = {**cloudflare, "BEARER_TOKEN": place["token"]}
older = {**cloudflare, "EMAIL": "a@b.example", "API_KEY": place["token"]}
wrong = {**cloudflare, "BEARER_TOKEN": "another"}
none = {**right, "ZONEID": "nowhere.example"}
url = f"http://{host}/first/"
expect("wagtail, Cloudflare", "publish, with a token", url, silent(lambda: publish(host, right)), "gone")
expect("wagtail, Cloudflare", "publish, with e-mail and key", url, silent(lambda: publish(host, older)), "gone")
expect("wagtail, Cloudflare", "publish, with a wrong token", url, lambda: publish(host, wrong), "hit", "show the admin token")
expect("wagtail, Cloudflare", "publish, for no site", url, lambda: publish(host, none), "hit", "there is no site")
