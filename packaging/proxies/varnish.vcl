# Varnish in front of sluiced: /etc/varnish/default.vcl (Varnish 7.1 or newer), behind hitch for TLS
#
#     varnishd -a 127.0.0.1:6086,PROXY -p feature=+http2 -f /etc/varnish/default.vcl
#
# sluiced needs:  trusted-proxies = loopback
#                 keepalive-ms = 1000
vcl 4.1;

import std;

backend sluice {
    .host = "127.0.0.1";
    .port = "8080";
    .connect_timeout = 1s;
    .first_byte_timeout = 75s;
    .between_bytes_timeout = 75s;   # keep-alives come more often
}

sub vcl_recv {
    if (std.port(local.ip) == 443) {
        set req.http.X-Forwarded-Proto = "https";
    } else {
        unset req.http.X-Forwarded-Proto;
    }
    if (req.http.Upgrade ~ "(?i)websocket") {
        return (pipe);
    }
    return (pass);                  # a stream is nobody else's answer, and sluiced has caches of its own
}

sub vcl_pipe {
    if (req.http.Upgrade) {
        set bereq.http.Upgrade = req.http.Upgrade;
        set bereq.http.Connection = req.http.Connection;
    }
}

sub vcl_backend_response {
    set beresp.do_stream = true;
    if (beresp.status == 503 && bereq.http.Accept ~ "text/event-stream") {
        return (error(503));
    }
}

# While no sluiced is running, requests are answered with 503, on which an EventSource gives up for good. This answer is
# an empty stream that ends: the EventSource reconnects after two seconds, with its cursor.
sub vcl_backend_error {
    if (bereq.http.Accept ~ "text/event-stream") {
        set beresp.status = 200;
        set beresp.http.Content-Type = "text/event-stream";
        set beresp.http.Cache-Control = "no-store";
        synthetic({"retry: 2000

"});
        return (deliver);
    }
}
