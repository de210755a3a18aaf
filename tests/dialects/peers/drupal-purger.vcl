# Drupal's page "Cache tags + Varnish", with the field's three names, and the page of varnish_image_purge, which adds URIBAN.

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ purgers) {
            return (synth(403, "Not allowed."));
        }
        if (req.http.Cache-Tags) {
            ban("obj.http.Cache-Tags ~ " + req.http.Cache-Tags);
        } elseif (req.http.X-Cache-Tags) {
            ban("obj.http.X-Cache-Tags ~ " + req.http.X-Cache-Tags);
        } elseif (req.http.Purge-Cache-Tags) {
            ban("obj.http.Purge-Cache-Tags ~ " + req.http.Purge-Cache-Tags);
        } else {
            return (synth(403, "Cache-Tags header missing."));
        }
        return (synth(200, "Ban added."));
    }
    if (req.method == "URIBAN") {
        if (client.ip !~ purgers) {
            return (synth(403, "Not allowed."));
        }
        ban("req.http.host == " + req.http.Host + " && req.url == " + req.url);
        return (synth(200, "Ban added."));
    }
}
