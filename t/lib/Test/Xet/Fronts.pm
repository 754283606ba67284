package Test::Xet::Fronts;

# Copyright (C) the ngx_http_xet_module authors

# A Hub behind several fronts: other names and ports, TLS, HTTP/2, prefixes,
# proxies that decode paths.
#
#     my $t = Test::Xet->new(directives => { xet_url_base => undef },
#         conf => Test::Xet::Fronts::conf($more));
#
#     Test::Xet::Fronts::files($t);
#     $t->run();
#
#     for (Test::Xet::Fronts::urls($t)) {
#         my ($name, $url) = @$_;
#     }

use warnings;
use strict;

use Test::Xet::Nginx;
use Test::Xet::Process qw/ root run_command slurp /;

sub six {
	return -e '/proc/net/if_inet6'
		&& slurp('/proc/net/if_inet6') =~ / lo$/m;
}

sub http2 { return Test::Xet::Nginx::version() =~ /--with-http_v2_module/ }

# Returns a configuration.  $more adds servers, which include hub.conf as
# these do.

sub conf {
	my ($more) = @_;

	my $hub = "%%LOCATIONS%%\ninclude %%DIR%%/hub.conf;";
	my $tls = 'ssl_certificate %%DIR%%/tls.pem;'
		. ' ssl_certificate_key %%DIR%%/tls.key;';
	my $pass = "client_max_body_size 0;\n"
		. "            proxy_set_header Host \$http_host;";
	my $listen6 = six() ? 'listen [::1]:%%PORT_8080%%;' : '';
	my $http2 = http2() ? ' http2' : '';

	$more =~ s/%%HUB%%/$hub/g;

	return <<"EOF";
%%MAIN%%

events {
    worker_connections 512;
}

http {
    %%HTTP%%
    %%XET%%
    xet_token_key %%DIR%%/token.key;

    log_format fronts '\$server_port \$server_protocol \$request_method'
                      ' \$status \$uri';
    access_log %%DIR%%/fronts.log fronts;

    # without a proxy, as "make run" sets it up

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        $listen6
        xet_url_base http://127.0.0.1:%%PORT_8080%%;
        xet_hosts second.example;
        $hub
    }

    # a prefix that proxies remove; the server is also reached directly

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        xet_url_base https://localhost:%%PORT_8091%%/hf/
                     http://localhost:%%PORT_8094%%/hf/
                     http://localhost:%%PORT_8081%% http://cas.example/;
        $hub
    }

    # proxies that report how the client reached them

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        xet_proxies 10.0.0.0/8 127.0.0.1;
        $hub
    }

    # TLS and, if nginx has it, HTTP/2, without a proxy

    server {
        listen 127.0.0.1:%%PORT_8086%% ssl$http2;
        $tls
        xet_url_base https://localhost:%%PORT_8086%%;
        $hub
    }
$more
    # a mapped port

    server {
        listen 127.0.0.1:%%PORT_8090%%;
        location / {
            $pass
            proxy_pass http://127.0.0.1:%%PORT_8080%%;
        }
    }

    # TLS, a prefix and decoded paths

    server {
        listen 127.0.0.1:%%PORT_8091%% ssl;
        $tls
        location /hf/ {
            $pass
            proxy_pass http://127.0.0.1:%%PORT_8081%%/;
        }

        location /forwarded/ {
            client_max_body_size 0;
            proxy_set_header Host \$proxy_host;
            proxy_set_header X-Forwarded-Host
                             "\$http_x_forwarded_host, \$http_host";
            proxy_set_header X-Forwarded-Proto https;
            proxy_set_header X-Forwarded-Prefix /forwarded/;
            proxy_pass http://127.0.0.1:%%PORT_8082%%/;
        }
    }

    # decoded paths

    server {
        listen 127.0.0.1:%%PORT_8092%%;
        location / {
            $pass
            proxy_pass http://127.0.0.1:%%PORT_8080%%/;
        }
    }

    # TLS

    server {
        listen 127.0.0.1:%%PORT_8093%% ssl;
        $tls
        location / {
            $pass
            proxy_set_header X-Forwarded-Proto https;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
        }
    }

    # a prefix; paths are passed as they are

    map \$request_uri \$after_prefix {
        ~^/hf(?<rest>/.*)\$ \$rest;
    }

    server {
        listen 127.0.0.1:%%PORT_8094%%;
        location /hf/ {
            $pass
            proxy_pass http://127.0.0.1:%%PORT_8081%%\$after_prefix;
        }
    }
}
EOF
}

# Writes the files of the configuration: locations of the Hub, the key of
# tokens, a certificate for localhost, and ca.pem, which clients trust.

sub files {
	my ($t) = @_;

	my $dir = $t->dir();
	my @key = qw/ -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes /;

	$t->write_file('hub.conf', slurp(root() . '/conf/xet_hub.conf')
		=~ s/location \/cas\/ \{.*?\n\}\n//sr . <<'EOH');
location /cas/ {
    xet_api;
    xet_api_base /cas;
    xet_auth token;
    xet_require_tls off;
    xet_access repo;
    client_max_body_size 80m;
}
EOH
	$t->token_key();

	# Python 3.13 refuses a CA without the key usage

	$t->write_file('tls.ext', "subjectAltName=DNS:localhost\n"
		. "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n");

	for ([ qw/ req -x509 -days 2 -subj /, '/CN=test CA', @key,
			'-addext', 'keyUsage=critical,keyCertSign',
			'-keyout', "$dir/ca.key", '-out', "$dir/ca.pem" ],
		[ qw/ req -subj /, '/CN=localhost', @key,
			'-keyout', "$dir/tls.key", '-out', "$dir/tls.csr" ],
		[ qw/ x509 -req -days 2 -in /, "$dir/tls.csr", '-extfile',
			"$dir/tls.ext", '-CA', "$dir/ca.pem", '-CAkey',
			"$dir/ca.key", '-CAcreateserial', '-out',
			"$dir/tls.pem" ])
	{
		my ($status, $out) = run_command([ 'openssl', @$_ ]);

		die "openssl: $out\n" if $status;
	}
}

# Returns [ name, URL ] of each front.

sub urls {
	my ($t) = @_;

	my %port = map { $_ => $t->port($_) } 8080, 8086, 8090 .. 8094;

	return (
		[ 'direct', "http://127.0.0.1:$port{8080}" ],
		[ 'localhost', "http://localhost:$port{8080}" ],
		six() ? [ 'IPv6', "http://[::1]:$port{8080}" ] : (),
		[ 'a mapped port', "http://localhost:$port{8090}" ],
		[ 'decoded', "http://localhost:$port{8092}" ],
		[ 'a prefix', "http://localhost:$port{8094}/hf" ],
		[ 'TLS', "https://localhost:$port{8093}" ],
		[ 'TLS, a prefix, decoded',
			"https://localhost:$port{8091}/hf" ],
		[ 'forwarded', "https://localhost:$port{8091}/forwarded" ],
		http2() ? [ 'HTTP/2', "https://localhost:$port{8086}" ] : (),
	);
}

1;
