# Varnish with ESI where the folder says so, as its users guide has it.

sub vcl_backend_response {
    if (bereq.url ~ "^/(parts/)?esi/") {
        set beresp.do_esi = true;
    }
}
