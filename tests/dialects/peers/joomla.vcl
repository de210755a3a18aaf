# PURGE of a URL, and BAN with an expression for URLs in X-Ban, as Varnish's users guide has them; or in the path, as the module's
# older version needs it.

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE" || req.method == "BAN") {
        if (client.ip !~ purgers) {
            return (synth(405, "Not allowed"));
        }
        if (req.method == "PURGE") {
            return (purge);
        }
        if (!req.http.X-Ban) {
            set req.http.X-Ban = req.url;
        }
        ban("obj.http.X-Url ~ " + req.http.X-Ban);
        return (synth(200, "Ban added"));
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
}
