"""Where each view is."""

from django.contrib import admin
from django.urls import path

from . import views

urlpatterns = [
    path("", views.front),
    path("catalogue", views.catalogue),
    path("news", views.news),
    path("greeting", views.greeting),
    path("form", views.form),
    path("account", views.account),
    path("admin/", admin.site.urls),
]
