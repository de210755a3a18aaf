# W3 Total Cache: the path of a PURGE is an expression that has to match a whole URL, as in the VCL of the plugin's own tests.

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(405, "Not allowed."));
        }
        ban("obj.http.X-Url ~ ^" + req.url + "$ && obj.http.X-Host == " + req.http.Host);
        return (synth(200, "Purged."));
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.Host;
}
