"""Makes the database, the static files and the one who may use the admin's pages."""

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"

import django

django.setup()

from django.contrib.auth import get_user_model
from django.core.management import call_command

call_command("migrate", verbosity=0)
call_command("collectstatic", verbosity=0, interactive=False)
get_user_model().objects.create_superuser("victoria", "victoria@example.com", "only for this run")
