# PURGE of a URL, as Varnish's users guide has it, and MediaWiki, Wagtail and Plone after it.

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(405, "Not allowed"));
        }
        return (purge);
    }
}
