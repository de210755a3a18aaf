"""Views as shops on Django have them: one for each way of saying how a page may be cached."""

from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.views.decorators.cache import cache_control, cache_page
from django.views.decorators.vary import vary_on_cookie


def front(request):
    """Says nothing of caches, and shows who is logged in."""
    return render(request, "page.html", {"title": "Front"})


@cache_control(public=True, max_age=300)
def catalogue(request):
    """The same for all, and said to be."""
    return render(request, "plain.html", {"title": "Catalogue"})


@cache_page(60)
def news(request):
    """Kept by Django for a minute, and looks at no session."""
    return render(request, "plain.html", {"title": "News"})


@cache_page(60)
@vary_on_cookie
def greeting(request):
    """Kept by Django for a minute, by cookie, since it shows who is logged in. Without the second line Django itself would
    give one visitor's page to all: it adds `Vary: Cookie` for the session after `cache_page` has kept the page."""
    return render(request, "page.html", {"title": "Greeting"})


def form(request):
    """A form with a token against forgery."""
    return render(request, "form.html", {"sent": request.method == "POST"})


@login_required(login_url="/admin/login/")
def account(request):
    """For one visitor alone."""
    return render(request, "page.html", {"title": "Account"})
